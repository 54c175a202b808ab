"""How a part runs: a set of keys to look at, timers, and one synchronous step per key."""

from __future__ import annotations

import asyncio
import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterable

from sickbay.apiserver.writes import Write
from sickbay.sim.hand import Hand, Refused
from sickbay.sim.stage import Stage

RETRY_SECONDS = 1.0
"""After which a step that the API server refused is tried again."""

NODE_CONTROLLER = "system:serviceaccount:kube-system:node-controller"
"""The node lifecycle controller's identity, and the taint evictor's."""

_LEAST = 1e-6


class Part(ABC):
    """One controller. Subclasses give `name`, `touched` and `step`."""

    name = ""
    user = ""
    """Defaults to the service account that the real controller runs under."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.store, self.clock = stage.store, stage.clock
        self.hand = Hand(stage.store, self.user or f"system:serviceaccount:kube-system:{self.name}", f"sim-{self.name}")
        self._ready: dict[str, None] = {}
        self._due: list[tuple[float, str]] = []
        self._wanted: dict[str, float] = {}
        self._woken = asyncio.Event()
        stage.store.after_write(self._on_write, self.heeds())

    def heeds(self) -> Iterable[str]:
        """The resources whose writes concern it; none named = all of them."""
        return ()

    @abstractmethod
    def touched(self, write: Write) -> Iterable[str]:
        """The keys that a write makes worth another look."""

    @abstractmethod
    def step(self, key: str) -> float | None:
        """Bring one key in order. Returns the seconds after which to look again in any case; None = when woken."""

    def wake(self, key: str) -> None:
        self._ready[key] = None
        self._woken.set()

    def wake_after(self, key: str, seconds: float) -> None:
        """Look again then, or earlier if something else asks for it."""
        # A step that finds itself a rounding error too early must not find the same moment again.
        at = self.clock.monotonic() + max(_LEAST, seconds)
        if at < self._wanted.get(key, float("inf")):
            self._wanted[key] = at
            heapq.heappush(self._due, (at, key))
            self._woken.set()

    def _on_write(self, write: Write) -> None:
        if write.old is not write.new:
            for key in self.touched(write):
                self.wake(key)

    @property
    def busy(self) -> bool:
        """True while a key waits for its step."""
        return bool(self._ready)

    async def run(self) -> None:
        """Work for ever."""
        while True:
            self._take_due()
            self.settle()
            await self._wait()

    def settle(self) -> None:
        """Look at every key that is ready, and at those that become so meanwhile."""
        while self._ready:
            key = next(iter(self._ready))
            del self._ready[key]
            try:
                again = self.step(key)
            except Refused:
                again = RETRY_SECONDS
            if again is not None:
                self.wake_after(key, again)

    def _take_due(self) -> None:
        # The loop rings a timer up to its resolution early; to wait for it again would be to wait for ever.
        now = self.clock.monotonic() + _LEAST
        while self._due and self._due[0][0] <= now:
            at, key = heapq.heappop(self._due)
            if self._wanted.get(key) == at:
                del self._wanted[key]
                self._ready[key] = None

    async def _wait(self) -> None:
        self._woken.clear()
        if self._ready:
            return
        timer: asyncio.TimerHandle | None = None
        if self._due:
            timer = self.stage.loop.call_at(self._due[0][0], self._woken.set)
        try:
            await self._woken.wait()
        finally:
            if timer is not None:
                timer.cancel()


def pod_key(pod_meta: dict[str, str]) -> str:
    return f"{pod_meta['namespace']}/{pod_meta['name']}"
