"""A new plan is two writes, spec and then status. When the second one is lost, the next look catches up.

(`story.check_half_written` holds every story to it, wherever a plan is replaced.)
"""

from __future__ import annotations

from copy import deepcopy

import pytest

from sickbay.api.repair_step import Report
from tests.decide.made import fault_type, procedure, rule
from tests.decide.story import Story

REPORTS = [
    ("Done", "Done"),
    ("Failed", "Failed"),
    ("Unknown", "Unknown"),
    ("InProgress", "Cancelled"),
    ("", "Cancelled"),
]


def another_leads(story: Story) -> None:
    """The spec that decide writes when another fault is to lead; its status never arrives."""
    whole = deepcopy(story)
    whole.fault("test.node")
    whole.report("Failed")
    assert (whole.repair.spec.faults[0].type, whole.repair.spec.plan.generation) == ("test.node", 2)
    story.repair.spec = whole.repair.spec
    story.facts = whole.facts


@pytest.mark.parametrize(("said", "kept"), REPORTS, ids=[said or "not-claimed" for said, _ in REPORTS])
def test_what_was_ordered_under_the_old_plan_is_over_and_on_record(said, kept):
    story = Story("test.reboot").run("Quarantine", "Drain")
    if said:
        report = Report(attempt=story.repair.status.current.attempt, plan_generation=1, state=said)
        story.repair.status.steps["Repair"].report = report
    ordered = story.repair.status.current.attempt
    another_leads(story)
    story.look()
    first, *_ = story.repair.status.steps["Repair"].attempts
    assert (first.n, first.action, first.state, first.plan_generation) == (ordered, "RebootNode", kept, 1)
    assert story.repair.status.current.attempt > ordered
    assert story.repair.status.current.plan_generation == 2
    assert story.state("Drain") == "Done", "what is done stays done"
    if said == "Done":  # nothing has been seen since the act: the node is looked at first
        story.at("Validate", "Running")
    else:
        story.at("Repair", "Running")
        story.run("Repair", "Validate", "Unquarantine").ended("Succeeded", "Repaired")


def test_a_step_that_the_new_plan_has_gained_is_not_passed_over():
    known = fault_type("test.service", remedy=["RestartService"], clears_by="condition", class_="System")
    story = Story("test.service", types=(known,), rule=rule(procedure("Repair", Repair={"by": "People"})))
    story.at("Repair", "Waiting")
    gained = Story("test.node").repair.spec.plan
    story.repair.spec.plan = deepcopy(gained)
    story.repair.spec.plan.generation = 2
    story.look()
    story.at("Quarantine", "Running")


def test_a_roll_back_goes_on_under_whatever_plan():
    story = Story("test.reboot").run("Quarantine")
    story.delete()
    assert story.phase == "Cancelling"
    story.repair.spec.plan.generation += 1
    story.look()
    assert story.phase == "Cancelling"
    story.report("Done")
    story.ended("Cancelled", "CancelledByPerson")
    assert story.clean()


def test_a_record_of_an_earlier_version_names_no_plan_and_goes_on():
    story = Story("test.reboot").run("Quarantine", "Drain")
    story.repair.status.current.plan_generation = 0
    story.run("Repair", "Validate", "Unquarantine").ended("Succeeded", "Repaired")
    assert story.acts() == ["RebootNode"]
