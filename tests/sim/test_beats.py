"""Shortcuts for the beats of idle parts leave a world as it is without them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from sickbay.apiserver.renewal import LEASES, renewed
from sickbay.apiserver.store import MERGE, Store
from sickbay.apiserver.writes import Caller
from sickbay.clock import Randomness
from sickbay.sim.components import Settings
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.logs import listening
from sickbay.sim.loop import LoopClock, VirtualLoop, run_virtual
from sickbay.sim.scenario.defaults import objects_of
from sickbay.sim.scenario.spec import read
from sickbay.sim.wire import Fault
from sickbay.sim.world import World

NODES, MINUTES = 4, 90
(SCENARIO,) = read(
    "s",
    f"""
apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {{name: s}}
spec: {{fleet: [{{pool: train, nodes: {NODES}}}]}}
""",
)
LINE = "NVRM: Xid (PCI:0000:3b:00): {}, pid=1, name=python3, something is wrong."


class Trouble:
    """What befalls a world, drawn from a seed: every kind of change that ends the rest of an agent."""

    def __init__(self, world: World, seed: int) -> None:
        self._world, self._dice = world, Randomness(1000 + seed)

    def arrange(self) -> None:
        for _ in range(10):
            # Whole seconds, or the very moment of a beat: both must come out the same.
            at = self._dice.below(MINUTES * 60 - 900) if self._dice.chance(0.5) else 30 * self._dice.below(MINUTES)
            self._world.loop.call_first_at(
                float(at), self._strike(self._dice.below(9), f"train-{self._dice.below(NODES)}")
            )

    def _strike(self, kind: int, node: str) -> Any:
        world, machine = self._world, self._world.machine(node)
        return {
            0: lambda: machine.print_kernel(LINE.format(79)),
            1: lambda: machine.print_kernel(LINE.format(63)),
            2: lambda: machine.set_gpu(2, row_remap_failure=True),
            3: lambda: machine.set_gpu(1, temperature_margin=-1),
            4: lambda: machine.set_service("containerd", "inactive"),
            5: lambda: machine.reboot(60.0),
            6: lambda: [process.crash(45.0) for process in world.processes_of("agent", (node,))],
            7: lambda: world.person("admin").merge("nodes", node, {"metadata": {"labels": {"seen": "yes"}}}),
            8: lambda: world.add_fault(Fault(rate=0.5), 100.0),
        }[kind]  # fmt: skip


def story(seed: int, shortcuts: bool) -> dict[str, Any]:
    """A run, first in first out, so that only what is done to the world makes a difference."""
    found: dict[str, Any] = {}

    async def main(loop: VirtualLoop) -> None:
        world = World(loop, seed, Settings(governor=False, shortcuts=shortcuts))
        world.fleet.add_pool(PoolSpec("train", nodes=NODES))
        for manifest in objects_of(SCENARIO):
            world.apply(manifest, "test")
        world.settle()
        world.start()
        world.start_components(("agent", "convert", "decide", "execute", "notify"))
        Trouble(world, seed).arrange()
        await world.clock.sleep(MINUTES * 60.0 + 7.0)
        found.update(told(world))
        await world.stop()

    with listening(lambda text: found.setdefault("mistakes", []).append(text)):
        run_virtual(main, seed=None)
    return found


def told(world: World) -> dict[str, Any]:
    """What the run has come to: acts, calls, messages, writes and objects, without names drawn by lot."""
    journal = world.journal
    return {
        "actions": sorted((round(a.at, 3), a.kind, a.node, a.target) for a in journal.actions),
        "calls": sorted((round(c.at, 3), c.call, c.answer, c.node) for c in journal.calls),
        "messages": sorted((round(m.at, 3), m.category, m.node, plain(m.text, world)) for m in journal.messages),
        "writes": sorted((round(w.at, 3), w.by, w.verb, w.object) for w in journal.writes if "Event/" not in w.object),
        "objects": sorted(plain(json.dumps(shown(obj), sort_keys=True), world) for obj in objects(world.store)),
        "problems": world.problems,
    }


def objects(store: Store) -> list[dict[str, Any]]:
    wanted = ("nodes", LEASES, "noderepairs.sickbay.dev", "nodetasks.sickbay.dev", "repairpools.sickbay.dev")
    return [obj for resource in wanted for obj in store.list(resource)]


def shown(obj: dict[str, Any]) -> dict[str, Any]:
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("resourceVersion", "generation")}
    return {**obj, "metadata": meta}


def plain(text: str, world: World) -> str:
    """UIDs and boot ids are drawn in the order of what happens at one moment."""
    for obj in objects(world.store):
        text = text.replace(obj["metadata"]["uid"], "UID").replace(obj["metadata"]["uid"][:8], "UID")
    return text


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12))])
def test_a_world_with_shortcuts_comes_to_the_same(seed: int) -> None:
    with_them, without = story(seed, True), story(seed, False)
    for what, usual in without.items():
        assert with_them[what] == usual, what
    assert len(without["writes"]) > 500


# --- renewals in one step

ME = Caller("me", ("system:authenticated",), "agent")
RENEWAL = {"holderIdentity": "a", "leaseDurationSeconds": 180, "renewTime": "2027-03-01T08:00:30.000000Z"}


async def store_with_lease(**meta: Any) -> tuple[Store, str]:
    store = Store(LoopClock(asyncio.get_running_loop()), Randomness(1))
    made = store.create(LEASES, {"metadata": {"name": "a", **meta}, "spec": {"holderIdentity": "a"}}, "default")
    return store, made["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": RENEWAL},
        {"spec": {**RENEWAL, "leaseTransitions": 3}},
        {"spec": RENEWAL, "metadata": {"resourceVersion": "VERSION"}},
    ],
    ids=["of an agent", "of a leader", "under a condition"],
)
async def test_a_renewal_in_one_step_leaves_what_a_patch_leaves(patch: dict[str, Any]) -> None:
    results = []
    for quick in (True, False):
        store, version = await store_with_lease()
        body = json.loads(json.dumps(patch).replace("VERSION", version))
        told: list[Any] = []
        store.after_write(told.append)
        done = renewed(store, "a", "default", body, ME) if quick else store.patch(
            LEASES, "a", body, MERGE, "default", caller=ME
        )  # fmt: skip
        results.append((done, store.get(LEASES, "a", "default"), told))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("name", "patch"),
    [
        ("b", {"spec": RENEWAL}),
        ("a", {"spec": RENEWAL, "metadata": {"resourceVersion": "1"}}),
        ("a", {"spec": RENEWAL, "metadata": {"labels": {"x": "y"}}}),
        ("a", {"spec": {**RENEWAL, "acquireTime": "2027-03-01T08:00:30.000000Z"}}),
        ("a", {"spec": {**RENEWAL, "leaseDurationSeconds": "long"}}),
        ("a", {"spec": {**RENEWAL, "holderIdentity": None}}),
        ("a", {"spec": {"holderIdentity": "a"}}),
        ("a", {"spec": "no object"}),
        ("a", {"metadata": {}}),
    ],
    ids=[
        "no such Lease", "another version", "a label", "another field", "another type", "a deletion", "nothing new",
        "no object", "no spec",
    ],
)  # fmt: skip
async def test_whatever_is_no_plain_renewal_is_left_to_the_ordinary_way(name: str, patch: dict[str, Any]) -> None:
    store, _ = await store_with_lease()
    before, revision = store.get(LEASES, "a", "default"), store.revision
    assert renewed(store, name, "default", patch, ME) is None
    assert store.get(LEASES, "a", "default") == before
    assert store.revision == revision
