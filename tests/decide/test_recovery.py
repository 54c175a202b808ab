"""The fault goes by itself, or seems to; others join, lead, and are left."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.decide.made import catalogue, fault_type, minutes, procedure, rule
from tests.decide.story import Story

ORDER = ["Quarantine", "Drain", "Repair", "Validate", "Unquarantine"]
PEOPLE = {"by": "People"}


# --- gone


@pytest.mark.parametrize("waits", ["WaitingApproval", "WaitingSlot"])
def test_a_fault_that_is_gone_before_anything_was_done_ends_the_incident(waits):
    gates = {"Quarantine": PEOPLE} if waits == "WaitingApproval" else {}
    story = Story("test.reboot", rule=rule(procedure(**gates)), grants=False)
    assert story.phase == waits
    story.now += 60
    story.reboot()
    story.look()
    story.ended("Cancelled", "SelfRecovered")
    assert story.clean()
    assert story.acts() == []


@pytest.mark.case("N01")
@pytest.mark.case("P076")
@pytest.mark.case("P078")
@pytest.mark.parametrize("where", ["running", "waiting-for-approval"])
def test_a_drain_that_recovery_cancels_is_cancelled_and_leads_to_no_repair(where):
    gates = {"Drain": PEOPLE} if where == "waiting-for-approval" else {}
    story = Story("test.reboot", rule=rule(procedure(**gates))).run("Quarantine")
    story.now += 60
    story.reboot()
    story.look()
    assert story.state("Drain") == "Cancelled"
    story.at("Validate", "Running")
    story.run("Validate", "Unquarantine")
    story.ended("Cancelled", "SelfRecovered")
    assert story.acts() == []
    assert story.state("Drain") == "Cancelled", "never done, never succeeded"
    assert story.clean()


def test_a_fault_that_is_gone_while_the_repair_waits_needs_no_repair():
    story = Story("test.reboot", rule=rule(procedure(Repair=PEOPLE))).run("Quarantine", "Drain")
    story.now += 60
    story.reboot()
    story.look()
    story.run("Validate", "Unquarantine").ended("Cancelled", "SelfRecovered")
    assert story.acts() == []


def test_once_a_repair_has_begun_the_outcome_is_repaired():
    story = Story("test.reboot", rule=rule(procedure(Repair=PEOPLE))).run("Quarantine", "Drain")
    story.approve("Repair")
    story.report("Failed", "refused")
    story.now += 60
    story.reboot()
    story.look()
    story.run("Validate", "Unquarantine").ended("Succeeded", "Repaired")


def test_a_fault_that_only_seemed_gone_takes_up_its_plan_again():
    story = Story("test.service").run("Quarantine")
    story.now += 60
    story.fault("test.service", "False")
    story.at("Validate")
    story.now += 60
    story.fault("test.service")
    story.run("Validate", state="Failed")
    story.at("Drain", "Running")
    story.run("Drain")
    assert story.acts() == ["RestartService"]


def test_a_node_that_is_not_well_without_its_fault_is_for_people_not_for_a_loop():
    story = Story("test.service").run("Quarantine")
    story.now += 60
    story.fault("test.service", "False")
    story.run("Validate", state="Failed")
    assert (story.phase, story.needs, story.acts()) == ("NeedsHuman", "ValidationFailed", [])


# --- gone without proof


@pytest.mark.case("R18")
@pytest.mark.parametrize("gate", ["Quarantine", "Drain", "Repair"])
def test_a_fault_that_is_no_longer_seen_without_proof_pauses_the_plan(gate):
    story = Story("test.reboot", rule=rule(procedure(**{gate: PEOPLE}))).run(*ORDER[: ORDER.index(gate)])
    story.now += 60
    story.fault("test.reboot", "False")
    current = story.repair.status.current
    assert (story.phase, current.waits_for, current.on_deadline) == ("WaitingApproval", "ClearProof", "Escalate")
    story.approve(gate)
    assert story.state(gate) != "Running", "an approval does not make up for the proof"
    story.after(minutes(30))
    assert (story.phase, story.needs) == ("NeedsHuman", "ClearProofMissing")


@pytest.mark.case("R18")
def test_a_drain_under_way_pauses_and_keeps_its_deadline():
    story = Story("test.reboot").run("Quarantine")
    before = story.repair.status.current.deadline
    story.after(minutes(1))
    story.fault("test.reboot", "False")
    current = story.repair.status.current
    assert (story.phase, current.waits_for, current.deadline) == ("Running", "ClearProof", before)
    story.after(minutes(1))
    story.fault("test.reboot", "True")
    assert story.repair.status.current.waits_for == "Pods"


def test_a_paused_plan_goes_on_when_the_fault_is_there_again():
    story = Story("test.reboot", rule=rule(procedure(Repair=PEOPLE))).run("Quarantine", "Drain")
    story.fault("test.reboot", "False")
    story.after(minutes(10))
    story.fault("test.reboot", "True")
    assert story.repair.status.current.waits_for == "Approval"
    story.approve("Repair")
    story.at("Repair", "Running")


@pytest.mark.case("N20")
def test_a_call_for_people_over_a_missing_proof_ends_when_the_fault_is_there_again():
    story = Story("test.reboot", rule=rule(procedure(Repair=PEOPLE))).run("Quarantine", "Drain")
    story.fault("test.reboot", "False")
    story.after(minutes(31))
    assert story.needs == "ClearProofMissing"
    story.fault("test.reboot", "True")
    assert (story.phase, story.needs) == ("WaitingApproval", "")


@pytest.mark.parametrize("touched", [False, True], ids=["before-quarantine", "after-quarantine"])
def test_a_call_for_people_over_a_missing_proof_ends_with_the_proof(touched):
    gate = "Drain" if touched else "Quarantine"
    story = Story("test.reboot", rule=rule(procedure(**{gate: PEOPLE}))).run(*ORDER[: ORDER.index(gate)])
    story.fault("test.reboot", "False")
    story.after(minutes(31))
    story.now += 1
    story.facts["boot"] = "boot-2"
    story.look()
    if touched:
        story.run("Validate", "Unquarantine").ended("Succeeded", "Repaired")
    else:
        story.ended("Cancelled", "SelfRecovered")


@pytest.mark.case("P057")
@pytest.mark.case("P081")
def test_a_detector_that_cannot_see_neither_ends_nor_pauses_the_incident():
    story = Story("test.reboot").run("Quarantine")
    story.after(minutes(1))
    story.fault("test.reboot", "Unknown")
    current = story.repair.status.current
    assert (story.step, current.waits_for) == ("Drain", "Pods")
    story.fault("test.reboot", "True")
    assert story.repair.metadata.name.endswith("-1")
    story.run("Drain", "Repair", "Validate", "Unquarantine").ended("Succeeded", "Repaired")


@pytest.mark.case("P057")
def test_moving_between_two_bad_states_of_one_condition_restarts_nothing():
    match = [{"condition": {"type": "Ready", "status": s}} for s in ("Unknown", "False")]
    lost = fault_type("test.lost", match=match, for_="5m", clears_by="condition", class_="Node")
    story = Story(types=(lost,), ready=("Unknown", 0))
    assert story.phase == "Pending"
    story.now = 200
    story.facts["ready"] = (False, 200)
    story.look()
    assert story.phase == "Pending"
    story.now = 300
    story.look()
    story.at("Quarantine", "Running")


def test_flapping_is_one_incident_and_nothing_is_repaired_per_flip():
    story = Story("test.reboot", rule=rule(procedure(Repair=PEOPLE))).run("Quarantine", "Drain")
    for n in range(10):
        story.now += 60
        story.fault("test.reboot", "False" if n % 2 == 0 else "True", reason=f"rule-{n % 2}")
    assert story.acts() == []
    assert len(story.repair.spec.faults) == 1


# --- timers


@pytest.mark.case("P055")
def test_a_timer_runs_on_the_fault_not_on_the_reason_of_its_condition():
    bad = fault_type("test.timed", for_="10m", clears_by="condition")
    story = Story("test.timed", types=(bad,))
    for moment, reason in ((400, "XID79"), (599, "XID48")):
        story.now = moment
        story.fault("test.timed", "True", reason)
        assert story.phase == "Pending"
    story.now = 600
    story.look()
    story.at("Quarantine", "Running")


@pytest.mark.case("P056")
def test_a_second_fault_joins_and_the_oldest_start_counts():
    types = tuple(fault_type(f"test.timed-{n}", for_="10m", clears_by="condition") for n in (1, 2))
    story = Story("test.timed-1", types=types)
    story.now = 500
    story.fault("test.timed-2")
    assert [f.type for f in story.repair.spec.faults] == ["test.timed-1", "test.timed-2"]
    story.now = 600
    story.look()
    story.at("Quarantine", "Running")


def test_a_fault_that_was_gone_in_between_has_not_lasted():
    story = Story("test.timed", types=(fault_type("test.timed", for_="10m"),))
    story.now = 300
    story.fault("test.timed", "False")
    story.now = 400
    story.fault("test.timed")
    story.now = 700
    story.look()
    assert story.phase == "Pending"
    story.now = 1000
    story.look()
    story.at("Quarantine", "Running")


def test_a_fault_that_has_not_lasted_does_not_delay_one_that_has():
    story = Story("test.timed", types=(fault_type("test.timed", for_="10m", class_="Node"),))
    assert story.phase == "Pending"
    story.now = 60
    story.fault("test.reset")
    story.at("Quarantine", "Running")
    assert story.repair.spec.faults[0].type == "test.reset"
    story.run("Quarantine", "Drain")
    assert story.acts() == ["ResetGPU"], "the other one leads only when it has lasted"


# --- others


def test_a_stronger_fault_takes_over_between_two_steps_and_what_is_done_stays_done():
    story = Story("test.reset").run("Quarantine")
    story.now += 10
    story.fault("test.reboot")
    story.at("Drain", "Running")
    assert story.repair.spec.plan.generation == 1, "never in the middle of a step"
    story.run("Drain")
    assert story.repair.spec.plan.generation == 2
    assert [f.type for f in story.repair.spec.faults] == ["test.reboot", "test.reset"]
    assert (story.state("Quarantine"), story.state("Drain")) == ("Done", "Done")
    assert story.acts() == ["RebootNode"]
    assert "RepairReplanned" in story.reasons()


def test_a_weaker_fault_rides_along_and_must_be_gone_too():
    story = Story("test.reboot").run("Quarantine")
    story.now += 10
    story.fault("test.service")
    story.run("Drain")
    assert story.acts() == ["RebootNode"]
    story.now += 60
    story.facts["boot"] = "boot-2"
    story.conditions["test.reboot"] = ("False", story.now)
    story.look()
    assert [f.type for f in story.repair.spec.faults if f.cleared_at is None] == ["test.service"]


def test_a_fault_that_is_kept_back_neither_joins_nor_leads():
    """What a person has cancelled, or what the pool only observes, comes back by no other fault's door."""
    story = Story("test.reset")
    story.joins = frozenset({"test.reset"})
    story.run("Quarantine")
    story.fault("test.reboot")
    story.run("Drain")
    assert [f.type for f in story.repair.spec.faults] == ["test.reset"]
    assert story.acts() == ["ResetGPU"]


def test_faults_that_ask_nothing_of_the_node_do_not_join():
    story = Story("test.reboot").run("Quarantine")
    story.fault("test.noted")
    assert [f.type for f in story.repair.spec.faults] == ["test.reboot"]


@pytest.mark.case("N20")
def test_the_state_is_that_of_the_faults_that_are_left():
    story = Story("test.reboot").run("Quarantine")
    story.now += 10
    story.fault("test.support")
    story.run("Drain")
    assert (story.phase, story.needs) == ("NeedsHuman", "ContactSupport")
    story.now += 60
    story.fault("test.support", "False")
    story.at("Repair", "Running")
    assert (story.phase, story.needs, story.acts()) == ("Running", "", ["RebootNode"])


def test_a_rule_that_has_no_entry_for_the_stronger_fault_keeps_the_plan():
    entries = [{"name": "resets", "faults": {"names": ["test.reset"]}, "procedure": procedure()}]
    story = Story("test.reset", rule=rule(entries=entries)).run("Quarantine")
    story.fault("test.reboot")
    story.run("Drain")
    assert story.acts() == ["ResetGPU"]
    assert story.repair.spec.plan.generation == 1


def test_a_type_that_has_left_the_catalogue_is_never_taken_for_gone():
    story = Story("test.gone", types=(fault_type("test.gone", clears_by="condition"),)).run("Quarantine")
    story.catalogue = catalogue()
    story.now += 3600
    story.conditions.clear()
    story.look()
    assert story.repair.spec.faults[0].cleared_at is None


def deleted(*, cel: bool = False, clears_by: str = "condition") -> Story:
    """A repair that is about to drain, whose fault type has just been deleted."""
    match = [{"cel": "node.spec.unschedulable || true"}] if cel else [{"condition": {"type": "TestGone"}}]
    story = Story("test.gone", types=(fault_type("test.gone", clears_by=clears_by, match=match),))
    story.grants = False
    story.run("Quarantine")
    story.catalogue = catalogue()
    story.grants = True
    story.look()
    return story


@pytest.mark.parametrize("clears_by", ["condition", "reboot"])
def test_a_repair_goes_on_by_its_record_when_its_type_is_deleted(clears_by):
    story = deleted(clears_by=clears_by).run("Drain", "Repair", "Validate", "Unquarantine")
    story.ended("Succeeded", "Repaired")


def test_a_fault_whose_type_was_deleted_is_still_a_fault_while_its_condition_stands():
    story = deleted().run("Drain")
    story.report("Done")
    story.conditions["test.gone"] = ("True", story.now)
    story.look()
    assert story.repair.spec.faults[0].cleared_at is None
    story.report("Failed", "the fault is still there")
    assert story.acts() == ["RebootNode", "PowerCycle"]


def test_the_end_of_a_fault_whose_type_was_deleted_ends_the_repair_gracefully():
    story = deleted()
    story.fault("test.gone", "False")
    story.report("Claimed")
    story.run("Validate", "Unquarantine").ended("Cancelled", "SelfRecovered")


def test_nothing_begins_for_a_fault_that_nobody_can_recognise_any_more():
    story = deleted(cel=True)
    story.at("Drain", "Waiting")
    story.after(1801)
    assert (story.phase, story.needs) == ("NeedsHuman", "ClearProofMissing")
    assert story.acts() == []


# --- a ladder that climbs


@pytest.mark.parametrize("gated", [False, True], ids=["the-rule-has-neither", "the-rule-has-quarantine"])
def test_a_ladder_that_climbs_to_the_whole_node_empties_it_first_behind_a_gate_by_people(gated):
    steps = ("Quarantine", "Repair", "Unquarantine") if gated else ("Repair",)
    types = (fault_type("test.climbs", remedy=["RestartService", "RebootNode"], clears_by="condition"),)
    story = Story("test.climbs", rule=rule(procedure(*steps)), types=types)
    if gated:
        story.run("Quarantine")
    story.report("Failed", "it does not start")
    first = "Drain" if gated else "Quarantine"
    assert (story.phase, story.step) == ("WaitingApproval", first)
    assert [s.step for s in story.repair.spec.plan.steps] == ORDER
    story.approve(first)
    story.run(*ORDER[ORDER.index(first) : 2])
    assert story.acts() == ["RestartService", "RebootNode"]
    story.run("Repair", "Validate", "Unquarantine").ended("Succeeded", "Repaired")
    assert story.clean()


def climbing(**drain):
    """A service would not start; the reboot that comes next needs the node empty, and the rule has no Drain."""
    types = (fault_type("test.climbs", remedy=["RestartService", "RebootNode"], clears_by="condition"),)
    story = Story("test.climbs", rule=rule(procedure("Quarantine", "Repair", "Unquarantine")), types=types)
    story.run("Quarantine").report("Failed", "it does not start")
    return story


def test_a_denied_drain_after_a_first_remedy_returns_the_node_only_when_it_is_found_well():
    story = climbing()
    story.deny("Drain")
    story.at("Validate", "Running")
    story.fault("test.climbs", "False")
    story.run("Validate", "Unquarantine").ended("Cancelled", "Denied")
    assert story.acts() == ["RestartService"]
    assert story.clean()


def test_a_denied_drain_after_a_first_remedy_leaves_a_node_that_is_not_well_with_people():
    story = climbing()
    story.deny("Drain")
    story.report("Failed", "not well: not proven gone: test.climbs")
    assert (story.phase, story.needs) == ("NeedsHuman", "ValidationFailed")
    assert story.state("Unquarantine") != "Running"


def test_a_second_drain_that_takes_too_long_is_not_rolled_back_past_a_validation():
    steps = procedure()
    steps[1] |= {"options": {"scope": "GPUPods"}, "onTimeout": "RollBack", "timeout": "20m"}
    story = Story("test.reset", rule=rule(steps)).run("Quarantine", "Drain")
    story.report("Failed", "refused")
    story.at("Drain", "Running")
    story.after(minutes(21))
    story.at("Validate", "Running")
    story.report("Failed", "not well")
    assert (story.phase, story.needs) == ("NeedsHuman", "ValidationFailed")


def test_a_drain_of_gpu_pods_is_done_again_in_full_before_the_node_goes_down():
    steps = procedure()
    steps[1] |= {"options": {"scope": "GPUPods"}}
    story = Story("test.reset", rule=rule(steps)).run("Quarantine", "Drain")
    assert story.acts() == ["ResetGPU"]
    story.report("Failed", "refused")
    story.at("Drain", "Running")
    assert story.repair.spec.plan.step("Drain").options.scope == "All"
    story.run("Drain")
    assert story.acts() == ["ResetGPU", "RebootNode"]


def test_a_plan_that_has_grown_is_followed_from_its_first_open_step_whatever_was_written():
    """Spec and status are two writes. A crash between them must not leave out the drain that the spec just gained."""
    types = (fault_type("test.climbs", remedy=["RestartService", "RebootNode"], clears_by="condition"),)
    story = Story("test.climbs", rule=rule(procedure("Repair")), types=types)
    before = story.repair.status
    story.report("Failed", "it does not start")
    grown, lost = story.repair, deepcopy(before)
    lost.steps["Repair"] = deepcopy(grown.status.steps["Repair"])
    lost.current.attempt, lost.current.action = 2, ""
    lost.phase = "Pending"
    story.repair.status = lost
    story.facts["labels"].clear()
    story.facts["annotations"].clear()
    story.look()
    assert (story.step, story.phase) == ("Quarantine", "WaitingApproval")
    assert story.acts() == ["RestartService"]


# --- on the way back


@pytest.mark.case("P128")
@pytest.mark.parametrize("lasts", [True, False])
def test_a_young_fault_keeps_a_node_from_being_well_and_leads_only_when_it_lasts(lasts):
    slow = fault_type("test.slow", remedy=["PowerCycle"], for_="5m", clears_by="condition")
    story = Story("test.reboot", types=(slow,)).run("Quarantine", "Drain", "Repair")
    story.fault("test.slow")
    assert story.repair.uncleared == ["test.slow"], "execute does not take the node for well"
    story.after(minutes(4))
    story.at("Validate", "Running")
    if not lasts:
        story.fault("test.slow", "False")
        story.after(minutes(6))
        assert story.repair.uncleared == []
        story.run("Validate", "Unquarantine").ended("Succeeded", "Repaired")
        return
    story.after(minutes(2))
    story.at("Repair", "Running")
    assert story.acts() == ["RebootNode", "PowerCycle"]


def test_a_fault_that_is_proven_gone_does_not_lead_again_though_its_detector_still_shows_it():
    """Two faults: when the remedies of the graver one are used up and it is gone, the other one leads, once."""
    once = fault_type("test.once", remedy=["RebootNode"])
    still = fault_type("test.still", remedy=["ResetGPU"], clears_by="condition", severity="Error")
    story = Story("test.once", types=(once, still)).run("Quarantine", "Drain")
    story.now += 60
    story.reboot(clears=False)  # its condition stays; the new boot is the proof
    story.fault("test.still")
    story.report("Failed", "made for another boot")
    assert story.repair.spec.faults[0].type == "test.still"
    assert story.repair.uncleared == ["test.still"]
    assert story.repair.spec.plan.generation == 2
    story.settle()
    assert (story.repair.spec.plan.generation, story.acts()) == (2, ["RebootNode", "ResetGPU"])
