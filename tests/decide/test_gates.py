"""The gate before a step: every cell of the outcome table, and what an approval is good for."""

from __future__ import annotations

import json

import pytest

from tests.decide.made import PREFIX, hours, minutes, pool, procedure, rule
from tests.decide.story import Story

ORDER = ["Quarantine", "Drain", "Repair", "Validate", "Unquarantine"]
INQUIRY = "sickbay.dev/inquiry"


def gated(step: str, *, fault: str = "test.reboot", **approval) -> Story:
    """A repair that stands at the gate of this step."""
    gate = {"by": "People", "timeout": "24h", **approval}
    story = Story(fault, rule=rule(procedure(**{step: gate})))
    story.run(*ORDER[: ORDER.index(step)])
    assert (story.phase, story.step) == ("WaitingApproval", step)
    assert story.label(step) == "inquiring"
    return story


@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair", "Unquarantine"])
def test_an_approved_step_runs_and_leaves_neither_label_nor_binding(step):
    story = gated(step)
    story.approve(step)
    story.at(step, "Running")
    story.run(*ORDER[ORDER.index(step) :])
    story.ended("Succeeded", "Repaired")
    assert story.clean()
    assert INQUIRY not in story.facts["annotations"]
    assert story.reasons().count(f"{step}AwaitingApproval") == 1


# --- denied


@pytest.mark.parametrize("claimed", [False, True], ids=["not-claimed", "claimed"])
@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair"])
def test_an_approval_may_be_taken_back_until_the_step_has_begun(step, claimed):
    story = gated(step)
    story.approve(step)
    if claimed:
        story.report("Claimed")
    story.deny(step)
    if claimed:
        story.at(step, "Running")
        return
    assert story.outcome == "Denied"
    assert story.state(step) in ("Cancelled", "Waiting")
    assert story.acts() == []


def test_denied_quarantine_is_cancelled_and_nothing_happened():
    story = gated("Quarantine")
    story.deny("Quarantine")
    story.ended("Cancelled", "Denied")
    assert story.clean()
    assert not story.node.unschedulable


def test_denied_drain_is_cancelled_and_rolled_back():
    story = gated("Drain")
    story.deny("Drain")
    assert (story.phase, story.state("Drain")) == ("Cancelling", "Cancelled")
    story.report("Done")
    story.ended("Cancelled", "Denied")
    assert story.clean()
    assert story.acts() == []


@pytest.mark.parametrize("well", [True, False], ids=["passed", "not-passed"])
def test_denied_repair_is_validated(well):
    story = gated("Repair")
    story.deny("Repair")
    story.at("Validate")
    assert story.state("Repair") == "Cancelled"
    if well:
        story.reboot()
        story.run("Validate", "Unquarantine").ended("Cancelled", "Denied")
    else:
        story.run("Validate", state="Failed")
        assert (story.phase, story.needs) == ("NeedsHuman", "ValidationFailed")
        assert story.node.unschedulable
    assert story.acts() == []


def test_denied_unquarantine_stays_quarantined_with_people():
    story = gated("Unquarantine")
    story.deny("Unquarantine")
    assert story.phase == "NeedsHuman"
    assert story.node.unschedulable
    story.after(hours(30))
    assert story.phase == "NeedsHuman"
    story.uncordon()
    story.report("Done")
    story.ended("Cancelled", "CancelledByPerson")


def test_a_return_that_was_denied_may_still_be_approved():
    story = gated("Unquarantine")
    story.deny("Unquarantine")
    story.approve("Unquarantine")
    story.run("Unquarantine").ended("Succeeded", "Repaired")


# --- time-outs


@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair", "Unquarantine"])
def test_escalate_calls_people_and_a_later_approval_still_goes_on(step):
    story = gated(step, onTimeout="Escalate")
    story.after(hours(24) - 1)
    assert story.phase == "WaitingApproval"
    story.after(1)
    assert (story.phase, story.needs, story.label(step)) == ("NeedsHuman", "ApprovalTimeout", "inquiring")
    story.after(hours(30))
    story.approve(step)
    story.at(step, "Running")
    assert story.needs == ""


@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair", "Unquarantine"])
def test_a_word_for_on_timeout_that_this_version_does_not_know_escalates(step):
    story = gated(step, onTimeout="Shrug")
    story.after(hours(24))
    assert (story.phase, story.needs) == ("NeedsHuman", "ApprovalTimeout")


@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair"])
def test_after_an_escalation_a_denial_is_one_too(step):
    story = gated(step)
    story.after(hours(25))
    story.deny(step)
    assert story.outcome == "Denied"


@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair"])
def test_after_an_escalation_a_fault_that_is_gone_needs_no_approval(step):
    story = gated(step)
    story.after(hours(25))
    story.reboot()
    story.look()
    if step == "Quarantine":
        story.ended("Cancelled", "SelfRecovered")
    else:
        story.run("Validate", "Unquarantine").ended("Cancelled", "SelfRecovered")
    assert story.acts() == []
    assert story.clean()


@pytest.mark.parametrize("step", ["Quarantine", "Drain"])
def test_abort_of_quarantine_and_drain_is_a_denial(step):
    story = gated(step, onTimeout="Abort")
    story.after(hours(24))
    if step == "Drain":
        story.report("Done")
    story.ended("Cancelled", "Denied")
    assert story.clean()


def test_abort_of_repair_is_a_denial():
    story = gated("Repair", onTimeout="Abort")
    story.after(hours(24))
    story.at("Validate")
    assert story.outcome == "Denied"


def test_abort_of_unquarantine_is_a_denial():
    story = gated("Unquarantine", onTimeout="Abort")
    story.after(hours(24))
    assert story.phase == "NeedsHuman"
    assert story.node.unschedulable


def test_skip_of_repair_goes_to_validate():
    story = gated("Repair", onTimeout="Skip")
    story.after(hours(24))
    story.at("Validate")
    assert (story.state("Repair"), story.acts(), story.label("Repair")) == ("Skipped", [], "")
    assert story.outcome == "SelfRecovered", "what is well without a repair has recovered by itself"


def test_skip_leaves_the_step_out_and_goes_on_with_the_next_one():
    """Quarantine may be skipped where no Drain follows."""
    gate = {"by": "People", "timeout": "1h", "onTimeout": "Skip"}
    story = Story("test.service", rule=rule(procedure("Quarantine", "Repair", "Unquarantine", Quarantine=gate)))
    story.after(hours(1))
    assert story.state("Quarantine") == "Skipped"
    story.at("Repair", "Running")
    assert story.clean()
    assert not story.node.unschedulable


def test_skip_never_lets_a_repair_run_without_its_drain():
    """The API server refuses such a rule; one that got through must do no harm."""
    story = gated("Drain", onTimeout="Skip")
    story.after(hours(24))
    assert story.acts() == []


# --- what an approval is good for


def test_a_question_that_somebody_took_away_is_asked_again_and_its_time_goes_on():
    story = gated("Drain", timeout="1h")
    story.after(minutes(30))
    story.facts["labels"].pop(f"{PREFIX}/drain-node")
    story.look()
    assert story.label("Drain") == "inquiring"
    story.facts["annotations"].pop(INQUIRY)
    story.facts["labels"][f"{PREFIX}/drain-node"] = "approved"
    story.look()
    assert (story.label("Drain"), story.phase) == ("inquiring", "WaitingApproval")
    story.after(minutes(30))
    assert story.phase == "NeedsHuman"
    assert story.reasons().count("DrainAwaitingApproval") == 1


def test_an_approval_that_was_there_before_we_asked_is_none():
    early = {f"{PREFIX}/quarantine-node": "approved"}
    story = Story("test.reboot", rule=rule(procedure(Quarantine={"by": "People"})), labels=early)
    assert (story.phase, story.label("Quarantine")) == ("WaitingApproval", "inquiring")


def test_each_rung_of_a_gated_repair_is_asked_for_anew():
    story = gated("Repair")
    story.approve("Repair")
    story.report("Failed", "refused")
    assert (story.phase, story.step, story.label("Repair")) == ("WaitingApproval", "Repair", "inquiring")
    assert "PowerCycle" in story.repair.status.message
    assert story.acts() == ["RebootNode"]
    asked = json.loads(story.facts["annotations"][INQUIRY])
    assert asked["attempt"] == 2


def test_a_denial_that_comes_before_the_step_has_started_is_still_one():
    """Approved, and then waiting for a slot: whoever thinks better of it is heard."""
    story = gated("Drain")
    story.grants = False
    story.approve("Drain")
    assert story.phase == "WaitingSlot"
    story.deny("Drain")
    assert (story.phase, story.outcome) == ("Cancelling", "Denied")


def test_who_approved_is_recorded_where_the_stamp_tells():
    story = gated("Drain")
    story.facts["annotations"]["sickbay.dev/changed-by"] = '{"user": "ops-1", "at": "2027-03-01T08:00:00Z"}'
    story.approve("Drain")
    assert story.repair.status.step("Drain").approved_by == "ops-1"
    unstamped = gated("Drain")
    unstamped.approve("Drain")
    assert unstamped.repair.status.step("Drain").approved_by == "unknown"


@pytest.mark.parametrize(
    ("by", "phase"),
    [
        pytest.param("Jobs", "Running", id="jobs-that-nobody-asks-have-answered"),
        pytest.param("PeopleAndJobs", "WaitingApproval", id="people-and-jobs-waits-for-people"),
        pytest.param("TheMoon", "WaitingApproval", id="an-unknown-word-waits-for-people"),
    ],
)
def test_who_answers_a_gate(by, phase):
    story = Story("test.reboot", rule=rule(procedure(Drain={"by": by}))).run("Quarantine")
    assert story.phase == phase


# --- the gate that nobody wrote


@pytest.mark.parametrize(
    ("gate", "disposable", "phase"),
    [
        pytest.param(None, False, "WaitingApproval", id="an-irreversible-act-asks-people"),
        pytest.param(None, True, "Parked", id="unless-the-pool-says-that-its-data-is-disposable"),
        pytest.param({"by": "Jobs"}, False, "WaitingApproval", id="jobs-do-not-speak-for-people"),
        pytest.param({"by": "Jobs"}, True, "Parked", id="jobs-do-where-the-data-is-disposable"),
    ],
)
def test_what_cannot_be_undone_is_asked_for_first(gate, disposable, phase):
    steps = procedure(**({"Repair": gate} if gate else {}))
    story = Story("test.replace", rule=rule(steps), pool=pool(localDataDisposable=disposable)).run(
        "Quarantine", "Drain"
    )
    assert (story.step, story.phase) == ("Repair", phase)


def test_a_reversible_act_is_not_gated_by_itself():
    Story("test.reboot").run("Quarantine", "Drain").at("Repair", "Running")


@pytest.mark.case("P096")
def test_a_repair_that_waits_says_for_what_since_when_until_when_and_what_then():
    story = gated("Drain", timeout="2h", onTimeout="Abort")
    current = story.repair.status.current
    assert (current.waits_for, current.on_deadline) == ("Approval", "Abort")
    assert (current.since, current.deadline) == ("2027-03-01T08:01:00Z", "2027-03-01T10:01:00Z")
    assert f"kubectl label node n1 {PREFIX}/drain-node=approved" in story.repair.status.message


@pytest.mark.case("P067")
def test_people_are_reminded_at_the_last_interval_of_the_gate_and_at_least_daily():
    story = gated("Drain", timeout="1h", reminders=["30m", "2h"])
    story.after(hours(1))
    for _ in range(3):
        assert story.repair.status.current.deadline
        story.after(hours(2))
    assert story.reasons().count("DrainNeedsHuman") == 4
    weekly = gated("Drain", timeout="1h", reminders=["7d"])
    weekly.after(hours(1))
    weekly.after(hours(24))
    assert weekly.reasons().count("DrainNeedsHuman") == 2


def test_a_call_for_people_is_not_pushed_back_by_looking():
    story = gated("Drain", timeout="1h")
    story.after(hours(1))
    before = story.repair.status.current.deadline
    for _ in range(10):
        story.after(minutes(1))
    assert story.repair.status.current.deadline == before
