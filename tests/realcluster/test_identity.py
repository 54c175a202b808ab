"""A node is its UID, not its name: deleted, or made again under its name, in the middle of a repair."""

from __future__ import annotations

import pytest

from sickbay.api import kinds, names
from tests.realcluster.objects import STEPS, gated
from tests.realcluster.view import PREFIX
from tests.realcluster.world import World
from tests.support.eventually import eventually

pytestmark = [pytest.mark.controlplane, pytest.mark.case("R38")]


async def at_step(world: World, sick: str, step: str) -> None:
    """Bring a repair to the gate before Drain, or into a reboot that does not end."""
    await world.pool("Quarantine", gated("Drain") if step == "Drain" else "Drain", *STEPS[2:])
    world.machines[sick].boot_seconds = 600
    await world.start()
    await world.fault(sick)
    if step == "Drain":
        await world.asked(sick, "Drain")
    else:
        await eventually(lambda: world.calls(sick) == 1, 30, lambda: world.story(sick))


@pytest.mark.parametrize("step", ["Drain", "Repair"])
async def test_a_node_that_is_deleted_ends_its_repair(world: World, step: str) -> None:
    (sick,) = await world.nodes(1)
    await at_step(world, sick, step)
    world.kubelets.leave(sick)
    await world.admin.delete(kinds.NODE, sick)
    over = await world.closed(sick)
    assert (over.status.phase, over.status.outcome) == ("Cancelled", "NodeGone")
    assert over.status.step(step).state == "Cancelled" or step == "Drain"
    assert world.calls(sick) == (1 if step == "Repair" else 0)


@pytest.mark.parametrize("step", ["Drain", "Repair"])
async def test_a_node_made_again_under_the_name_is_another_one(world: World, step: str) -> None:
    """It comes with an approval that was meant for the old one. Only a fault of its own opens a repair of it."""
    (sick,) = await world.nodes(1)
    await at_step(world, sick, step)
    old, calls, touched = world.typed(sick), world.calls(sick), len(world.touched(sick))
    label = names.approval_label(PREFIX, "Drain")
    await world.replace(sick, {label: "approved"})
    over = await world.closed(sick)
    assert over.status.outcome == "NodeGone"
    assert world.typed(sick).uid != old.uid
    assert len(world.touched(sick)) == touched
    assert world.calls(sick) == calls
    if step == "Drain":
        await world.fault(sick)
        fresh = await world.phase(sick, "WaitingApproval")
        assert (fresh.spec.node.uid, fresh.spec.node.boot_id) == (world.typed(sick).uid, world.machines[sick].boot_id)
        assert fresh.status.step("Drain").state == "Waiting"
        assert world.calls(sick) == 0
