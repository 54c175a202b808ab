"""What `sickbay impact` says from a run in Observe is what the same faults bring about in Act."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.clock import parse_time
from sickbay.decide.impact import Assumptions, impact
from sickbay.sim.components import Settings
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.loop import VirtualLoop, run_virtual
from sickbay.sim.world import World

XID = "NvidiaXID79Error"
SICK = ("train-1", "train-2", "train-3")
RUN = timedelta(hours=2)


@dataclass
class Run:
    """The objects at the end of a run, and the moment."""

    repairs: list[NodeRepair]
    pools: list[RepairPool]
    nodes: list[Node]
    most_out: int
    start: datetime
    now: datetime


def played(mode: str, **limits: Any) -> Run:
    """Three nodes fall sick within a minute; a reboot cures each of them."""
    results: list[Run] = []

    async def main(loop: VirtualLoop) -> None:
        world = World(loop, 0, Settings(governor=False))
        world.fleet.add_pool(PoolSpec(pool="train", nodes=6, boot_seconds=180.0))
        for manifest in _objects(mode, limits):
            world.apply(manifest, "test")
        world.settle()
        world.start()
        world.start_components(("decide", "execute"))
        start = world.clock.now()
        boots = {name: world.node(name)["status"]["nodeInfo"]["bootID"] for name in SICK}
        for name in SICK:
            await world.clock.sleep(20)
            world.set_condition(name, "detector", {"type": XID, "status": "True", "reason": "79", "message": ""})
        most = 0
        while world.clock.now() - start < RUN:
            await world.clock.sleep(5)
            _cure(world, boots)
            most = max(most, sum(names.QUARANTINE in world.node(n)["metadata"].get("annotations", {}) for n in SICK))
        results.append(_result(world, start, most))
        await world.stop()

    run_virtual(main, seed=0)
    return results[0]


def _cure(world: World, boots: dict[str, str]) -> None:
    """The detector stops complaining once the machine has another boot."""
    for name, boot in boots.items():
        node = world.node(name)
        bad = any(c["type"] == XID and c["status"] == "True" for c in node["status"]["conditions"])
        if bad and node["status"]["nodeInfo"]["bootID"] != boot:
            world.set_condition(name, "detector", {"type": XID, "status": "False", "reason": "OK", "message": ""})


def _objects(mode: str, limits: dict[str, Any]) -> list[dict[str, Any]]:
    steps = [{"step": s} for s in ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")]
    spec = {"nodeSelector": {"matchLabels": {"pool": "train"}}, "rule": "r", "mode": mode, "provider": {"name": "fake"}}
    head = {"apiVersion": names.API_VERSION}
    return [
        {
            **head,
            "kind": "RepairRule",
            "metadata": {"name": "r"},
            "spec": {"rules": [{"name": "a", "procedure": steps}]},
        },
        {**head, "kind": "RepairPool", "metadata": {"name": "train"}, "spec": {**spec, **limits}},
    ]


def _result(world: World, start: datetime, most: int) -> Run:
    def all_of(resource: str, struct: type[Any]) -> list[Any]:
        return [msgspec.convert(obj, struct) for obj in world.store.list(resource)]

    return Run(
        repairs=all_of("noderepairs.sickbay.dev", NodeRepair),
        pools=all_of("repairpools.sickbay.dev", RepairPool),
        nodes=all_of("nodes", Node),
        most_out=most,
        start=start,
        now=world.clock.now(),
    )


def seconds(repair: NodeRepair, step: str) -> float:
    return parse_time(repair.status.step(step).started or "").timestamp()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        pytest.param({"maxUnavailable": 1, "breaker": {"threshold": 6}}, "maxUnavailable", id="one node out at a time"),
        pytest.param(
            {"maxUnavailable": "100%", "maxParallelRepairs": 1, "breaker": {"threshold": 6}},
            "maxParallelRepairs",
            id="one repair at a time",
        ),
        pytest.param(
            {"maxUnavailable": "100%", "maxParallelRepairs": 2, "breaker": {"threshold": 2}}, "Breaker", id="breaker"
        ),
    ],
)
def test_impact_foretells_what_act_does(limits: dict[str, Any], limit: str) -> None:
    observed, acted = played("Observe", **limits), played("Act", **limits)
    assert observed.most_out == 0
    given = Assumptions(timedelta(minutes=30), {"RebootNode": timedelta(minutes=3)})
    told = impact(observed.repairs, observed.pools, observed.nodes, observed.start, observed.now, given)
    taken = [r for r in acted.repairs if r.status.step("Quarantine").started]
    assert told.repairs == len(acted.repairs) == len(SICK)
    assert (told.taken, told.most_out) == (len(taken), acted.most_out)
    (blocked,) = told.limits
    assert blocked.limit == limit
    late = "Drain" if limit == "maxParallelRepairs" else "Quarantine"
    waits = [r for r in acted.repairs if not r.status.step(late).started or _waited(r, late)]
    assert blocked.repairs == len(waits)


def _waited(repair: NodeRepair, step: str) -> bool:
    """A step that began more than a minute after the repair did."""
    return seconds(repair, step) - parse_time(repair.status.started_at or "").timestamp() > 60
