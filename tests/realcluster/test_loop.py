"""One fault goes all the way round on a real control plane."""

from __future__ import annotations

import pytest

from tests.realcluster import objects
from tests.realcluster.objects import STEPS
from tests.realcluster.world import World
from tests.support.eventually import eventually

pytestmark = pytest.mark.controlplane


async def test_a_fault_goes_all_the_way_round(world: World) -> None:
    """The node is emptied by evictions, rebooted once, validated and returned; the workload lives elsewhere."""
    sick, well = await world.nodes(2)
    await world.pool()
    await world.workload(objects.deployment(world.name, world.name, replicas=4))
    await eventually(lambda: sorted({*world.places(world.name)}) == [sick, well], 30)
    before = world.marks(sick)
    world.cured_by_reboot(sick)
    await world.start()
    await world.fault(sick)
    over = await world.closed(sick, 60)
    assert (over.status.phase, over.status.outcome) == ("Succeeded", "Repaired")
    assert world.ran(sick) == list(STEPS)
    assert world.calls(sick) == 1
    assert over.status.step("Repair").attempts[0].proof["bootID"] == world.machines[sick].boot_id
    assert world.marks(sick) == before
    assert set(world.places(world.name)) == {well}
    assert world.touched(well) == []
    assert [r.metadata.name for r in world.repairs(sick)] == [over.metadata.name]
