"""When a step fails: the next rung, people, or a look at the node."""

from __future__ import annotations

from copy import deepcopy

import msgspec
import pytest

from sickbay.api import names
from sickbay.api.repair_step import Report
from sickbay.clock import rfc3339
from sickbay.decide.replan import MOST_PLANS
from tests.decide import made
from tests.decide.made import catalogue, fault_type, hours, minutes, procedure, rule
from tests.decide.story import Story


def at_validate(*faults, clears=True, **options) -> Story:
    story = Story(*(faults or ("test.reboot",)), **options).run("Quarantine", "Drain")
    story.now += 60
    before = story.facts["boot"]
    story.facts["boot"] = f"{before}+"
    for name in story.conditions if clears else ():
        story.conditions[name] = ("False", story.now)
    story.repair.status.steps["Repair"].report = _done(story, before)
    story.look()
    story.at("Validate")
    return story


def _done(story, before):
    proof = {"bootBefore": before, "bootID": story.facts["boot"]}
    generation = story.repair.spec.plan.generation
    return Report(attempt=story.repair.status.current.attempt, plan_generation=generation, state="Done", proof=proof)


# --- Quarantine


def test_a_cordon_that_never_comes_calls_people():
    story = Story("test.reboot")
    story.after(minutes(11))
    assert (story.phase, story.needs, story.state("Quarantine")) == ("NeedsHuman", "RepairFailed", "Failed")


def test_a_cordon_counts_once_we_see_it_ourselves():
    """execute's report may reach us before its write to the Node does; that gap is no person's uncordon."""
    story = Story("test.reboot")
    marked, story._carry_out = story._carry_out, dict
    story.report("Done")
    story.at("Quarantine", "Running")
    marked()
    story.look()
    story.at("Drain", "Running")


def test_a_cordon_that_is_seen_counts_even_if_nobody_reports_it():
    story = Story("test.reboot")
    story._carry_out()
    story.after(minutes(11))
    story.at("Drain", "Running")


def test_a_failed_quarantine_may_have_left_marks_and_is_rolled_back():
    story = Story("test.reboot")
    story.report("Failed", "the write was refused")
    assert story.phase == "NeedsHuman"
    story.delete()
    assert story.phase == "Cancelling"
    story.at("Unquarantine", "Running")


# --- Drain


def drain(choice: str, **gates):
    steps = procedure(**gates)
    steps[1] |= {"onTimeout": choice, "timeout": "20m"}
    return rule(steps)


@pytest.mark.parametrize(
    ("choice", "phase", "step", "state"),
    [
        pytest.param("Escalate", "NeedsHuman", "Drain", "Failed", id="escalate-calls-people"),
        pytest.param("Continue", "Running", "Repair", "Running", id="continue-goes-on-with-what-is-left"),
        pytest.param("RollBack", "Cancelling", "Unquarantine", "Running", id="roll-back-returns-the-node"),
        pytest.param("a-later-word", "NeedsHuman", "Drain", "Failed", id="an-unknown-word-calls-people"),
    ],
)
def test_a_drain_that_takes_too_long_goes_as_the_rule_says(choice, phase, step, state):
    story = Story("test.reboot", rule=drain(choice)).run("Quarantine")
    story.report("InProgress", "train-7 is blocked by a budget")
    story.after(minutes(19))
    story.at("Drain", "Running")
    story.after(minutes(1))
    assert story.phase == phase
    story.at(step, state)
    assert "DrainFailed" in story.reasons()


def test_a_drain_that_went_on_leaves_no_approval_behind():
    story = Story("test.reboot", rule=drain("Continue", Drain={"by": "People"})).run("Quarantine")
    story.approve("Drain")
    assert story.label("Drain") == "approved"
    story.after(minutes(21))
    story.at("Repair", "Running")
    assert story.label("Drain") == ""


def test_a_rolled_back_drain_ends_as_given_up():
    story = Story("test.reboot", rule=drain("RollBack")).run("Quarantine")
    story.after(minutes(21))
    story.report("Done")
    story.ended("Failed", "GaveUp")
    assert story.clean()
    assert story.acts() == []


def test_a_blocked_drain_ends_when_the_fault_is_gone_and_never_leads_to_a_repair():
    story = Story("test.reboot").run("Quarantine")
    story.after(minutes(31))
    assert (story.phase, story.needs) == ("NeedsHuman", "DrainBlocked")
    story.now += 60
    story.reboot()
    story.look()
    story.at("Validate")
    story.report("Failed", "the device plug-in is not back")
    assert story.acts() == [], "nothing may be repaired on a node that was never drained"


@pytest.mark.case("P042")
def test_a_drain_knows_when_the_provider_takes_the_machine():
    story = Story("test.reboot", opened=False)
    story.provider_date = made.at(30)
    story.repair = story._opened()
    story.look()
    story.run("Quarantine").at("Drain", "Running")
    assert story.repair.status.current.args == {"before": rfc3339(made.at(30))}
    story.run("Drain")
    assert "before" not in story.repair.status.current.args


SKIP = {"by": "People", "timeout": "1h", "onTimeout": "Skip"}
SHORT_RULES = [
    pytest.param([{"step": "Drain", "timeout": "20m"}], 1, id="it-only-drains"),
    pytest.param([{"step": "Drain", "timeout": "20m", "approval": SKIP}], 0, id="its-drain-was-skipped"),
    pytest.param([{"step": "Quarantine", "approval": SKIP}], 0, id="its-quarantine-was-skipped"),
]


def through(steps) -> Story:
    story = Story("test.reboot", rule=rule(steps))
    if story.phase == "WaitingApproval":
        story.after(hours(1))
    else:
        story.report("Done")
    return story


@pytest.mark.parametrize(("steps", "drains"), SHORT_RULES)
def test_a_rule_that_is_through_while_the_fault_stays_calls_people_and_does_nothing_again(steps, drains):
    story = through(steps)
    assert (story.phase, story.needs) == ("NeedsHuman", "RepairFailed")
    assert "test.reboot is still there" in story.repair.status.message
    story.after(hours(30))
    assert story.phase == "NeedsHuman"
    assert len(story.repair.status.step("Drain").attempts) == drains


@pytest.mark.parametrize(("steps", "drains"), SHORT_RULES)
def test_it_ends_when_the_fault_is_gone_and_never_as_repaired(steps, drains):
    story = through(steps)
    story.now += 60
    story.reboot()
    story.look()
    story.ended("Cancelled", "SelfRecovered")
    assert story.acts() == []


# --- Repair


@pytest.mark.case("N08")
def test_a_failed_rung_is_followed_by_the_next_one_under_a_new_attempt():
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.report("Failed", "the soft reboot was refused")
    story.at("Repair", "Running")
    assert story.acts() == ["RebootNode", "PowerCycle"]
    assert story.repair.status.current.attempt == 2
    story.run("Repair", "Validate", "Unquarantine").ended("Succeeded", "Repaired")
    states = [(a.action, a.state) for a in story.repair.status.step("Repair").attempts]
    assert states == [("RebootNode", "Failed"), ("PowerCycle", "Done")]


def test_an_act_that_was_done_counts_under_a_plan_that_came_in_before_its_end_was_written():
    story = Story("test.reboot").run("Quarantine", "Drain")
    before = deepcopy(story.repair.status)
    story.run("Repair")
    before.steps["Repair"].report = story.repair.status.steps["Repair"].report
    story.repair.status, story.repair.spec.plan.generation = before, 2  # the rest of the write was lost
    story.look()
    story.at("Validate", "Running")
    assert story.acts() == ["RebootNode"]
    assert [a.plan_generation for a in story.repair.status.step("Repair").attempts] == [1]


@pytest.mark.case("N08")
def test_a_rung_that_does_not_end_in_time_is_followed_by_the_next_one():
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.after(minutes(15.5))
    assert story.acts() == ["RebootNode"], "execute reports at the deadline, and is given a moment for it"
    story.after(minutes(1))
    assert story.acts() == ["RebootNode", "PowerCycle"]


def test_a_rung_is_tried_as_often_as_it_says():
    ladder = [{"action": "RebootNode", "attempts": 2}, {"action": "PowerCycle"}]
    story = Story("test.ladder", types=(fault_type("test.ladder", remedy=ladder),)).run("Quarantine", "Drain")
    for _ in range(3):
        story.report("Failed")
    assert story.acts() == ["RebootNode", "RebootNode", "PowerCycle"]
    assert (story.phase, story.needs) == ("NeedsHuman", "RepairFailed")


def test_a_ladder_that_is_used_up_calls_people_and_the_node_stays_out():
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.report("Failed")
    story.report("Failed", "the BMC does not answer")
    assert (story.phase, story.needs) == ("NeedsHuman", "RepairFailed")
    assert story.node.unschedulable
    story.after(hours(72))
    assert story.acts() == ["RebootNode", "PowerCycle"], "nothing loops"


def test_a_result_that_nobody_knows_leads_to_a_look_at_the_node():
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.report("Unknown", "the answer was lost")
    story.at("Validate")
    story.now += 60
    story.reboot()
    story.run("Validate", "Unquarantine").ended("Succeeded", "Repaired")


def test_a_result_that_nobody_knows_and_a_node_that_is_not_well_lead_to_the_next_rung_then_to_people():
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.report("Unknown", "the answer was lost")
    story.run("Validate", state="Failed")
    assert story.acts() == ["RebootNode", "PowerCycle"]
    story.report("Unknown", "lost again")
    story.run("Validate", state="Failed")
    assert (story.phase, story.needs) == ("NeedsHuman", "UnknownResult")


@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Validate", "Unquarantine"])
def test_an_unknown_result_of_any_other_step_counts_as_a_failure(step):
    order = ["Quarantine", "Drain", "Repair", "Validate", "Unquarantine"]
    story = Story("test.reboot").run(*order[: order.index(step)])
    story.report("Unknown", "odd")
    assert f"{step}Failed" in story.reasons()
    assert story.phase in ("NeedsHuman", "Running")


def test_a_remedy_that_this_version_does_not_know_is_for_people():
    story = Story("test.later", types=(fault_type("test.later", remedy=["RebootNode", "FreezeTime"]),))
    story.run("Quarantine", "Drain").report("Failed")
    assert (story.phase, story.needs) == ("NeedsHuman", "RepairFailed")
    assert "FreezeTime" in story.repair.status.message


def test_contact_support_is_for_people():
    story = Story("test.support").run("Quarantine", "Drain")
    assert (story.phase, story.needs, story.acts()) == ("NeedsHuman", "ContactSupport", [])


# --- Validate


@pytest.mark.case("N08")
def test_a_node_that_is_not_well_after_a_rung_gets_the_next_one():
    story = at_validate(clears=False)
    story.report("Failed", "not well: not proven gone: test.reboot")
    story.at("Repair", "Running")
    assert story.acts() == ["RebootNode", "PowerCycle"]
    story.run("Repair", "Validate", "Unquarantine").ended("Succeeded", "Repaired")


@pytest.mark.parametrize("clears", [True, False], ids=["the-fault-is-gone", "the-fault-is-still-there"])
def test_a_node_that_never_gets_well_ends_with_people(clears):
    """That all faults are gone does not make a node well whose GPUs are not offered: the ladder is climbed once."""
    story = at_validate(clears=clears)
    story.run("Validate", state="Failed")
    story.run("Repair")
    story.run("Validate", state="Failed")
    assert story.acts() == ["RebootNode", "PowerCycle"]
    assert (story.phase, story.needs) == ("NeedsHuman", "ValidationFailed")
    story.after(hours(100))
    assert story.phase == "NeedsHuman"


def test_a_validation_that_nobody_reports_ends_with_its_ceiling():
    story = at_validate(clears=False)
    story.after(minutes(30))
    story.at("Validate")
    story.after(minutes(2))
    story.at("Repair", "Running")


@pytest.mark.case("N03")
@pytest.mark.parametrize("joined", ["during-the-repair", "during-validate"])
def test_a_new_fault_of_the_new_boot_gets_its_own_repair(joined):
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.now += 60
    before = story.facts["boot"]
    story.reboot("boot-2")
    if joined == "during-the-repair":
        story.fault("test.node")
        story.now += 30
    story.repair.status.steps["Repair"].report = _done(story, before)
    story.look()
    if joined == "during-validate":
        story.now += 30
        story.fault("test.node")
    story.at("Repair", "Running")
    assert story.repair.spec.faults[0].type == "test.node"
    assert story.repair.spec.plan.generation == 2
    assert story.acts() == ["RebootNode", "RebootNode"]
    assert story.state("Drain") == "Done", "what is done stays done"
    story.run("Repair", "Validate", "Unquarantine").ended("Succeeded", "Repaired")


def two_failed_reboots() -> Story:
    """One fault's reboot did not end in time, nor did that of the fault which took the lead meanwhile."""
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.at("Repair", "Running")
    story.fault("test.node")
    story.report("Failed", "the reboot did not end in time")
    story.at("Repair", "Running")
    assert story.repair.spec.faults[0].type == "test.node"
    story.report("Failed", "the reboot did not end in time")
    assert story.phase == "NeedsHuman"
    return story


def test_a_node_that_comes_up_late_is_looked_at_before_it_is_rebooted_again():
    story = two_failed_reboots()
    acts = story.acts()
    story.now += 600
    story.reboot("boot-2", clears=False)
    story.fault("test.node", "False")
    story.at("Validate", "Running")
    story.fault("test.reboot", "False")
    story.run("Validate", "Unquarantine").ended("Succeeded", "Repaired")
    assert story.acts() == acts


@pytest.mark.parametrize("plans", [MOST_PLANS - 1, MOST_PLANS])
def test_faults_that_take_the_lead_from_each_other_for_ever_end_with_people(plans):
    story = two_failed_reboots()
    done = story.repair.status.steps["Repair"].attempts[0]
    before = [msgspec.structs.replace(done, plan_generation=generation) for generation in range(-plans + 3, 1)]
    story.repair.status.steps["Repair"].attempts[:0] = before
    story.conditions["test.node"] = ("False", story.now)
    story.repair.spec.faults[0].cleared_at = rfc3339(story.moment)
    story.repair.spec.faults[0].clears_by = "condition"
    story.now += 10
    story.look()
    assert story.phase == ("NeedsHuman" if plans == MOST_PLANS else "Running")


def test_an_act_that_was_never_handed_over_is_no_reason_for_a_harsher_one():
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.report("Failed", "RebootNode was not handed over: Forbidden (403)", proof={"withheld": "true"})
    assert (story.phase, story.needs, story.acts()) == ("NeedsHuman", "RepairFailed", ["RebootNode"])
    assert "Forbidden (403)" in story.repair.status.message


BESIDE = (
    fault_type("test.by-reset", remedy=["RebootNode"], clears_by="reset"),
    fault_type("test.by-itself", remedy=["RebootNode"], clears_by="condition"),
)


@pytest.mark.parametrize(
    ("act", "joins", "acts"),
    [
        ("test.reset", "test.reboot", ["ResetGPU", "RebootNode"]),
        ("test.reset", "test.by-reset", ["ResetGPU"]),
        ("test.reset", "test.by-itself", ["ResetGPU"]),
        ("test.service", "test.by-reset", ["RestartService", "RebootNode"]),
        ("test.service", "test.by-itself", ["RestartService"]),
        ("test.reboot", "test.node", ["RebootNode"]),
    ],
)
def test_a_fault_that_joins_an_act_that_cannot_end_it_is_not_sat_out(act, joins, acts):
    """What ends by itself may be the act's own doing, and what the act may have ended is looked at first."""
    story = Story(act, types=BESIDE).run("Quarantine", "Drain")
    story.now += 5
    story.fault(joins)
    story.now += 5
    story.report("Done", "done")
    story.now += 5
    story.look()
    if len(acts) > 1:
        story.at("Repair", "Running")
        assert story.repair.spec.faults[0].type == joins
    else:
        story.at("Validate", "Running")
    assert story.acts() == acts


def test_a_fault_that_was_there_before_the_act_is_sat_out():
    story = Story("test.reset", "test.service").run("Quarantine", "Drain")
    assert story.repair.spec.faults[0].type == "test.reset"
    story.now += 5
    story.report("Done", "done")
    story.at("Validate", "Running")
    assert story.acts() == ["ResetGPU"]


LONG = [{"action": action, "attempts": 5} for action in ("RestartService", "ResetGPU", "RebootNode", "PowerCycle")]


def test_a_ladder_longer_than_the_record_has_an_end():
    """The record holds 16 attempts: were more made, those of the first rung would be forgotten and made again."""
    story = Story("test.long", types=(fault_type("test.long", remedy=LONG),)).run("Quarantine", "Drain")
    for _ in range(40):
        if story.phase == "NeedsHuman":
            break
        story.now += 60
        if story.repair.status.current.step == "Repair":
            story.report("Failed", "it did not help")
        else:
            story.run(story.repair.status.current.step)
    assert (story.phase, story.needs) == ("NeedsHuman", "RepairFailed")
    done = [attempt.action for attempt in story.repair.status.steps["Repair"].attempts]
    assert done == ["RestartService"] * 5 + ["ResetGPU"] * 5 + ["RebootNode"] * 5 + ["PowerCycle"]


@pytest.mark.case("N10")
def test_a_failed_reset_climbs_to_a_reboot_and_its_own_fault_belongs_to_the_same_incident():
    story = Story("test.reset").run("Quarantine", "Drain")
    story.now += 30
    story.fault("test.reboot")
    story.report("Failed", "the reset failed")
    assert story.acts() == ["ResetGPU", "RebootNode"]
    assert {f.type for f in story.repair.spec.faults} == {"test.reset", "test.reboot"}
    story.run("Repair", "Validate", "Unquarantine").ended("Succeeded", "Repaired")
    assert all(f.cleared_at for f in story.repair.spec.faults)


def test_the_restart_of_a_service_is_no_reset_of_a_device():
    types = (fault_type("test.stuck", remedy=["RestartService", "ResetGPU"], clears_by="reset"),)
    story = Story("test.stuck", types=types).run("Quarantine", "Drain", "Repair")
    story.now += 60
    story.fault("test.stuck", "False")
    assert story.repair.spec.faults[0].cleared_at is None
    story.run("Validate", state="Failed")
    assert story.acts() == ["RestartService"], "paused: it is not seen, and nothing proves that it is gone"
    story.fault("test.stuck")
    assert story.acts() == ["RestartService", "ResetGPU"]
    story.run("Repair")
    story.fault("test.stuck", "False")
    assert story.repair.spec.faults[0].cleared_at is not None
    story.run("Validate", "Unquarantine").ended("Succeeded", "Repaired")


# --- Unquarantine


def test_a_return_that_fails_is_tried_again_without_end():
    story = at_validate().run("Validate")
    for _ in range(5):
        story.after(minutes(11))
        story.at("Unquarantine", "Running")
    story.report("Done")
    story.ended("Succeeded", "Repaired")


@pytest.mark.case("R40")
def test_a_return_that_nobody_reported_is_our_own_and_no_persons_uncordon():
    """The cordon was lifted; its report was lost until the time was over, and so was the start of the next try."""
    story = at_validate().run("Validate")
    story.facts["annotations"].pop(names.QUARANTINE)
    story.facts["unschedulable"] = False
    story.after(minutes(11))
    story.repair.status.steps["Unquarantine"].state = "Waiting"
    story.look()
    story.at("Unquarantine", "Running")
    story.report("Done")
    story.ended("Succeeded", "Repaired")


def test_a_return_that_was_approved_is_tried_again_without_asking_again():
    story = at_validate(rule=rule(procedure(Unquarantine={"by": "People"}))).run("Validate")
    story.approve("Unquarantine")
    story.report("Failed", "the write was refused")
    story.at("Unquarantine", "Running")


@pytest.mark.case("N03")
@pytest.mark.parametrize("again", ["test.reboot", "test.node"], ids=["the-same-fault", "another-fault"])
def test_a_node_is_not_returned_with_a_fault_that_came_while_its_return_waited(again):
    story = at_validate(rule=rule(procedure(Unquarantine={"by": "People"}))).run("Validate")
    assert story.phase == "WaitingApproval"
    story.after(minutes(30))
    story.fault(again)
    story.approve("Unquarantine")
    assert story.state("Unquarantine") != "Running"
    assert story.step in ("Validate", "Repair")
    assert story.node.unschedulable


# --- another remediator takes the node's shared Lease


def lost(story: Story, state: str = "") -> None:
    """execute finds the Lease in another's hands before an act."""
    current = story.repair.status.current
    story.repair.status.steps[current.step].report = Report(
        attempt=current.attempt,
        plan_generation=story.repair.spec.plan.generation,
        state=state,
        waits_for="OtherOwner",
        lost_to="node-maintenance",
        message="node-maintenance holds the Lease of the node",
    )
    story.look()


@pytest.mark.parametrize("step", ["Drain", "Repair"])
def test_a_lease_lost_before_the_repair_has_acted_is_rolled_back(step):
    story = Story("test.reboot")
    story.run(*["Quarantine", "Drain"][: 1 if step == "Drain" else 2])
    lost(story, "InProgress" if step == "Drain" else "")
    assert (story.phase, story.step) == ("Cancelling", "Unquarantine")
    story.report("Done")
    story.ended("Failed", "GaveUp")
    assert "node-maintenance" in story.repair.status.message
    assert story.clean()


def test_a_lease_in_others_hands_before_the_cordon_is_waited_for():
    story = Story("test.reboot")
    lost(story)
    assert (story.phase, story.repair.status.current.waits_for) == ("Running", "OtherOwner")


def test_after_the_repair_has_acted_the_node_returns_only_by_its_validation():
    story = Story("test.reboot").run("Quarantine", "Drain")
    lost(story, "InProgress")
    assert story.phase == "Running", "the act runs to its end"
    story.report("Failed", "no")
    lost(story)
    assert story.phase != "Cancelling"


# --- the catalogue changes while a repair is open


def test_the_proof_that_counts_is_the_one_of_the_catalogue_the_repair_began_with():
    story = Story("test.reboot").run("Quarantine")
    assert story.repair.spec.faults[0].clears_by == "reboot"
    story.catalogue = catalogue(fault_type("test.reboot", clears_by="condition"))
    story.fault("test.reboot", "False")
    assert story.state("Drain") != "Cancelled", "it must be booted anew, whatever the type says by now"
    story.reboot()
    story.look()
    assert story.step == "Validate"
