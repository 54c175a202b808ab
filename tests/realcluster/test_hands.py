"""A person's hand wins, at every step, and is remembered."""

from __future__ import annotations

import pytest

from sickbay.api import names
from tests.realcluster import objects
from tests.realcluster.objects import STEPS, gated
from tests.realcluster.world import World
from tests.support.eventually import eventually

pytestmark = pytest.mark.controlplane

SLOW = {"sim.sickbay.dev/stop-takes": "50s"}


async def at_step(world: World, sick: str, moment: str) -> None:
    """Bring a repair to a moment at which it stays for as long as nobody interferes."""
    steps = ["Quarantine", gated("Drain"), *STEPS[2:]] if moment == "WaitingApproval" else list(STEPS)
    await world.pool(*steps, validation={"ceiling": "10m", "soak": "5m"})
    if moment == "Drain":
        await world.workload(objects.deployment(world.name, world.name, 2, SLOW))
        await eventually(lambda: len(world.places(world.name)) == 2, 30)
    if moment == "Repair":
        world.machines[sick].boot_seconds = 600
    world.cured_by_reboot(sick)
    await world.fault(sick)


@pytest.mark.case("R05")
@pytest.mark.parametrize("moment", ["WaitingApproval", "Drain", "Repair", "Validate"])
async def test_an_uncordon_cancels_for_good(world: World, moment: str) -> None:
    sick, spare = await world.nodes(2)
    decide, _ = await world.start()
    if moment == "Drain":  # the workload can only be where it is to be drained from
        await world.alice.cordon(spare)
    await at_step(world, sick, moment)
    before = world.marks(sick)
    if moment == "WaitingApproval":
        await world.asked(sick, "Drain")
    elif moment == "Repair":
        await eventually(lambda: world.calls(sick) == 1, 30)
    else:
        await world.running(sick, moment)
    await world.alice.uncordon(sick)
    over = await world.closed(sick)
    assert (over.status.phase, over.status.outcome) == ("Cancelled", "CancelledByPerson")
    if moment != "WaitingApproval":
        assert over.status.step(moment).state == "Cancelled"
    await world.looked_again(decide, spare)
    assert world.repairs(sick) == [over]
    after = world.marks(sick)
    assert after == before | {"unschedulable": False}
    assert world.calls(sick) == (1 if moment in ("Repair", "Validate") else 0)


async def test_who_takes_our_mark_away_gets_the_node_back_with_nothing_of_ours_on_it(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool("Quarantine", gated("Drain"), *STEPS[2:])
    before = world.marks(sick)
    await world.start()
    await world.fault(sick)
    await world.asked(sick, "Drain")
    await world.dev.kubectl("annotate", "node", sick, f"{names.QUARANTINE}-")
    over = await world.closed(sick)
    assert (over.status.phase, over.status.outcome) == ("Cancelled", "CancelledByPerson")
    await eventually(lambda: world.marks(sick) == before, 30, lambda: world.story(sick))
    assert world.calls(sick) == 0


async def test_who_deletes_the_record_gets_the_node_back(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool("Quarantine", gated("Drain"), *STEPS[2:])
    before = world.marks(sick)
    await world.start()
    await world.fault(sick)
    await world.asked(sick, "Drain")
    await world.alice.kubectl("delete", "noderepair", world.repair(sick).metadata.name)  # waits for the finalizer
    await eventually(lambda: world.marks(sick) == before, 30, lambda: world.story(sick))
    assert {r.status.outcome for r in world.tape} == {"", "CancelledByPerson"}
    assert world.calls(sick) == 0
