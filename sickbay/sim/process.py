"""Our own processes in a world: started, killed, frozen and started again.

Each component runs as a process of its own, with its own client, clock, randomness and identity, as it would in its
own container; replicas of one component compete for its Lease. A process that ends with an error is a finding: the
world notes it as a problem, and it is started again, as a kubelet would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
from prometheus_client import CollectorRegistry

from sickbay.apiserver.transport import DirectTransport
from sickbay.clock import Randomness
from sickbay.kube.client import Client
from sickbay.kube.metrics import KubeMetrics
from sickbay.sim.beats import BeatClient, Lane
from sickbay.sim.calls import Calls
from sickbay.sim.life import Life, LifeClock
from sickbay.sim.loop import LoopClock
from sickbay.sim.wire import CrashPlan, Doom, Line, Weather, Wire

RESTART_SECONDS = 5.0
STOP_SECONDS = 30.0
"""terminationGracePeriodSeconds: a process that is asked to stop is killed after so long."""

__all__ = ["CrashPlan", "Process", "Running", "Surroundings"]


@dataclass(slots=True)
class Surroundings:
    """What processes are given by their world."""

    clock: LoopClock
    weather: Weather
    transport: Callable[[], DirectTransport]
    problem: Callable[[str, BaseException], None]
    """Told of a process that ended with an error."""
    watch_pace: float = 1.0
    lane: Callable[[Life, Line], Lane] | None = None
    """The short way of a process to its Leases, where the run takes it."""


@dataclass(slots=True)
class Running:
    """One run of a process: what the component is built from."""

    component: str
    node: str
    identity: str
    """Unique among replicas; leader election shows it."""
    life: Life
    clock: LifeClock
    client: Client
    randomness: Randomness
    registry: CollectorRegistry
    """The metrics of this run."""
    calls: Calls
    """The way to back-ends and to the host."""


class Process:
    """See the module. `main` builds the component and runs it until it is cancelled."""

    def __init__(
        self,
        component: str,
        surroundings: Surroundings,
        main: Callable[[Running], Coroutine[Any, Any, None]],
        *,
        token: str,
        randomness: Randomness,
        node: str = "",
        replica: int = 0,
    ) -> None:
        self.component, self.node, self.replica = component, node, replica
        self._around, self._main = surroundings, main
        self._token, self._randomness = token, randomness
        self._skew = 0.0
        self._doom = Doom()
        self._running: Running | None = None
        self._restart: asyncio.TimerHandle | None = None
        self.starts = 0
        self.registry: CollectorRegistry | None = None
        """The metrics of the last run: what a process tells of, also while it is down."""

    @property
    def name(self) -> str:
        return f"{self.component}/{self.node}" if self.node else f"{self.component}-{self.replica}"

    @property
    def running(self) -> Running | None:
        return self._running

    # --- what the timeline may do

    def start(self) -> None:
        """Begin, unless it runs already."""
        self._forget_restart()
        if self._running is not None:
            return
        self.starts += 1
        life = Life()
        clock = LifeClock(self._around.clock, life)
        clock.skew = self._skew
        around = self._around
        wire = Wire(
            around.transport(), around.weather, life, around.clock, self.component, self.node, self.crash, self._doom
        )
        http = httpx2.AsyncClient(
            transport=wire,
            base_url="http://apiserver",
            headers={"authorization": f"Bearer {self._token}"},
            timeout=None,
        )
        registry = self.registry = CollectorRegistry()
        agent = f"sickbay-{self.component}"
        line = Line(wire, self._token, agent)
        lane = around.lane(life, line) if around.lane is not None else None
        made = Client if lane is None else partial(BeatClient, lane)
        client = made(http, agent, clock, KubeMetrics(registry), line, around.watch_pace)
        randomness = self._randomness.fork()
        calls = Calls(life, self._doom, self.crash)
        self._running = Running(self.component, self.node, self.name, life, clock, client, randomness, registry, calls)
        life.spawn(self._guard(self._running), self.name)

    def crash(self, restart: float = RESTART_SECONDS) -> None:
        """Die at once; come back after `restart` seconds."""
        if self._end():
            self._start_after(restart)

    def kill(self) -> None:
        """Die at once and stay away: the machine went down."""
        self._end()
        self._forget_restart()

    def crash_on(self, plan: CrashPlan | None) -> None:
        """Plan a crash; None takes back what is planned."""
        self._doom.plan = plan

    def stop(self) -> None:
        """Asked to end: it may say goodbye, and is killed if that takes too long. It does not come back by itself."""
        self._forget_restart()
        running, self._running = self._running, None
        if running is None:
            return
        running.life.stop()
        asyncio.get_running_loop().call_later(STOP_SECONDS, running.life.end)

    def pause(self) -> None:
        if self._running is not None:
            self._running.life.freeze()

    def resume(self) -> None:
        if self._running is not None:
            self._running.life.thaw()

    @property
    def skew(self) -> float:
        """Seconds by which the wall clock of this process is ahead."""
        return self._skew

    @skew.setter
    def skew(self, seconds: float) -> None:
        self._skew = seconds
        if self._running is not None:
            self._running.clock.skew = seconds

    # --- inside

    async def _guard(self, running: Running) -> None:
        try:
            await self._main(running)
            error: BaseException = RuntimeError("it returned, though nobody asked it to")
        except asyncio.CancelledError:
            return
        except BaseException as raised:
            error = raised
        if running is self._running:
            self._around.problem(self.name, error)
            self.crash()

    def _end(self) -> bool:
        running, self._running = self._running, None
        if running is None:
            return False
        running.life.end()
        return True

    def _start_after(self, seconds: float) -> None:
        self._forget_restart()
        self._restart = asyncio.get_running_loop().call_later(seconds, self.start)

    def _forget_restart(self) -> None:
        if self._restart is not None:
            self._restart.cancel()
            self._restart = None
