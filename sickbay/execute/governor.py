"""A ceiling on destructive acts of this process, whatever any object says.

Pools, rules and breakers are objects, and objects can be wrong. The governor knows none of them: it counts what is sent
to back-ends and agents, and beyond its limits everything stops until a person restarts the controller with other
limits or time has passed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from sickbay.clock import Clock


@dataclass(frozen=True)
class Limits:
    """Destructive acts allowed within 10 minutes and within an hour; 0 = no ceiling."""

    per_10_minutes: int = 10
    per_hour: int = 30


class Governor:
    def __init__(self, clock: Clock, limits: Limits) -> None:
        self._clock = clock
        self._limits = limits
        self._acts: deque[float] = deque()

    def refusal(self) -> str:
        """Why no further act may be sent now; "" when it may."""
        now = self._clock.monotonic()
        while self._acts and now - self._acts[0] >= 3600:
            self._acts.popleft()
        recent = sum(1 for at in self._acts if now - at < 600)
        for count, limit, span in (
            (recent, self._limits.per_10_minutes, "10 minutes"),
            (len(self._acts), self._limits.per_hour, "hour"),
        ):
            if limit and count >= limit:
                return f"the governor stops all acts: {count} within the last {span}, {limit} allowed"
        return ""

    def count(self) -> None:
        """An act is about to be sent."""
        self._acts.append(self._clock.monotonic())
