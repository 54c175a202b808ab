"""Growing waits between tries, with jitter so that many clients that failed together do not come back together."""

from __future__ import annotations

from sickbay.clock import Randomness


class Backoff:
    """`low`, doubled with each failure up to `high` seconds, each time stretched by up to `jitter` of itself."""

    def __init__(self, randomness: Randomness, low: float, high: float, jitter: float = 0.5) -> None:
        self._randomness = randomness
        self._low = low
        self._high = high
        self._jitter = jitter
        self.failures = 0

    def reset(self) -> None:
        """It worked: the next wait is the shortest again."""
        self.failures = 0

    def next(self) -> float:
        """Seconds to wait after one more failure. Never more than `high` stretched by the jitter."""
        wait = delay(self.failures, self._low, self._high)
        self.failures += 1
        return wait * (1 + self._randomness.uniform(0, self._jitter))


def delay(failures: int, low: float, high: float) -> float:
    """`low` doubled `failures` times, at most `high`; without ever computing a huge power."""
    return min(high, low * 2.0 ** min(failures, 60))
