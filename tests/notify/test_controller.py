"""Notify in a world: each thing is told once, whatever is restarted or down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import POOLS, REPAIRS
from sickbay.sim.loop import VirtualLoop
from sickbay.sim.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(cast(VirtualLoop, asyncio.get_running_loop()), seed=3)
    made.fleet.add_pool(PoolSpec("train", nodes=2))
    made.settle()
    made.start()
    yield made
    await made.stop()
    assert made.problems == []


def put_repair(world: World, name: str = "train-0-1", **status: Any) -> None:
    admin = world.person("admin")
    steps = [{"step": "Quarantine"}, {"step": "Repair", "ladder": [{"action": "RebootNode"}], "action": "RebootNode"}]
    spec = {
        "node": {"name": "train-0", "uid": world.node("train-0")["metadata"]["uid"]},
        "faults": [{"type": "gpu.xid.79"}],
        "plan": {"generation": 1, "steps": steps},
    }
    kind = {"apiVersion": "sickbay.dev/v1alpha1", "kind": "NodeRepair", "metadata": {"name": name}}
    admin.create(REPAIRS, {**kind, "spec": spec})
    if status:
        admin.merge(REPAIRS, name, {"status": status}, subresource="status")


def told(world: World) -> list[str]:
    return [m.text.split("\n")[0] for m in world.journal.messages]


async def test_each_message_is_sent_once_and_noted_in_the_object(world: World) -> None:
    world.start_components(("notify",))
    await world.clock.sleep(30)
    put_repair(world)
    await world.clock.sleep(30)
    assert told(world) == ["train-0: gpu.xid.79"]
    assert "opened" in world.store.get(REPAIRS, "train-0-1")["status"]["notified"]
    for process in world.processes_of("notify", ()):
        process.crash()
    await world.clock.sleep(900)
    assert told(world) == ["train-0: gpu.xid.79"]


async def test_a_record_is_left_alone_in_its_first_second(world: World) -> None:
    """A note of ours would make those who act on the record start over; what was opened is told all the same."""
    world.start_components(("notify",))
    await world.clock.sleep(30)
    put_repair(world)
    for step in ("Quarantine", "Drain", "Repair"):
        await world.clock.sleep(0.25)
        current = {"step": step, "attempt": 1}
        world.person("admin").merge(REPAIRS, "train-0-1", {"status": {"current": current}}, subresource="status")
        assert "notified" not in world.store.get(REPAIRS, "train-0-1")["status"]
    await world.clock.sleep(5)
    assert told(world) == ["train-0: gpu.xid.79"]
    assert "opened" in world.store.get(REPAIRS, "train-0-1")["status"]["notified"]


async def test_what_happened_while_it_was_down_is_told_when_it_is_back(world: World) -> None:
    put_repair(world)
    await world.clock.sleep(600)
    world.start_components(("notify",))
    await world.clock.sleep(60)
    assert told(world) == ["train-0: gpu.xid.79"]


async def test_two_replicas_tell_it_once(world: World) -> None:
    world.start_components(("notify",), replicas=2)
    await world.clock.sleep(30)
    put_repair(world)
    await world.clock.sleep(300)
    assert told(world) == ["train-0: gpu.xid.79"]


async def test_reminders_come_at_their_times_until_the_answer(world: World) -> None:
    world.start_components(("notify",))
    await world.clock.sleep(30)
    since = "2027-03-01T08:00:30Z"
    current = {"step": "Quarantine", "attempt": 1, "waitsFor": "Approval", "since": since}
    put_repair(world, phase="WaitingApproval", message="waits", current=current)
    world.person("admin").merge(
        REPAIRS, "train-0-1", {"spec": {"plan": {"steps": [{"step": "Quarantine", "approval": {}}]}}}
    )
    await world.clock.sleep(3700)
    asked = [text for text in told(world) if "approval" in text]
    assert asked == [
        "train-0: Quarantine waits for approval",
        "train-0: Quarantine waits for approval (reminder 1)",
        "train-0: Quarantine waits for approval (reminder 2)",
    ]


@pytest.mark.slow
async def test_a_storm_is_told_once_and_people_are_reminded_while_it_lasts(world: World) -> None:
    world.start_components(("notify",))
    await world.clock.sleep(30)
    admin = world.person("admin")
    spec = {"nodeSelector": {"matchLabels": {"pool": "train"}}, "mode": "Act", "rule": "automatic"}
    made = {"apiVersion": "sickbay.dev/v1alpha1", "kind": "RepairPool", "metadata": {"name": "train"}, "spec": spec}
    admin.create(POOLS, made)
    storm = {"cause": "gpu.xid.79", "since": "2027-03-01T08:00:30Z", "nodes": 7}
    admin.merge(POOLS, "train", {"status": {"storms": [storm]}}, subresource="status")
    await world.clock.sleep(60)
    assert told(world) == ["pool train: many nodes fail at once"]
    for process in world.processes_of("notify", ()):
        process.crash()
    await world.clock.sleep(5 * 3600)
    assert told(world) == ["pool train: many nodes fail at once", "pool train: many nodes fail at once (reminder 1)"]
    admin.merge(POOLS, "train", {"status": {"storms": []}}, subresource="status")
    await world.clock.sleep(24 * 3600)
    assert sum("fail at once" in text for text in told(world)) == 2
