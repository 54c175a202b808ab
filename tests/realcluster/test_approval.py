"""The approval handshake with people at kubectl, under the admission policies."""

from __future__ import annotations

import pytest

from sickbay.api import names
from tests.realcluster.objects import STEPS, gated
from tests.realcluster.view import PREFIX
from tests.realcluster.world import World
from tests.support.eventually import eventually

pytestmark = pytest.mark.controlplane

GATED = ("Quarantine", "Drain", "Repair", "Unquarantine")


async def test_every_gate_opens_for_a_person_and_the_record_names_that_person(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool(*(gated(step) if step in GATED else step for step in STEPS))
    before = world.marks(sick)
    world.cured_by_reboot(sick)
    await world.start()
    await world.fault(sick)
    people = {"Quarantine": world.alice, "Drain": world.dev, "Repair": world.alice, "Unquarantine": world.dev}
    for step, person in people.items():
        await world.asked(sick, step)
        assert not world.ever(sick, step, "Running"), f"{step} began before anybody answered"
        await person.answer(sick, step, "approved")
    over = await world.closed(sick)
    assert over.status.outcome == "Repaired"
    assert {step: over.status.step(step).approved_by for step in GATED} == {s: p.user for s, p in people.items()}
    assert world.marks(sick) == before


async def test_a_gate_for_a_group_opens_for_its_members_alone(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool(gated("Quarantine", groups=["gpu-oncall"]), *STEPS[1:])
    await world.start()
    await world.fault(sick)
    await world.asked(sick, "Quarantine")
    label = names.approval_label(PREFIX, "Quarantine")
    complaint = await world.dev.refused("label", "node", sick, f"{label}=approved", "--overwrite")
    assert "gpu-oncall" in complaint
    assert world.label(sick, "Quarantine") == "inquiring"
    await world.alice.answer(sick, "Quarantine", "approved")
    started = await world.running(sick, "Drain")
    assert started.status.step("Quarantine").approved_by == "alice"


async def test_an_approval_that_stood_there_before_we_asked_is_none(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool("Quarantine", gated("Drain"), *STEPS[2:])
    await world.dev.answer(sick, "Drain", "approved")
    await eventually(lambda: world.label(sick, "Drain") == "approved", 10)
    await world.start()
    await world.fault(sick)
    await world.asked(sick, "Drain")
    await world.phase(sick, "WaitingApproval")
    assert not world.ever(sick, "Drain", "Running")
    await world.alice.answer(sick, "Drain", "approved")
    drained = await world.until(sick, lambda r: r.status.step("Drain").state == "Done", "drained")
    assert drained.status.step("Drain").approved_by == "alice"


@pytest.mark.parametrize("step", ["Quarantine", "Drain"])
async def test_a_denied_step_never_runs_and_the_node_is_as_it_was(world: World, step: str) -> None:
    (sick,) = await world.nodes(1)
    await world.pool(*(gated(each) if each == step else each for each in STEPS))
    before = world.marks(sick)
    await world.start()
    await world.fault(sick)
    await world.asked(sick, step)
    await world.dev.answer(sick, step, "denied")
    over = await world.closed(sick)
    assert (over.status.phase, over.status.outcome) == ("Cancelled", "Denied")
    assert "denied by dev" in over.status.message
    assert not world.ever(sick, step, "Running")
    assert world.calls(sick) == 0
    assert world.marks(sick) == before


async def test_a_denied_repair_returns_the_node_once_it_is_proven_well(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool("Quarantine", "Drain", gated("Repair"), *STEPS[3:])
    before = world.marks(sick)
    await world.start()
    await world.fault(sick)
    await world.asked(sick, "Repair")
    await world.alice.answer(sick, "Repair", "denied")
    await world.running(sick, "Validate")
    assert world.quarantined(sick)
    await world.fault(sick, "False")
    over = await world.closed(sick)
    assert (over.status.phase, over.status.outcome) == ("Cancelled", "Denied")
    assert world.ran(sick) == ["Quarantine", "Drain", "Validate", "Unquarantine"]
    assert world.calls(sick) == 0
    assert world.marks(sick) == before


async def test_an_unanswered_question_goes_to_people_and_a_late_approval_goes_on(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool("Quarantine", gated("Drain", timeout="2s"), *STEPS[2:])
    world.cured_by_reboot(sick)
    await world.start()
    await world.fault(sick)
    waiting = await world.phase(sick, "NeedsHuman")
    assert waiting.status.needs == "ApprovalTimeout"
    assert world.label(sick, "Drain") == "inquiring"
    assert f"kubectl label node {sick}" in waiting.status.message
    await world.alice.answer(sick, "Drain", "approved")
    over = await world.closed(sick)
    assert over.status.outcome == "Repaired"


async def test_a_fault_that_goes_before_quarantine_leaves_nothing_behind(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool(gated("Quarantine"), *STEPS[1:])
    before = world.marks(sick)
    await world.start()
    await world.fault(sick)
    await world.asked(sick, "Quarantine")
    await world.fault(sick, "False")
    over = await world.closed(sick)
    assert (over.status.phase, over.status.outcome) == ("Cancelled", "SelfRecovered")
    assert world.ran(sick) == []
    assert world.marks(sick) == before


async def test_a_fault_that_goes_after_quarantine_leads_through_validation_back(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool("Quarantine", gated("Drain"), *STEPS[2:])
    before = world.marks(sick)
    await world.start()
    await world.fault(sick)
    await world.asked(sick, "Drain")
    assert world.quarantined(sick)
    await world.fault(sick, "False")
    over = await world.closed(sick)
    assert (over.status.phase, over.status.outcome) == ("Cancelled", "SelfRecovered")
    assert world.ran(sick) == ["Quarantine", "Validate", "Unquarantine"]
    assert world.calls(sick) == 0
    assert world.marks(sick) == before
