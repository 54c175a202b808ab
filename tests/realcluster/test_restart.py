"""Processes and servers that go away in the middle: everything goes on, nothing happens twice."""

from __future__ import annotations

import asyncio

import pytest

from sickbay.api.node_repair import NodeRepair
from tests.realcluster import objects
from tests.realcluster.objects import STEPS
from tests.realcluster.world import World
from tests.support.controlplane import API_SERVER, ETCD
from tests.support.eventually import eventually
from tests.support.product import Process

pytestmark = pytest.mark.controlplane


class Murderer:
    """Kills a process at the moment each step is first seen running, and starts it again."""

    def __init__(self, world: World, victim: Process) -> None:
        self.victim = victim
        self.at: list[str] = []
        self._work: asyncio.Task[None] | None = None
        world.on_version.append(self._look)

    def _look(self, repair: NodeRepair) -> None:
        step = repair.status.current.step
        if step and repair.status.step(step).state == "Running" and step not in self.at:
            self.at.append(step)
            self.victim.freeze()  # dead from this moment on
            self._work = asyncio.create_task(self._again(self._work))

    async def _again(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        await self.victim.crash()
        self.victim.start()


@pytest.mark.parametrize("victim", ["decide", "execute"])
async def test_a_process_that_dies_at_every_step_loses_and_doubles_nothing(world: World, victim: str) -> None:
    sick, well = await world.nodes(2)
    await world.pool()
    await world.workload(objects.deployment(world.name, world.name, 2))
    await eventually(lambda: len(world.places(world.name)) == 2, 30)
    before = world.marks(sick)
    world.cured_by_reboot(sick)
    decide, execute = await world.start()
    murderer = Murderer(world, decide if victim == "decide" else execute)
    await world.fault(sick)
    over = await world.closed(sick, 120)
    assert over.status.outcome == "Repaired"
    assert murderer.at == list(STEPS)
    assert world.calls(sick) == 1
    assert len(over.status.step("Repair").attempts) == 1
    assert len(world.repairs(sick)) == 1
    assert world.marks(sick) == before
    assert world.places(world.name) == [well, well]


async def test_a_second_replica_takes_over_and_the_first_never_acts_again(world: World) -> None:
    """The leader is cut off in mid-repair and comes back when another leads; both believed that they did."""
    (sick,) = await world.nodes(1)
    await world.pool()
    before = world.marks(sick)
    world.cured_by_reboot(sick)
    world.machines[sick].boot_seconds = 12.0
    first = await world.start()
    for process in first:
        await world.leads(process)
    second = await world.start()
    await world.fault(sick)
    await eventually(lambda: world.calls(sick) == 1, 30, lambda: world.story(sick))
    for process in first:
        process.freeze()
    for process in second:
        await world.leads(process)
    for process in first:
        process.thaw()
    over = await world.closed(sick, 60)
    assert over.status.outcome == "Repaired"
    assert len({step.report.term for step in over.status.steps.values()}) == 2
    assert world.calls(sick) == 1
    assert world.marks(sick) == before
    assert all(process.running for process in [*first, *second])


# Last in this file: the controllers of the cluster take up to half a minute to watch again.
KILLED = {
    "API server": (API_SERVER,),
    "etcd": (ETCD,),
    "both": (API_SERVER, ETCD),
}


@pytest.mark.parametrize(
    ("killed", "step"),
    [("API server", "Drain"), ("API server", "Repair"), ("etcd", "Repair"), ("etcd", "Validate"), ("both", "Repair")],
)
async def test_a_store_that_dies_in_the_middle_delays_and_breaks_nothing(world: World, killed: str, step: str) -> None:
    """Killed outright and started again on the same data, with decide and execute at work under their identities."""
    (sick,) = await world.nodes(1)
    await world.pool()
    before = world.marks(sick)
    world.cured_by_reboot(sick)
    world.machines[sick].boot_seconds = 4.0
    await world.start()
    await world.fault(sick)
    if step == "Repair":
        await eventually(lambda: world.calls(sick) == 1, 30, lambda: world.story(sick))
    else:
        await world.running(sick, step)
    for name in KILLED[killed]:
        await asyncio.to_thread(world.plane.kill_process, name)
    await world.clock.sleep(2)
    for name in reversed(KILLED[killed]):
        await asyncio.to_thread(world.plane.start_process, name)
    over = await world.closed(sick, 90)
    assert over.status.outcome == "Repaired"
    assert world.calls(sick) == 1
    assert len(world.repairs(sick)) == 1
    assert world.marks(sick) == before
