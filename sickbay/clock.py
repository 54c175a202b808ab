"""The one clock and the one source of randomness; both are handed to whatever needs them.

Everything else in the package takes a `Clock` and, where it draws lots or makes names, a `Randomness` as arguments.
That is what lets the simulator run the real controllers on virtual time and replay a run from its seed. A linter rule
bans the standard library's clocks and random functions outside this file.

Wall time (`now`) is what stands in objects and is shown to people. It may jump. Whatever measures a duration or judges
a lease uses `monotonic`.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Time as a component sees it."""

    def now(self) -> datetime:
        """Wall time, timezone-aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock; at once (but after a yield) when `seconds` <= 0."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


class Randomness:
    """All lots and names drawn in one process. The same seed gives the same sequence; None seeds from the system."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def below(self, limit: int) -> int:
        """An integer in [0, limit)."""
        return self._random.randrange(limit)

    def lot(self, limit: int) -> int:
        """The same for a small limit, at a third of the price; even but for the rounding of a float."""
        return int(self._random.random() * limit)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def hex(self, digits: int) -> str:
        return f"{self._random.getrandbits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        """A random (version 4) UUID in its usual text form."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def fork(self) -> Randomness:
        """A source of its own whose sequence does not depend on how much the parent is used afterwards."""
        return Randomness(self._random.getrandbits(64))


def seen_at(clock: Clock, monotonic: float) -> datetime:
    """When the monotonic clock read so, in terms of the wall clock as it is now. What is measured like this does not
    grow or shrink when the wall clock is set."""
    return clock.now() - timedelta(seconds=clock.monotonic() - monotonic)


def rfc3339(moment: datetime) -> str:
    """Kubernetes `Time` text, whole seconds, UTC."""
    return _utc(moment).isoformat(timespec="seconds")[:-6] + "Z"


def rfc3339_micro(moment: datetime) -> str:
    """Kubernetes `MicroTime` text, as Leases and Events carry it."""
    return _utc(moment).isoformat(timespec="microseconds")[:-6] + "Z"


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def parse_time(text: str) -> datetime:
    """Read a Kubernetes `Time` or `MicroTime`. Raises ValueError with the text when it is neither."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"not an RFC 3339 time: {text!r}") from None
    if moment.tzinfo is None:
        raise ValueError(f"time without a zone: {text!r}")
    return moment.astimezone(UTC)
