"""A queue of keys for level-based workers: what matters is that a key is looked at, not how often it was mentioned.

* A key waits at most once, however often it is added. Added while a worker has it, it waits again afterwards.
* One worker per key at a time.
* `add_after` wakes a key later; of several wishes the earliest counts. It is kept apart from the waiting keys: being
  looked at now does not cancel the alarm, since an extra look is harmless and a lost one is not.
* Priority is a head start: a key of priority p is served as if it had come p * HEAD_START seconds earlier. So urgent
  keys pass, and no key waits for ever behind them. Within one priority: first come, first served.
* A worker that fails puts the key back after a wait that doubles per key until a look succeeds.

    queue = WorkQueue(clock, randomness, name="decide")
    await queue.run(reconcile, workers=4)

All time is the injected clock's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

from sickbay.clock import Clock, Randomness
from sickbay.kube import errors
from sickbay.kube.backoff import delay
from sickbay.kube.keyqueue import KeyQueue
from sickbay.kube.metrics import KubeMetrics, QueueMetrics

K = TypeVar("K", bound=Hashable)

RETRY_LOW, RETRY_HIGH = 0.5, 300.0
"""Seconds a failed key waits: after the first failure, and at most."""

RETRY_JITTER = 0.2

log = structlog.get_logger(__name__)

Reconcile = Callable[[K], Awaitable[float | None]]
"""Looks at one key. Returns the seconds until it wants to look again, or None. Raising means: later, with back-off."""


class Closed(Exception):
    """The queue was closed; nothing more is handed out."""


class WorkQueue(Generic[K]):
    """See the module."""

    def __init__(
        self,
        clock: Clock,
        randomness: Randomness,
        *,
        name: str = "work",
        retry_low: float = RETRY_LOW,
        retry_high: float = RETRY_HIGH,
        metrics: KubeMetrics | None = None,
    ) -> None:
        self.name = name
        self._clock = clock
        self._randomness = randomness
        self._retry_low, self._retry_high = retry_low, retry_high
        self._metrics = QueueMetrics(metrics or KubeMetrics(), name)
        self._keys: KeyQueue[K] = KeyQueue()
        self._more = asyncio.Event()
        self._idle = 0
        self._armed = float("inf")
        self._alarm: asyncio.Task[None] | None = None
        self._closed = False
        self._metrics.depth.set_function(lambda: len(self._keys))

    def __len__(self) -> int:
        """Keys that wait to be taken."""
        return len(self._keys)

    @property
    def quiet(self) -> bool:
        """Nothing waits and nothing is in work (alarms may be set)."""
        return not len(self._keys) and not self._keys.in_work

    def add(self, key: K, priority: int = 0) -> None:
        """Let the key be looked at as soon as its turn comes."""
        self._metrics.adds.inc()
        self._keys.add(key, self._clock.monotonic(), priority)
        self._more.set()

    def add_after(self, key: K, seconds: float, priority: int = 0) -> None:
        """Let the key be looked at in so many seconds; an earlier alarm of the same key stands."""
        if seconds <= 0:
            self.add(key, priority)
            return
        self._metrics.adds.inc()
        self._keys.add_at(key, self._clock.monotonic() + seconds, priority)
        if self._idle:
            self._arm()

    def retry(self, key: K) -> float:
        """Put the key back after its back-off. Returns the seconds."""
        wait = delay(self._keys.fail(key), self._retry_low, self._retry_high)
        wait *= 1 + self._randomness.uniform(0, RETRY_JITTER)
        self._metrics.retries.inc()
        self.add_after(key, wait, self._keys.priority(key))
        return wait

    def forget(self, key: K) -> None:
        """It worked: the next failure waits the shortest time again."""
        self._keys.forget(key)

    async def get(self) -> K:
        """The next key; it is the caller's until `done`. Raises Closed."""
        while True:
            if self._closed:
                raise Closed
            now = self._clock.monotonic()
            self._keys.ring(now)
            taken = self._keys.take()
            if taken is not None:
                self._metrics.wait_seconds.observe(now - taken[1].since)
                return taken[0]
            await self._pause()

    def done(self, key: K) -> None:
        """The caller has finished with the key."""
        if self._keys.done(key, self._clock.monotonic()):
            self._more.set()

    def close(self) -> None:
        """Hand out nothing more; `run` ends when the keys in work are done."""
        self._closed = True
        self._more.set()
        if self._alarm is not None:
            self._alarm.cancel()

    async def run(self, reconcile: Reconcile[K], workers: int = 4) -> None:
        """Serve keys with so many workers until closed or cancelled. No failure of a key ends it."""
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(workers):
                    group.create_task(self._serve(reconcile), name=f"{self.name}-{number}")
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
                await asyncio.wait([self._alarm])

    async def _serve(self, reconcile: Reconcile[K]) -> None:
        while True:
            try:
                key = await self.get()
            except Closed:
                return
            started = self._clock.monotonic()
            try:
                await self._work(key, reconcile)
            finally:
                self.done(key)
                self._metrics.work_seconds.observe(self._clock.monotonic() - started)

    async def _work(self, key: K, reconcile: Reconcile[K]) -> None:
        try:
            again = await reconcile(key)
        except errors.ApiError as error:
            wait = self.retry(key)
            level = log.info if isinstance(error, errors.Conflict) else log.warning
            level("will look again", queue=self.name, key=key, error=str(error), seconds=round(wait, 1))
        except Exception:
            wait = self.retry(key)
            log.exception("a worker failed", queue=self.name, key=key, seconds=round(wait, 1))
        else:
            self.forget(key)
            if again is not None:
                self.add_after(key, again)

    async def _pause(self) -> None:
        """Until something may be ready. All idle workers wake and look; those that find nothing pause again."""
        self._more.clear()
        self._idle += 1
        self._arm()
        try:
            await self._more.wait()
        finally:
            self._idle -= 1

    def _arm(self) -> None:
        """Have one task sleep until the next alarm; an earlier alarm replaces it."""
        when = self._keys.next_alarm()
        if when is None or (when >= self._armed and self._alarm is not None and not self._alarm.done()):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._armed = when
        self._alarm = asyncio.get_running_loop().create_task(self._ring(when), name=f"{self.name}-alarm")

    async def _ring(self, when: float) -> None:
        await self._clock.sleep(when - self._clock.monotonic())
        self._armed = float("inf")
        self._more.set()
