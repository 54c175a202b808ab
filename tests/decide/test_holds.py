"""Holds at each level, opt-outs and other owners: what starts, what waits, what flows."""

from __future__ import annotations

import pytest

from sickbay.clock import parse_time
from tests.decide.made import hours, minutes, procedure, rule
from tests.decide.story import Story

ORDER = ["Quarantine", "Drain", "Repair", "Validate", "Unquarantine"]
PEOPLE = {"by": "People", "timeout": "1h"}


def before(step: str, hold: str) -> Story:
    """A repair that comes to this step under a Hold that is set while the step before runs."""
    if step == "Quarantine":
        story = Story("test.reboot", grants=False)
        story.hold = hold
        story.grants = True
        story.look()
        return story
    story = Story("test.reboot").run(*ORDER[: ORDER.index(step) - 1])
    story.report("InProgress")
    story.hold = hold
    story.run(ORDER[ORDER.index(step) - 1])
    return story


@pytest.mark.parametrize(
    ("hold", "stops"),
    [
        pytest.param("NewRepairs", {"Quarantine"}, id="NewRepairs-keeps-repairs-from-beginning"),
        pytest.param("NextStep", {"Quarantine", "Drain", "Repair"}, id="NextStep-keeps-steps-from-starting"),
        pytest.param("", set(), id="no-hold"),
    ],
)
@pytest.mark.parametrize("step", ORDER)
def test_a_hold_stops_starts_and_lets_releases_flow(step, hold, stops):
    story = before(step, hold)
    current = story.repair.status.current
    if step in stops:
        assert (story.step, story.phase, current.waits_for) == (step, "Pending", "Hold")
        story.hold = ""
        story.look()
    story.at(step, "Running")


@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair"])
def test_a_step_that_nobody_has_claimed_goes_back_to_waiting_and_nothing_has_failed(step):
    story = Story("test.reboot").run(*ORDER[: ORDER.index(step)])
    attempt = story.repair.status.current.attempt
    story.hold = "NextStep"
    story.look()
    story.at(step, "Waiting")
    story.after(hours(20))
    assert story.repair.status.current.waits_for == "Hold"
    story.hold = ""
    story.look()
    story.at(step, "Running")
    assert story.repair.status.current.attempt == attempt
    assert story.repair.status.step(step).attempts == []


def test_a_first_step_that_nobody_has_claimed_is_a_new_repair_still():
    story = Story("test.reboot")
    story.hold = "NewRepairs"
    story.look()
    story.at("Quarantine", "Waiting")
    claimed = Story("test.reboot")
    claimed.report("Claimed")
    claimed.hold = "NewRepairs"
    claimed.look()
    claimed.at("Quarantine", "Running")


def test_a_step_that_is_claimed_goes_on_to_its_end():
    story = Story("test.reboot").run("Quarantine")
    story.report("InProgress")
    story.hold = "NextStep"
    story.look()
    story.at("Drain", "Running")
    story.run("Drain")
    story.at("Repair", "Waiting")


def test_a_wait_for_a_hold_is_told_of_daily_and_not_pushed_back_by_looking():
    story = before("Drain", "NextStep")
    deadline = story.repair.status.current.deadline
    for _ in range(5):
        story.after(minutes(1))
    assert story.repair.status.current.deadline == deadline
    story.after(hours(24))
    assert story.repair.status.current.deadline != deadline
    assert story.reasons().count("DrainWaiting") == 1


# --- EveryAct


@pytest.mark.parametrize("step", ORDER)
def test_everyact_freezes_a_running_step_with_the_time_it_has_left(step):
    story = Story("test.reboot").run(*ORDER[: ORDER.index(step)])
    story.report("InProgress")
    story.after(minutes(4))
    state = story.state(step)
    left = _left(story)
    story.hold = "EveryAct"
    story.look()
    for _ in range(30):
        story.after(hours(1))
        assert (story.step, story.state(step)) == (step, state)
        assert story.repair.status.current.waits_for == "Hold"
    story.hold = ""
    story.look()
    story.at(step, "Running")
    assert abs(_left(story) - left) <= 1


def _left(story: Story) -> float:
    return (parse_time(story.repair.status.current.deadline) - story.moment).total_seconds()


def test_a_hold_that_nobody_saw_come_makes_nothing_late():
    """The controller was down when the Hold came, and the drain's time ran out meanwhile."""
    story = Story("test.reboot").run("Quarantine")
    story.hold = "EveryAct"
    story.after(hours(2))
    story.at("Drain", "Running")
    story.after(hours(2))
    story.at("Drain", "Running")


def test_what_execute_has_finished_before_the_freeze_counts_after_it():
    story = Story("test.reboot").run("Quarantine")
    story.hold = "EveryAct"
    story.look()
    story.report("Done")
    story.at("Drain", "Running")
    story.hold = ""
    story.look()
    story.at("Repair", "Running")


def test_an_approval_has_the_time_it_had_left():
    story = Story("test.reboot", rule=rule(procedure(Drain=PEOPLE))).run("Quarantine")
    story.after(minutes(50))
    story.hold = "EveryAct"
    story.look()
    story.after(hours(10))
    story.hold = ""
    story.look()
    story.after(minutes(9))
    assert (story.phase, story.repair.status.current.waits_for) == ("WaitingApproval", "Approval")
    story.after(minutes(2))
    assert story.phase == "NeedsHuman"


@pytest.mark.parametrize("where", ["fresh", "slot", "people"])
def test_a_frozen_wait_has_a_deadline_too_and_goes_on_afterwards(where):
    story = Story("test.reboot", grants=False) if where != "fresh" else Story("test.reboot", opened=False)
    if where == "fresh":
        story.hold = "EveryAct"
        story.repair = story._opened()
    if where == "people":
        story.grants = True
        story.look()
        story.run("Quarantine").after(minutes(31))
        assert story.phase == "NeedsHuman"
    story.hold = "EveryAct"
    story.look()
    for _ in range(10):
        story.after(hours(7))
    story.hold, story.grants = "", True
    story.look()
    if where == "people":
        assert (story.phase, story.repair.status.current.waits_for) == ("NeedsHuman", "People")
    else:
        story.at("Quarantine", "Running")


def test_a_person_is_heard_under_everyact_and_the_roll_back_waits():
    story = Story("test.reboot").run("Quarantine")
    story.hold = "EveryAct"
    story.uncordon()
    assert (story.phase, story.outcome) == ("Cancelling", "CancelledByPerson")
    story.facts["unschedulable"] = True
    for _ in range(5):
        story.after(minutes(30))
    assert len(story.repair.status.step("Unquarantine").attempts) == 0
    story.hold = ""
    story.report("Done")
    story.ended("Cancelled", "CancelledByPerson")


def test_a_node_that_is_gone_ends_a_frozen_incident_too():
    story = Story("test.reboot").run("Quarantine")
    story.hold = "EveryAct"
    story.node_there = False
    story.look()
    story.ended("Cancelled", "NodeGone")


# --- the node is somebody else's


@pytest.mark.case("R43")
@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair"])
def test_nothing_is_started_on_a_node_that_is_off_limits(step):
    story = Story("test.reboot", grants=False) if step == "Quarantine" else Story("test.reboot")
    if step != "Quarantine":
        story.run(*ORDER[: ORDER.index(step) - 1])
    story.grants, story.hands_off = True, "another system is taking the node away"
    story.run(*([ORDER[ORDER.index(step) - 1]] if step != "Quarantine" else []))
    story.look()
    assert (story.step, story.repair.status.current.waits_for) == (step, "OtherOwner")
    assert story.state(step) != "Running"
    story.hands_off = ""
    story.look()
    story.at(step, "Running")


def test_a_node_that_is_off_limits_is_still_returned():
    story = Story("test.reboot").run(*ORDER[:3])
    story.hands_off = "opted out"
    story.run("Validate", "Unquarantine").ended("Succeeded", "Repaired")


@pytest.mark.parametrize("what", ["OtherOwner", "Job", "Hold"])
def test_what_keeps_execute_from_claiming_uses_up_neither_time_nor_attempt(what):
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.report("", "machine-health holds the node's Lease", waits_for=what)
    current = story.repair.status.current
    assert (story.phase, current.waits_for, current.on_deadline) == ("Running", what, "Remind")
    for _ in range(3):
        story.after(hours(25))
    story.at("Repair", "Running")
    assert story.reasons().count("RepairWaiting") == 3
    story.report("Claimed")
    current = story.repair.status.current
    assert (current.waits_for, current.on_deadline, _left(story)) == ("Provider", "NextRung", minutes(15))


def test_what_kept_execute_from_an_earlier_attempt_is_over():
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.report("", "held", waits_for="OtherOwner")
    story.repair.status.steps["Repair"].report.attempt = 0
    story.look()
    assert story.repair.status.current.waits_for == "Provider"
