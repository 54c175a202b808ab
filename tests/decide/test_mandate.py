"""A pool that is taken away from under an open repair: it observes now, it is gone, it has lost the node."""

from __future__ import annotations

import pytest

from sickbay.decide import mandate
from tests.decide import made
from tests.decide.made import hours, minutes, procedure, rule
from tests.decide.story import Story
from tests.decide.test_hands import GATES, ORDER, standing

GONE = "pool train is gone"
WAYS = ["observes", "unowned"]


def take_away(story: Story, way: str) -> None:
    story.observe, story.unowned = way == "observes", GONE if way == "unowned" else ""
    story.look()


def give_back(story: Story) -> None:
    story.observe, story.unowned = False, ""
    story.look()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["Drain", "Drain?", "Drain!", "Drain#", "Repair", "Repair?", "Repair!"])
def test_no_step_begins_and_the_node_stays_as_it_is(where, way):
    story = standing(where)
    acts, step = [], story.step
    take_away(story, way)
    story.at(step, "Waiting")
    assert story.phase == "Pending"
    assert story.label(step) == "", "nobody is asked about what will not begin"
    story.after(minutes(5))
    assert (story.phase, story.needs) == ("NeedsHuman", "PoolWithdrawn")
    for _ in range(4):
        story.after(hours(12))
        assert (story.phase, story.step, story.state(step)) == ("NeedsHuman", step, "Waiting")
    assert story.node.unschedulable
    assert story.repair.status.step("Repair").attempts == acts


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair"])
def test_a_step_that_execute_has_claimed_goes_to_its_end_and_the_next_does_not_begin(step, way):
    story = standing(step)
    story.report("Claimed")
    take_away(story, way)
    story.at(step, "Running")
    story.report("Done")
    following = ORDER[ORDER.index(step) + 1]
    story.at(following, "Running" if following == "Validate" else "Waiting")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["Validate", "Validate#", "Unquarantine?", "Unquarantine"])
def test_the_way_back_into_service_stays_open(where, way):
    story = standing(where)
    take_away(story, way)
    story.grants = True
    story.look()
    if story.step == "Validate":
        story.run("Validate")
    if story.state("Unquarantine") != "Running":
        story.approve("Unquarantine")
    story.run("Unquarantine").ended("Succeeded", "Repaired")
    assert story.clean()


@pytest.mark.parametrize("way", WAYS)
def test_no_stronger_remedy_follows_a_validation_that_failed(way):
    story = standing("Validate")
    take_away(story, way)
    story.report("Failed", "a GPU is missing")
    story.at("Repair", "Waiting")
    story.after(minutes(6))
    assert story.needs == "PoolWithdrawn"
    assert story.acts() == ["RebootNode"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("waited", [0, minutes(10), hours(30)], ids=["at-once", "people-called", "much-later"])
def test_a_node_whose_faults_are_gone_is_validated_and_returned(waited, way):
    story = standing("Drain#")
    take_away(story, way)
    story.after(waited)
    story.reboot()
    story.grants = True
    story.look()
    story.run("Validate", "Unquarantine").ended("Cancelled", "SelfRecovered")
    assert story.clean()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("after", [minutes(1), hours(2)], ids=["before-people-are-called", "after"])
def test_it_goes_on_when_the_pool_acts_again_and_asks_anew(after, way):
    story = Story("test.reboot", rule=rule(procedure(Repair=GATES["Repair"]))).run("Quarantine", "Drain")
    story.grants = False
    story.slots.clear()
    story.approve("Repair")
    assert story.phase == "WaitingSlot"
    take_away(story, way)
    story.after(after)
    give_back(story)
    story.grants = True
    story.look()
    story.at("Repair", "Waiting")
    assert story.label("Repair") == "inquiring", "what was approved before counts no more"
    story.approve("Repair")
    story.run("Repair", "Validate", "Unquarantine").ended("Succeeded", "Repaired")


def test_people_are_told_what_is_in_the_way_as_it_is_now():
    story = standing("Drain#")
    take_away(story, "observes")
    story.after(minutes(10))
    assert "only observes" in story.repair.status.message
    take_away(story, "unowned")
    assert GONE in story.repair.status.message
    assert "kubectl uncordon n1" in story.repair.status.message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("hand", ["uncordon", "unmark", "delete"])
def test_a_persons_hand_still_ends_it(hand, way):
    story = standing("Drain#")
    take_away(story, way)
    story.after(hours(1))
    getattr(story, hand)()
    assert story.phase == "Cancelling"
    story.report("Done")
    story.ended("Cancelled", "CancelledByPerson")


@pytest.mark.parametrize("where", ["Quarantine?", "Quarantine!"])
def test_a_repair_in_which_nothing_was_done_ends_with_its_pool(where):
    story = standing(where)
    take_away(story, "unowned")
    story.ended("Failed", "GaveUp")
    assert GONE in story.repair.status.message
    assert story.clean()


def test_nor_does_one_stay_open_that_needs_people_before_anything_was_done():
    story = standing("Quarantine?")
    story.fault("test.reboot", "Unknown")
    story.after(minutes(31))
    assert story.needs == "ClearProofMissing"
    take_away(story, "unowned")
    story.ended("Failed", "GaveUp")


def test_a_cordon_that_was_about_to_be_written_is_not():
    story = standing("Quarantine")
    take_away(story, "unowned")
    story.ended("Failed", "GaveUp")
    assert story.state("Quarantine") == "Waiting"


def test_a_cordon_that_may_stand_is_kept_with_its_record():
    story = standing("Quarantine")
    story.report("Claimed")
    take_away(story, "unowned")
    story.at("Quarantine", "Running")


@pytest.mark.parametrize("way", WAYS)
def test_a_repair_that_holds_nothing_is_given_up_at_the_end_of_its_step(way):
    twice = made.fault_type("test.twice", clears_by="condition", remedy=[{"action": "RestartService", "attempts": 2}])
    story = Story("test.twice", types=(twice,), rule=rule(procedure("Repair")))
    story.report("Claimed")
    take_away(story, way)
    story.report("Failed", "it did not start")
    story.ended("Failed", "GaveUp")
    assert story.acts() == ["RestartService"]


@pytest.mark.parametrize("way", WAYS)
def test_a_mark_that_automation_took_is_not_put_back(way):
    story = standing("Drain#")
    take_away(story, way)
    story.facts["annotations"]["sickbay.dev/changed-by"] = '{"user": "kured", "what": "unschedulable"}'
    story.uncordon()
    assert story.repair.status.restored is None
    assert story.phase == "Cancelling"


@pytest.mark.parametrize("same", [True, False], ids=["the-same-pool", "another-pool"])
def test_the_pause_after_a_repair_that_was_given_up_binds_its_own_pool(same):
    story = standing("Quarantine?")
    take_away(story, "unowned")
    story.repair.spec.pool.uid = story.pool.metadata.uid if same else "uid-of-the-pool-before"
    story.past = [story.repair]
    assert (story.open().repair is None) == same


# --- who owns the node


@pytest.mark.parametrize(
    ("pool", "owner", "why"),
    [
        pytest.param(made.pool("a"), made.pool("a"), "", id="its-own"),
        pytest.param(None, None, "is gone", id="deleted"),
        pytest.param(None, made.pool("b"), "is gone", id="deleted-and-another-selects-it"),
        pytest.param(made.pool("a"), None, "left pool a", id="relabelled"),
        pytest.param(made.pool("a"), made.pool("b"), "belongs to pool b now", id="moved"),
        pytest.param(made.pool("a", rule=None), None, "no rule", id="an-envelope-now"),
    ],
)
def test_who_has_a_say_over_the_node(pool, owner, why):
    story = Story("test.reboot")
    story.repair.spec.pool.name = "a"
    said = mandate.unowned(story.repair, pool, owner)
    assert why in said
    assert bool(said) == bool(why)
