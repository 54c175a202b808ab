"""An asyncio event loop on virtual time, the same for the same seed.

Time stands still while anything can run and jumps to the next timer when nothing can. A day of a cluster's life costs
what its events cost. Three rules make a run reproducible and useful:

* The next callback to run is drawn by lot (from the seed) among the tasks that are ready, because the real world
  promises no order between tasks; plain callbacks, which carry the bytes of a stream or the end of a future, keep the
  order in which they were scheduled. (A naive shuffle reorders bytes of one connection.)
* Nothing outside takes part: no sockets, no threads, no signals. What tries gets an error that says so.
* A loop in which nothing is ready and no timer runs would wait for ever. It raises `DeadlockError`, which names what
  every task waits for. A loop in which time no longer moves raises `StandstillError`.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import base_events, events
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar

from sickbay.clock import Randomness

T = TypeVar("T")

EPOCH = datetime(2027, 3, 1, 8, 0, 0, tzinfo=UTC)
"""Wall time at second 0 of a run. Any fixed Monday morning would do."""

STEPS_PER_INSTANT = 1_000_000
"""Callbacks run at one instant before the loop is taken for one that spins."""
_WITNESSED = 500

_LONGEST_JUMP = 86400.0
"""asyncio never waits longer than a day at a time (`MAXIMUM_SELECT_TIMEOUT`)."""

_RESOLUTION = 1e-6


class DeadlockError(RuntimeError):
    """Nothing is ready, no timer runs, and the main task is not done."""


class StandstillError(RuntimeError):
    """So many callbacks ran at one instant that time will not go on."""


class OutsideError(RuntimeError):
    """Code under simulation reached for a socket, a thread or a signal."""


class _Ready:
    """The loop's ready queue: tasks by lot, plain callbacks in order. Speaks the part of `deque` that asyncio uses."""

    def __init__(self, randomness: Randomness | None) -> None:
        self._randomness = randomness
        self._first: deque[asyncio.Handle] = deque()
        self._tasks: list[asyncio.Handle] = []
        self._plain: deque[asyncio.Handle] = deque()
        self.witness: Counter[str] | None = None
        """Who runs how often, while time stands suspiciously still."""

    def __len__(self) -> int:
        return len(self._first) + len(self._tasks) + len(self._plain)

    def append(self, handle: asyncio.Handle) -> None:
        if isinstance(handle, _Timer) and handle.first:
            self._first.append(handle)
        elif self._randomness is not None and _task_of(handle) is not None:
            self._tasks.append(handle)
        else:
            self._plain.append(handle)

    def put_first(self, handle: asyncio.Handle) -> None:
        self._first.append(handle)

    def popleft(self) -> asyncio.Handle:
        handle = self._pop()
        if self.witness is not None:
            task = _task_of(handle)
            self.witness[f"{task.get_name()} at {_place(task)}" if task else repr(handle)] += 1
        return handle

    def _pop(self) -> asyncio.Handle:
        if self._first:
            return self._first.popleft()
        if not self._tasks:
            return self._plain.popleft()
        choices = len(self._tasks) + (1 if self._plain else 0)
        chosen = self._randomness.lot(choices) if self._randomness and choices > 1 else 0
        if chosen == len(self._tasks):
            return self._plain.popleft()
        last = self._tasks.pop()
        if chosen == len(self._tasks):
            return last
        taken, self._tasks[chosen] = self._tasks[chosen], last
        return taken

    def clear(self) -> None:
        self._first.clear()
        self._tasks.clear()
        self._plain.clear()


def _task_of(handle: asyncio.Handle) -> asyncio.Task[Any] | None:
    """The task that a handle resumes. A task has at most one step ready, so lots among tasks reorder no stream."""
    owner = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    return owner if isinstance(owner, asyncio.Task) else None


class _Timer(asyncio.TimerHandle):
    """A timer that keeps its place among timers of the same moment, which asyncio's heap does not promise."""

    def __init__(self, place: int, *args: Any) -> None:
        super().__init__(*args)
        self._place = place
        self.first = False
        """Goes before everything else of its moment."""

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, _Timer):
            return NotImplemented
        mine, its = self._when, other._when  # type: ignore[attr-defined]
        return bool(mine < its or (mine == its and self._place < other._place))


class _NoSelector:
    """Where asyncio would wait for the outside world, time is moved instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        self._loop._wait(timeout)
        return []


class VirtualLoop(base_events.BaseEventLoop):
    """See the module. `seed=None` runs everything first in, first out."""

    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, seed: int | None = 0) -> None:
        super().__init__()
        self._now = 0.0
        self._steps = 0
        self._timers = 0
        self._clock_resolution = _RESOLUTION
        self._queue = self._ready = _Ready(None if seed is None else Randomness(seed))
        self._at_rest: list[Callable[[], None]] = []
        self._selector = _NoSelector(self)

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now

    def _wait(self, timeout: float | None) -> None:
        if timeout != 0 and self._at_rest:
            waiting, self._at_rest = self._at_rest, []
            for callback in waiting:
                callback()
            return
        if timeout is None:
            raise DeadlockError("nothing can run and no timer is set; " + _describe(asyncio.all_tasks(self)))
        if timeout > 0 and self._scheduled:
            # Exactly to the timer: a sum of floats may end just before it, and who compares moments would wait again.
            when = self._scheduled[0].when()
            self._now = max(self._now, when if when - self._now <= _LONGEST_JUMP else self._now + timeout)
            self._steps, self._queue.witness = 0, None
            return
        self._steps += max(1, len(self._ready))
        if self._steps > STEPS_PER_INSTANT - _WITNESSED:
            self._queue.witness = self._queue.witness or Counter()
        if self._steps > STEPS_PER_INSTANT:
            busiest = ", ".join(name for name, _ in (self._queue.witness or Counter()).most_common(3))
            self._steps = 0
            raise StandstillError(f"time stands at {self._now:.3f} s; busiest: {busiest}")

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        if self.is_closed():
            raise RuntimeError("the loop is closed")
        self._timers += 1
        timer = _Timer(self._timers, when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        # As asyncio does it, but for the looks at debug mode: it is called for every step of every task.
        if self.is_closed():
            raise RuntimeError("the loop is closed")
        handle = asyncio.Handle(callback, args, self, context)
        self._queue.append(handle)
        return handle

    def call_first(self, callback: Callable[[], None]) -> None:
        """Run `callback` at this moment before anything that is ready, after others that came this way."""
        self._queue.put_first(asyncio.Handle(callback, [], self))

    def call_first_at(self, when: float, callback: Callable[[], None]) -> None:
        """Run `callback` at that moment before anything else of it, in the order of these calls."""
        timer = self.call_at(when, callback)
        assert isinstance(timer, _Timer)
        timer.first = True

    def call_at_rest(self, callback: Callable[[], None]) -> None:
        """Run `callback` when nothing more can happen at this moment, just before time moves on."""
        self._at_rest.append(callback)

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps, so nobody needs waking."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:  # type: ignore[override]
        raise OutsideError(f"a thread was asked for ({func!r}); a simulation has none")

    async def getaddrinfo(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise OutsideError(f"an address was looked up ({args[0]!r}); a simulation has no network")

    async def create_connection(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise OutsideError("a connection was opened; a simulation has no network")

    async def create_server(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise OutsideError("a port was opened; a simulation has no network")


def _describe(tasks: set[asyncio.Task[Any]]) -> str:
    waiting = sorted(f"{task.get_name()} at {_place(task)}" for task in tasks if not task.done())
    return "waiting: " + ("; ".join(waiting) if waiting else "no task")


def _place(task: asyncio.Task[Any]) -> str:
    """The innermost frame that can be seen of a suspended task."""
    awaited: Any = task.get_coro()
    place = "its start"
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        frame = frame or getattr(awaited, "ag_frame", None)
        if frame is not None:
            place = f"{frame.f_code.co_qualname} ({frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno})"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return place


class LoopClock:
    """`sickbay.clock.Clock` on a loop's time. `skew` is how many seconds this component's wall clock is ahead."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: datetime = EPOCH, skew: float = 0.0) -> None:
        self._loop = loop
        self._epoch = epoch
        self.skew = skew

    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=self._loop.time() + self.skew)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))  # noqa: TID251 - the loop is the clock


def run_virtual(
    main: Callable[[VirtualLoop], Coroutine[Any, Any, T]], seed: int | None = 0, until: float | None = None
) -> T:
    """Run `main(loop)` to its end on a fresh virtual loop, cancel what it left behind, and return its result.

    Raises TimeoutError when it is not done after `until` virtual seconds, DeadlockError when it can never be.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        return runner.run(_bounded(main(loop), loop, until))


async def _bounded(work: Coroutine[Any, Any, T], loop: VirtualLoop, until: float | None) -> T:
    if until is None:
        return await work
    task = loop.create_task(work, name="main")
    done, _ = await asyncio.wait({task}, timeout=until)
    if done:
        return task.result()
    state = _describe(asyncio.all_tasks(loop) - ({current} if (current := asyncio.current_task()) else set()))
    task.cancel()
    await asyncio.wait({task})
    raise TimeoutError(f"not done after {until:g} virtual seconds; {state}")


def new_virtual_loop() -> events.AbstractEventLoop:
    """A loop factory for test folders that run on virtual time (see tests/support/virtual.py)."""
    return VirtualLoop(seed=0)
