"""Wait for a bell or for a time, whichever comes first, on the injected clock."""

from __future__ import annotations

import asyncio

from sickbay.clock import Clock


class Alarm:
    """One waiter; a ring while nobody waits is kept for the next wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bell = asyncio.Event()

    def ring(self) -> None:
        self._bell.set()

    async def wait(self, seconds: float | None = None) -> None:
        """Return when it rings, or after `seconds` (None = only when it rings)."""
        if seconds is None:
            await self._bell.wait()
        elif not self._bell.is_set():
            tasks = [asyncio.create_task(self._clock.sleep(seconds)), asyncio.create_task(self._wait())]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
        self._bell.clear()

    async def _wait(self) -> None:
        await self._bell.wait()
