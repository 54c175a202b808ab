"""What others have put on a node survives us, and nothing of us survives on it."""

from __future__ import annotations

import asyncio

import pytest

from sickbay.api import names
from tests.realcluster.objects import STEPS, gated
from tests.realcluster.world import World
from tests.support.eventually import eventually

pytestmark = pytest.mark.controlplane

THEIRS = "example.com/maintenance"


@pytest.mark.parametrize(
    "restarted",
    [pytest.param(False, marks=pytest.mark.case("N13")), pytest.param(True, marks=pytest.mark.case("R01"))],
    ids=["running-on", "restarted-in-quarantine"],
)
async def test_a_foreign_cordon_and_taint_survive_a_repair(world: World, restarted: bool) -> None:
    (sick,) = await world.nodes(1)
    await world.pool("Quarantine", gated("Drain"), *STEPS[2:], pool={"quarantine": {"taint": True}})
    await world.dev.cordon(sick)
    await world.dev.kubectl("taint", "node", sick, f"{THEIRS}=window-7:NoSchedule")
    await world.dev.kubectl("annotate", "node", sick, f"{names.SCALE_DOWN_DISABLED}=false")
    await eventually(lambda: world.marks(sick)["annotations"], 10)
    before = world.marks(sick)
    world.cured_by_reboot(sick)
    processes = await world.start()
    await world.fault(sick)
    await world.asked(sick, "Drain")
    held = world.repair(sick).status.prior
    assert held is not None
    assert (held.unschedulable, THEIRS in {t.key for t in held.taints}) == (True, True)
    assert {key for key, _, _ in world.marks(sick)["taints"]} == {THEIRS, names.QUARANTINE}
    for process in processes if restarted else ():
        await process.crash()
        process.start()
    await world.dev.answer(sick, "Drain", "approved")
    over = await world.closed(sick)
    assert over.status.outcome == "Repaired"
    assert world.marks(sick) == before


@pytest.mark.case("R06")
async def test_a_cordon_that_is_not_ours_is_never_touched(world: World) -> None:
    theirs, spare = await world.nodes(2)
    await world.pool()
    decide, execute = await world.start()
    await world.dev.cordon(theirs)
    await execute.stop()
    execute.start()
    await world.looked_again(decide, spare)
    await world.cured(spare)
    assert world.touched(theirs) == []
    assert world.cordoned(theirs)


@pytest.mark.case("R40")
async def test_taints_that_another_controller_writes_at_the_same_moments_are_all_there(world: World) -> None:
    """Part (d): both sides write the one list of taints under a test of the version, and repeat what conflicts."""
    (sick,) = await world.nodes(1)
    await world.pool(pool={"quarantine": {"taint": True}})
    world.cured_by_reboot(sick)
    await world.start()

    async def taints() -> list[str]:
        written = [f"example.com/t{n}" for n in range(12)]
        for key in written:
            await world.dev.kubectl("taint", "node", sick, f"{key}=:NoSchedule")
        return written

    writing = asyncio.create_task(taints())
    await world.fault(sick)
    over = await world.closed(sick)
    written = await writing
    assert over.status.outcome == "Repaired"
    await eventually(lambda: {key for key, _, _ in world.marks(sick)["taints"]} == {*written}, 10)
