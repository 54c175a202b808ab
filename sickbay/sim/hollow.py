"""Hollow kubelets for any API server, in real time: the simulator's own, on a `Replica` of the server's objects.

Each write goes out under the identity of the node's kubelet, so that the server judges it as it judges a real one.
Machines join at any time; one that is down, or has left, is silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Caller
from sickbay.clock import Clock, Randomness
from sickbay.kube.client import Client
from sickbay.sim.journal import Journal
from sickbay.sim.machine import Machine
from sickbay.sim.parts.kubelet import Kubelets
from sickbay.sim.parts.pods import AT_ONCE, Pods
from sickbay.sim.replica import Replica
from sickbay.sim.stage import Stage


class HollowKubelets:
    """See the module. `reader` may watch nodes and pods and read Leases; `writer` speaks for `system:node:NAME`.

    `pace` is how much rarer than usual heartbeats are.
    """

    def __init__(
        self,
        clock: Clock,
        randomness: Randomness,
        reader: Client,
        writer: Callable[[Caller], Client],
        pace: float = 1.0,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.store = Replica(clock, randomness.fork(), reader, writer)
        self._stage = Stage(loop, clock, randomness, self.store, Journal(clock.monotonic), pace)
        self._kubelets = Kubelets(self._stage)
        self.pods = Pods(self._stage, AT_ONCE)
        self._known: set[str] = set()

    async def run(self) -> None:
        """Keep all kubelets alive until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.store.run())
            group.create_task(self._kubelets.run())
            group.create_task(self.pods.run())

    def join(
        self, machine: Machine, labels: dict[str, str], taints: tuple[Obj, ...] = (), provider_id: str = ""
    ) -> None:
        """The kubelet starts: its Node is registered, and reported ready from then on."""
        self._stage.machines[machine.name] = machine
        self._kubelets.register(machine, labels, taints, provider_id or f"hollow://{machine.serial}")
        if machine.name not in self._known:
            self._known.add(machine.name)
            self._kubelets.adopt(machine)
            self.pods.adopt(machine)

    def leave(self, name: str) -> None:
        """The kubelet stops for good; its Node is for others to delete."""
        self._stage.machines.pop(name, None)
