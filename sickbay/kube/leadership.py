"""Who leads, judged without ever comparing wall clocks of two machines. No I/O.

A Lease names its holder and how long (`leaseDurationSeconds`) others must wait after its last change. Others count
from the moment *they* saw that change, on their own monotonic clock, so skewed wall clocks cannot split leadership.
The holder counts from the moment *before* it sent its renewal, and stops `margin` early; so it has stopped before
anybody else may begin, as long as two monotonic clocks run at about the same speed.

A term is the Lease's `leaseTransitions`. It grows with every taking of the lease, so of two terms the later is known,
and starts at 1: 0 stands for "no term" wherever one is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

from sickbay.api.core import Lease
from sickbay.clock import Clock


class NotLeading(Exception):
    """The lease is not ours, or not surely enough: the write must not be sent."""


class Leadership:
    """One term. Handed to whatever writes in the leader's name; asked before each write and each provider call."""

    def __init__(self, clock: Clock, term: int, until: float) -> None:
        self.term = term
        self._clock = clock
        self._until = until
        self._ended = False

    def extend(self, until: float) -> None:
        """Renewed: sure until that monotonic time."""
        if not self._ended:
            self._until = max(self._until, until)

    def end(self) -> None:
        """Lost or given up; there is no way back into this term."""
        self._until, self._ended = float("-inf"), True

    def valid(self) -> bool:
        """Whether we surely lead at this moment."""
        return self._clock.monotonic() < self._until

    def remaining(self) -> float:
        """Seconds for which we surely lead; at most 0 when we do not."""
        return self._until - self._clock.monotonic()

    def check(self) -> None:
        """Raises NotLeading unless we surely lead."""
        if not self.valid():
            raise NotLeading(f"term {self.term} is over")


@dataclass(slots=True)
class Observation:
    """The Lease as we last saw it change, and when that was on our monotonic clock."""

    resource_version: str = ""
    uid: str = ""
    since: float = 0.0

    def see(self, lease: Lease, now: float) -> None:
        """Note a sight of the Lease; only a change of it restarts the wait."""
        meta = lease.metadata
        if (meta.resource_version, meta.uid) != (self.resource_version, self.uid):
            self.resource_version, self.uid, self.since = meta.resource_version, meta.uid, now

    def expired(self, lease: Lease, now: float) -> bool:
        """Whether the holder has been silent for as long as the Lease says. Without a holder it is free at once."""
        if not lease.spec.holder_identity:
            return True
        return now >= self.since + (lease.spec.lease_duration_seconds or 0)


def next_term(lease: Lease | None, known: int) -> int:
    """The term of whoever takes the lease now. `known` is the highest term we have seen: a Lease that was deleted and
    made anew must not take terms back."""
    transitions = lease.spec.lease_transitions or 0 if lease is not None else 0
    return max(transitions, known) + 1
