"""Observe: say what would be done, touch nothing."""

from __future__ import annotations

import pytest

from tests.decide.made import hours, procedure, rule
from tests.decide.story import Story

PEOPLE = {"by": "People"}


@pytest.mark.case("N21")
def test_observed_faults_are_told_of_and_nothing_is_touched():
    story = Story("test.reboot", observe=True, rule=rule(procedure(Drain=PEOPLE)))
    assert story.phase == "WouldAct"
    assert not story.repair.ended
    for part in ("Quarantine, Drain, Repair (RebootNode)", "asking before Drain"):
        assert part in story.repair.status.message
    for _ in range(10):
        story.after(hours(10))
    assert story.reasons() == ["RepairWouldAct"]
    assert story.slots == set()
    assert story.facts["annotations"] == {}
    assert story.facts["labels"] == {}
    assert story.repair.status.steps == {}


def test_it_ends_when_the_fault_is_gone():
    story = Story("test.reboot", observe=True)
    story.fault("test.reboot", "False")
    story.ended("WouldAct", "Observed")


def test_a_detector_that_cannot_see_ends_no_observation():
    story = Story("test.reboot", observe=True)
    story.fault("test.reboot", "Unknown")
    assert not story.repair.ended


def test_another_fault_does_not_keep_it_open():
    story = Story("test.reboot", observe=True)
    story.joins = frozenset()
    story.conditions["test.noted"] = ("True", 0)
    story.fault("test.reboot", "False")
    story.ended("WouldAct", "Observed")


@pytest.mark.parametrize("why", ["the-pool-acts-now", "another-fault-is-acted-on", "deleted"])
def test_it_makes_room_for_a_repair(why):
    story = Story("test.reboot", observe=True)
    if why == "the-pool-acts-now":
        story.observe = False
        story.look()
    elif why == "deleted":
        story.delete()
    else:
        story.acting = "test.node"
        story.look()
    story.ended("WouldAct", "Observed")
    assert story.clean()


def test_a_pool_that_goes_back_to_observe_takes_its_question_back():
    story = Story("test.reboot", rule=rule(procedure(Quarantine=PEOPLE)))
    assert story.label("Quarantine") == "inquiring"
    story.observe = True
    story.look()
    assert story.phase == "WouldAct"
    assert story.clean()


@pytest.mark.parametrize("claimed", [False, True], ids=["not-claimed", "claimed"])
def test_a_service_is_not_restarted_when_the_pool_goes_back_to_observe_before_it_begins(claimed):
    story = Story("test.service", rule=rule(procedure("Repair")))
    story.at("Repair", "Running")
    if claimed:
        story.report("Claimed")
    story.observe = True
    story.look()
    if claimed:
        story.at("Repair", "Running")
        return
    assert story.phase == "WouldAct"
    assert story.state("Repair") == "Waiting", "execute must find nothing to claim"
