"""Decide and execute as they are, on a simulated cluster and virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from sickbay.api import names
from sickbay.apiserver.errors import Obj
from sickbay.sim.components import Settings
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import NODES, POOLS, REPAIRS
from sickbay.sim.world import World
from tests.decide import made
from tests.support.simworld import running_world

WIDE = {
    "maxParallelRepairs": "100%",
    "maxParallelValidations": "100%",
    "maxUnavailable": "100%",
    "breaker": {"threshold": "100%", "maxNodes": 100000},
    "storm": {"nodes": 0},
    "budgets": {"perNode": {"repairs": 1000}},
    "provider": {"name": "fake"},
}
REBOOT = made.fault_type("test.reboot", clears_by="condition", remedy=["RebootNode"], validation={"soak": "30s"})


class Living:
    """A world with Sickbay in it, and short words for what happens in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.admin = world.person("admin")

    async def sleep(self, seconds: float) -> None:
        await self.world.clock.sleep(seconds)

    async def until(self, true: Callable[[], bool], within: float, step: float = 1.0) -> float:
        """Wait until it is true. Returns the seconds that took; fails when it takes longer than `within`."""
        waited = 0.0
        while not true():
            assert waited < within, f"not within {within} s: {self.told()}"
            await self.sleep(step)
            waited += step
        return waited

    def told(self) -> str:
        return "; ".join(
            f"{r['metadata']['name']} {r['status'].get('phase', 'Pending')} {r['status'].get('message', '')}"
            for r in self.world.store.list(REPAIRS)
            if r.get("status")
        )

    def condition(self, node: str, status: str = "True", fault: str = "test.reboot") -> None:
        self.world.set_condition(node, "npd", {"type": names.condition_type(fault), "status": status})

    def node(self, name: str) -> Obj:
        return self.world.node(name)

    def cordoned(self, name: str) -> bool:
        return bool(self.node(name)["spec"].get("unschedulable"))

    def repairs(self, node: str) -> list[Obj]:
        return self.world.records_of(REPAIRS, node)

    def status(self, node: str) -> dict[str, Any]:
        """Status of the latest repair of the node; empty when there is none."""
        found = self.repairs(node)
        return dict(found[-1].get("status") or {}) if found else {}

    def phase(self, node: str) -> str:
        status = self.status(node)
        return str(status.get("phase", "Pending")) if self.repairs(node) else ""

    def state(self, node: str, step: str) -> str:
        """State of a step of the latest repair of the node."""
        return str(self.status(node).get("steps", {}).get(step, {}).get("state", ""))

    def pool(self, name: str = "train") -> Obj:
        return self.world.store.get(POOLS, name)

    def slots(self, kind: str, pool: str = "train") -> list[Obj]:
        return [s for s in (self.pool(pool).get("status") or {}).get("slots", []) if s["kind"] == kind]

    def acts(self, node: str) -> list[str]:
        """Destructive acts that reached the node."""
        return [a.kind for a in self.world.journal.actions if a.node == node]

    def written(self) -> list[str]:
        """Objects that we have written, Leases and Events aside."""
        quiet = ("Lease", "Event")
        return [w.object for w in self.world.journal.writes if w.object.split("/")[0] not in quiet]

    def approve(self, node: str, step: str, value: str = "approved") -> None:
        label = names.approval_label(made.PREFIX, step)
        self.admin.merge(NODES, node, {"metadata": {"labels": {label: value}}})

    def uncordon(self, node: str) -> None:
        self.admin.merge(NODES, node, {"spec": {"unschedulable": None}})

    def marks(self, node: str) -> dict[str, Any]:
        """What of labels, annotations, taints and cordon might be ours."""
        obj = self.node(node)
        keys = {**obj["metadata"].get("labels", {}), **obj["metadata"].get("annotations", {})}
        ours = ("sickbay.dev", "karpenter.sh", "cluster-autoscaler")
        found: dict[str, Any] = {k: v for k, v in keys.items() if any(word in k for word in ours)}
        taints = [t["key"] for t in obj["spec"].get("taints", []) if "sickbay" in t["key"]]
        return found | ({"taints": taints} if taints else {}) | ({"cordon": True} if self.cordoned(node) else {})


def yaml_of(struct: Any, kind: str) -> Obj:
    obj = msgspec.to_builtins(struct)
    meta = {"name": obj["metadata"]["name"]}
    return {"apiVersion": "sickbay.dev/v1alpha1", "kind": kind, "metadata": meta, "spec": obj["spec"]}


@asynccontextmanager
async def living(
    nodes: int = 2,
    *,
    rule: Any = None,
    types: Iterable[Mapping[str, Any]] = (REBOOT,),
    envelopes: Iterable[Any] = (),
    components: tuple[str, ...] = ("decide", "execute"),
    replicas: int = 1,
    seed: int = 0,
    boot_seconds: float = 60,
    options: Mapping[str, Any] = {},
    start: bool = True,
    **limits: Any,
) -> AsyncIterator[Living]:
    """A pool `train` of so many nodes with wide limits, but for those given, and Sickbay running on it."""
    mode = limits.pop("mode", "Act")
    made_pool = made.pool(mode=mode, **{**WIDE, **limits})

    def prepare(world: World) -> None:
        for struct, kind in ((made_pool, "RepairPool"), (rule or made.rule(), "RepairRule")):
            world.apply(yaml_of(struct, kind), "admin")
        for envelope in envelopes:
            world.apply(yaml_of(envelope, "RepairPool"), "admin")
        for obj in types:
            world.apply(dict(obj), "admin")

    settings = Settings(governor=False, options={"decide": dict(options)})
    spec = PoolSpec("train", nodes=nodes, boot_seconds=boot_seconds)
    async with running_world(spec, seed=seed, prepare=prepare, settings=settings) as world:
        if start:
            world.start_components(components, replicas)
        yield Living(world)
