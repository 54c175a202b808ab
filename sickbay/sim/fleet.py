"""The fleet: hollow machines and the Nodes they are registered as, coming, going and coming back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sickbay.apiserver.errors import Obj
from sickbay.sim.cloud import Behaviour, Cloud
from sickbay.sim.hand import NODES
from sickbay.sim.machine import DEFAULT_BOOT_SECONDS, Machine
from sickbay.sim.parts.kubelet import Kubelets
from sickbay.sim.parts.lifecycle import node_controller
from sickbay.sim.parts.pods import Pods
from sickbay.sim.stage import Stage

RECREATED_SECONDS = 10.0
"""Until the kubelet of a Node that was created again reports."""


@dataclass(slots=True)
class PoolSpec:
    """Nodes of one kind, named `<pool>-<k>` and labelled `pool=<pool>`."""

    pool: str
    nodes: int
    gpus: int = 8
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Obj, ...] = ()
    zone: str = ""
    rack: int = 0
    """Nodes to a rack; 0 = no racks."""
    boot_seconds: float = DEFAULT_BOOT_SECONDS
    behaviour: Behaviour = field(default_factory=Behaviour)


class Fleet:
    """See the module. `on_machine` is told of each machine that joins."""

    def __init__(self, stage: Stage, cloud: Cloud, kubelets: Kubelets, pods: Pods) -> None:
        self._stage, self._cloud, self._kubelets, self._pods = stage, cloud, kubelets, pods
        self._pools: dict[str, PoolSpec] = {}
        self._made: dict[str, int] = {}
        self._provider_ids: dict[str, str] = {}
        self.on_machine: list[Callable[[Machine], None]] = []
        cloud.on_replace = self.replace

    def add_pool(self, spec: PoolSpec) -> None:
        self._pools[spec.pool] = spec
        self._cloud.behaviours[spec.pool] = spec.behaviour
        self.grow(spec.pool, spec.nodes)

    def grow(self, pool: str, count: int) -> None:
        """Raises LookupError for a pool that is not there."""
        if pool not in self._pools:
            raise LookupError(f"there is no pool {pool!r} in the fleet; known: {', '.join(self._pools) or 'none'}")
        for _ in range(count):
            self._join(self._pools[pool])

    def _join(self, spec: PoolSpec) -> None:
        index = self._made.get(spec.pool, 0)
        self._made[spec.pool] = index + 1
        name = f"{spec.pool}-{index}"
        stage = self._stage
        machine = Machine(name, spec.gpus, stage.clock, stage.randomness, spec.pool, spec.boot_seconds)
        stage.machines[name] = self._cloud.machines[name] = machine
        self._provider_ids[name] = f"fake:///{name}/{stage.randomness.hex(8)}"
        self._kubelets.register(machine, self._labels(spec, index), spec.taints, self._provider_ids[name])
        self._kubelets.adopt(machine)
        self._pods.adopt(machine)
        for listener in self.on_machine:
            listener(machine)

    def _labels(self, spec: PoolSpec, index: int) -> dict[str, str]:
        labels = {"pool": spec.pool}
        if spec.zone:
            labels["topology.kubernetes.io/zone"] = spec.zone
        if spec.rack:
            labels["sickbay.dev/rack"] = f"{spec.pool}-rack-{index // spec.rack}"
        return {**labels, **spec.labels}

    def recreate(self, name: str, provider_id: str = "", keep_boot: bool = False) -> None:
        """The Node is made again under its name, with a new UID; its kubelet reports a little later.

        Raises LookupError for a name that no machine ever had.
        """
        machine = self._stage.machines.get(name)
        if machine is None:
            raise LookupError(f"there is no machine {name!r}")
        if provider_id:
            self._provider_ids[name] = provider_id
        spec = self._pools[machine.pool]
        index = int(name.removeprefix(f"{spec.pool}-"))
        machine.renew(keep_boot)
        # A machine of that name has been here before: its old object goes first.
        node_controller(self._stage).discard(NODES, name)
        self._kubelets.register(machine, self._labels(spec, index), spec.taints, self._provider_ids[name])
        self._kubelets.silence(name, RECREATED_SECONDS)

    def replace(self, machine: Machine) -> None:
        """The instance is given back and another one joins the pool under the next name once it has booted."""
        machine.power_off()
        self._stage.machines.pop(machine.name, None)
        self._cloud.machines.pop(machine.name, None)
        node_controller(self._stage).discard(NODES, machine.name)
        self._stage.loop.call_later(machine.boot_seconds, self._join, self._pools[machine.pool])
