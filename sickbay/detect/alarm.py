"""Wait for a bell or for a time, whichever comes first, on the injected clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sickbay.clock import Clock


class Alarm:
    """One waiter; a ring while nobody waits is kept for the next wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = False
        self._waiter: asyncio.Future[None] | None = None
        self.heard: Callable[[], None] | None = None
        """Called when it rings while nobody waits."""

    @property
    def rung(self) -> bool:
        """Whether it has rung, and the next wait returns at once."""
        return self._rung

    def ring(self) -> None:
        if self._waiter is None:
            self._rung = True
            if self.heard is not None:
                self.heard()
        else:
            _wake(self._waiter)

    async def wait(self, seconds: float | None = None) -> None:
        """Return when it rings, or after `seconds` (None = only when it rings)."""
        if self._rung:
            self._rung = False
            return
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        timer = None
        if seconds is not None:
            timer = asyncio.ensure_future(self._clock.sleep(seconds))
            timer.add_done_callback(lambda _: _wake(waiter))
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
