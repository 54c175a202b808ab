"""How an agent waits between two looks at its host.

A host has to be asked: what the driver, a service manager and the disk would say nobody tells us. So an agent looks
again after a fixed time, for ever. Where the host is a simulated one, whose changes are known, a wait may last until
one of them: `stir` says that something has changed of which a look could tell, `rests` whether looks would find what
the last one found as long as nothing does.
"""

from __future__ import annotations

from collections.abc import Callable

from sickbay.clock import Clock
from sickbay.detect.alarm import Alarm


class Rhythm:
    """A look after each period, whatever there is to see."""

    async def pause(self, alarm: Alarm, seconds: float, rests: Callable[[], bool]) -> None:
        """Wait until the alarm rings, or for so long."""
        await alarm.wait(seconds)

    async def sleep(self, clock: Clock, seconds: float, rests: Callable[[], bool]) -> None:
        """The same without an alarm."""
        await clock.sleep(seconds)

    def stir(self) -> None:
        """Something has changed."""

    def stop(self) -> None:
        """The agent has ended."""
