"""The life of one process of ours: what makes it possible to kill or freeze it at any point.

A real process that dies stops between two instructions, takes nothing with it and says nothing. Here all its tasks are
cancelled, and everything through which it could still act on the way out (its wire, its clock, its back-ends) refuses.
A process that is frozen (a long pause of the machine, a stopped container) goes on later as if nothing had been: all
those ways out wait.

Which tasks belong to a process is known by a context variable that every task inherits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar
from datetime import datetime, timedelta
from typing import Any

from sickbay.sim.loop import LoopClock

_LIFE: ContextVar[Life | None] = ContextVar("life", default=None)


class Life:
    """One run of one process, from its start to its death."""

    def __init__(self) -> None:
        self.alive = True
        self._running = asyncio.Event()
        self._running.set()
        self._tasks: dict[asyncio.Task[Any], None] = {}
        """In the order in which they began: names count on over all runs of a Python process."""
        self._main: asyncio.Task[None] | None = None

    async def breathe(self) -> None:
        """Wait while frozen; raise CancelledError once dead. Called before and after everything a process does."""
        while self.alive and not self._running.is_set():
            await self._running.wait()
        if not self.alive:
            raise asyncio.CancelledError("the process is dead")

    @property
    def frozen(self) -> bool:
        return not self._running.is_set()

    def freeze(self) -> None:
        self._running.clear()

    def thaw(self) -> None:
        self._running.set()

    def end(self) -> None:
        """Die. Tasks learn of it at their next step; whatever they try then is refused."""
        self.alive = False
        self._running.set()
        for task in list(self._tasks):
            task.cancel()

    def stop(self) -> None:
        """Ask the main task to end; it may still write on its way out."""
        self._running.set()
        if self._main is not None:
            self._main.cancel()

    def own(self, task: asyncio.Task[Any]) -> None:
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run `work` as the main task of this life."""
        context = Context()
        context.run(_LIFE.set, self)
        self._main = asyncio.get_running_loop().create_task(work, name=name, context=context)
        return self._main


def make_task(loop: asyncio.AbstractEventLoop, work: Any, context: Context | None = None) -> asyncio.Task[Any]:
    """A task factory that notes whose task it is."""
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
    life = context.get(_LIFE) if context is not None else _LIFE.get()
    if life is not None:
        life.own(task)
    return task


class LifeClock:
    """`sickbay.clock.Clock` of one process: skewed, and subject to its life."""

    def __init__(self, clock: LoopClock, life: Life) -> None:
        self._clock, self._life = clock, life
        self.skew = 0.0

    def now(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self.skew)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._life.breathe()
        await self._clock.sleep(seconds)
        await self._life.breathe()
