"""Our mark in other hands: put back once for automation, cancelled for people; and the end of what they decided."""

from __future__ import annotations

import json

import pytest

from sickbay.api import names
from sickbay.decide import memory
from sickbay.decide.restoring import automation
from sickbay.decide.work import View
from tests.decide.made import at, hours, minutes, node, pool, procedure, rule
from tests.decide.story import Story

DRIVER = "system:serviceaccount:gpu-operator:nvidia-driver"


def held(*gates: str) -> Story:
    """A quarantined node whose repair waits at a gate."""
    story = Story("test.reboot", rule=rule(procedure(**{step: {"by": "People"} for step in gates or ("Drain",)})))
    story.run("Quarantine")
    return story


def takes(story: Story, user: str, what: str = "unschedulable") -> None:
    """Somebody takes our mark away, as the admission policy stamps it."""
    story.facts["annotations"][names.CHANGED_BY] = json.dumps({"user": user, "what": what})
    if what == "unschedulable":
        story.facts["unschedulable"] = False
    else:
        story.mark = story.facts["annotations"].pop(names.QUARANTINE)
    story.look()


def puts_back(story: Story) -> None:
    story.facts["unschedulable"] = True
    if getattr(story, "mark", None):
        story.facts["annotations"][names.QUARANTINE] = story.mark
    story.facts["annotations"].pop(names.CHANGED_BY, None)
    story.look()


@pytest.mark.parametrize("what", ["unschedulable", "sickbay.dev/quarantine"])
def test_automation_is_no_person_and_the_mark_is_asked_back_with_an_alert(what):
    story = held()
    takes(story, DRIVER, what)
    assert story.phase == "WaitingApproval"
    assert (story.repair.status.restored.by, story.repair.status.restored.done) == (DRIVER, False)
    assert "MarkRestored" in story.reasons()
    puts_back(story)
    assert story.repair.status.restored.done
    story.approve("Drain")
    story.run("Drain", "Repair", "Validate", "Unquarantine")
    story.ended("Succeeded", "Repaired")


def test_the_second_time_counts_as_a_persons():
    story = held()
    takes(story, DRIVER)
    puts_back(story)
    takes(story, DRIVER)
    assert (story.phase, story.repair.status.outcome) == ("Cancelling", "CancelledByPerson")


def test_a_mark_that_cannot_be_put_back_in_ten_minutes_is_given_up():
    story = held()
    takes(story, DRIVER)
    story.after(minutes(9))
    assert story.phase == "WaitingApproval"
    story.after(minutes(2))
    assert story.phase == "Cancelling"


def test_nothing_is_decided_while_the_mark_is_off():
    story = held()
    takes(story, DRIVER)
    story.approve("Drain")
    story.at("Drain", "Waiting")


def test_a_drain_that_was_done_is_done_again():
    story = held("Repair")
    story.run("Drain")
    takes(story, DRIVER)
    puts_back(story)
    story.at("Drain", "Running")


USERS = {
    "the driver's service account": (DRIVER, True),
    "in any case": ("System:ServiceAccount:X:KURED", True),
    "a person": ("alice@example.com", False),
    "an unknown client": ("system:serviceaccount:ci:deployer", False),
    "nobody": ("", False),
}


@pytest.mark.parametrize(("user", "known"), USERS.values(), ids=USERS)
def test_only_named_automation_is_none_of_the_people(user, known):
    stamp = json.dumps({"user": user, "what": "unschedulable"})
    assert bool(automation(node(annotations={names.CHANGED_BY: stamp}), names.AUTOMATION)) is known
    story = held()
    takes(story, user)
    assert (story.phase == "Cancelling") is not known


@pytest.mark.parametrize("stamp", ["", "no json", '{"user": 7}', json.dumps({"user": DRIVER, "what": "drain-node"})])
def test_a_stamp_that_says_nothing_about_the_mark_names_nobody(stamp):
    assert automation(node(annotations={names.CHANGED_BY: stamp}), names.AUTOMATION) == ""


def test_the_list_is_configurable():
    stamp = json.dumps({"user": "acme-fleet-bot", "what": "unschedulable"})
    assert automation(node(annotations={names.CHANGED_BY: stamp}), ("*fleet-bot",)) == "acme-fleet-bot"


# --- an hour before a cancel is over


def cancelled() -> Story:
    story = held()
    story.uncordon()
    story.run("Unquarantine")
    story.ended("Cancelled", "CancelledByPerson")
    return story


def announced(story: Story, seconds: float, sick: bool = True):
    there = story.node
    view = View(at(seconds), there, story.active if sick else [], story.catalogue.types)
    return memory.announced(story.repair, view, pool())


@pytest.mark.parametrize(
    ("after", "said"),
    [(hours(22), False), (hours(23) + minutes(5), True), (hours(24) + minutes(5), False)],
    ids=["too early", "an hour before", "over"],
)
def test_people_are_told_an_hour_before_a_cancel_is_over(after, said):
    found = announced(cancelled(), after)
    assert (found is not None) is said
    if found is not None:
        assert "a new repair opens" in found.status.condition("CancelHoldEnds").message


def test_it_is_said_once_and_not_when_the_fault_is_gone():
    story = cancelled()
    assert announced(story, hours(23.5), sick=False) is None
    story.repair = announced(story, hours(23.5))
    assert announced(story, hours(23.6)) is None
