"""A ceiling on destructive acts of this process, whatever any object says.

Pools, rules and breakers are objects, and objects can be wrong. The governor knows none of them: it counts what is sent
to back-ends and agents, and beyond its limits everything stops until a person restarts the controller with other
limits or time has passed. One act counts once, however often it has to be sent.
"""

from __future__ import annotations

from dataclasses import dataclass

from sickbay.clock import Clock

SHORT, LONG = 600.0, 3600.0
"""Seconds of the two windows."""


@dataclass(frozen=True)
class Limits:
    """Destructive acts allowed within 10 minutes and within an hour; 0 = no ceiling."""

    per_10_minutes: int = 10
    per_hour: int = 30


class Governor:
    """Lives as long as the process, over all its terms."""

    def __init__(self, clock: Clock, limits: Limits) -> None:
        self._clock = clock
        self._limits = limits
        self._acts: dict[str, float] = {}

    def refusal(self, key: str) -> str:
        """Why the act with this key may not be sent now; "" when it may."""
        now = self._clock.monotonic()
        self._acts = {known: at for known, at in self._acts.items() if now - at < LONG}
        if key in self._acts:
            return ""
        recent = sum(1 for at in self._acts.values() if now - at < SHORT)
        for count, limit, span in (
            (recent, self._limits.per_10_minutes, "10 minutes"),
            (len(self._acts), self._limits.per_hour, "hour"),
        ):
            if limit and count >= limit:
                return f"the governor stops all acts: {count} within the last {span}, {limit} allowed"
        return ""

    def take(self, key: str) -> str:
        """As `refusal`, and counts the act where there is none: it is about to be sent."""
        refusal = self.refusal(key)
        if not refusal:
            self._acts.setdefault(key, self._clock.monotonic())
        return refusal
