"""How fast pods are asked to leave, over all nodes that are drained at once.

Every eviction is a write to the API server, refused ones too. A hundred nodes full of pods that their budgets hold must
not make it slow for everybody else.
"""

from __future__ import annotations

from sickbay.clock import Clock

PER_MINUTE = 300
"""Eviction calls of this process within a minute; 0 = no ceiling. kubectl drain sends 12 for each blocked pod."""
BURST = 50


class Pace:
    """A bucket of tokens, one for each call."""

    def __init__(self, clock: Clock, per_minute: int = PER_MINUTE) -> None:
        self._clock = clock
        self._rate = per_minute / 60
        self._most = float(min(BURST, per_minute))
        self._tokens = self._most
        self._at = clock.monotonic()

    def take(self) -> bool:
        """True when a call may be made now."""
        if not self._rate:
            return True
        now = self._clock.monotonic()
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
