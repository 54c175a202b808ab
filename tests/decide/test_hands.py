"""A person's hand, a node that goes, a record that is deleted: at every step."""

from __future__ import annotations

import json

import msgspec
import pytest

from sickbay.api.node_repair import NodeRepair
from sickbay.clock import rfc3339
from tests.decide.made import PREFIX, at, hours, minutes, procedure, rule
from tests.decide.story import Story

ORDER = ["Quarantine", "Drain", "Repair", "Validate", "Unquarantine"]
GATES = {step: {"by": "People"} for step in ORDER if step != "Validate"}


def standing(where: str) -> Story:
    """A repair that stands at one of its places: `Drain` runs, `Drain?` waits for approval, `Drain!` for people."""
    step, gated = where.rstrip("?!#"), where.endswith(("?", "!"))
    story = Story("test.reboot", rule=rule(procedure(**({step: GATES[step]} if gated else {}))))
    if where.endswith("#"):
        story.run(*ORDER[: ORDER.index(step) - 1])
        story.grants = False
        story.run(ORDER[ORDER.index(step) - 1])
    else:
        story.run(*ORDER[: ORDER.index(step)])
    if where.endswith("!"):
        story.after(hours(25))
    story.now += 10
    story.look()
    return story


HELD = ["Drain", "Drain?", "Drain!", "Drain#", "Repair", "Repair?", "Repair!", "Validate", "Validate#", "Unquarantine?"]
EVERY = ["Quarantine", "Quarantine?", "Quarantine!", *HELD, "Unquarantine"]


@pytest.mark.case("P082")
@pytest.mark.case("P083")
@pytest.mark.parametrize("hand", ["uncordon", "unmark"])
@pytest.mark.parametrize("where", HELD)
def test_a_persons_hand_cancels_everywhere_at_once(where, hand):
    story = standing(where)
    acts = story.acts()
    getattr(story, hand)()
    assert story.phase == "Cancelling"
    story.report("Done")
    story.ended("Cancelled", "CancelledByPerson")
    assert not [k for k in story.facts["labels"] if k.startswith(PREFIX)]
    story.after(hours(48))
    assert story.acts() == acts, "nothing more is done"


@pytest.mark.parametrize("where", HELD)
def test_a_mark_of_another_incident_means_that_the_node_is_not_ours_any_more(where):
    story = standing(where)
    story.facts["annotations"]["sickbay.dev/quarantine"] = json.dumps({"repair": "x", "uid": "other"})
    story.look()
    assert (story.phase, story.outcome) == ("Cancelling", "CancelledByPerson")


def earlier(fault: str, outcome: str, hours_ago: float) -> NodeRepair:
    """An ended incident of the same node."""
    story = Story(fault)
    story.repair.status.phase, story.repair.status.outcome = "Succeeded", outcome
    story.repair.status.ended_at = rfc3339(at(-hours(hours_ago)))
    story.repair.metadata = msgspec.structs.replace(story.repair.metadata, uid=f"uid-{hours_ago}")
    return story.repair


@pytest.mark.case("P074")
@pytest.mark.parametrize("where", ["Drain?", "Repair?", "Validate"])
def test_whoever_takes_a_flaky_node_back_is_named_and_told_of_its_past(where):
    story = standing(where)
    story.past = [earlier("test.reset", "Repaired", 72), earlier("test.reboot", "GaveUp", 5)]
    story.facts["annotations"]["sickbay.dev/changed-by"] = '{"user": "ops-2", "what": "unschedulable"}'
    story.uncordon()
    told = [note.message for note in story.notes if note.reason == "ReturnedByHand"]
    assert len(told) == 1
    for part in (
        "by ops-2",
        "without a passed validation",
        "2 earlier incidents: test.reboot GaveUp 5h ago, test.reset Repaired 3d ago",
    ):
        assert part in told[0]
    assert ("not cleared: test.reboot" in told[0]) == (where != "Validate")
    assert told[0] in story.repair.status.message


@pytest.mark.case("P074")
def test_a_person_who_says_repaired_does_not_return_a_node_that_is_not_well():
    story = standing("Repair!")
    word = {"outcome": "Repaired", "reason": "looks fine", "at": rfc3339(story.moment), "by": "ops-2"}
    story.repair.metadata.annotations["sickbay.dev/resolve"] = json.dumps(word)
    story.look()
    story.at("Validate", "Running")
    story.report("Failed", "a GPU is missing")
    assert story.node.unschedulable
    assert story.state("Unquarantine") != "Running"


@pytest.mark.case("P074")
def test_a_return_without_a_validation_is_signed():
    story = standing("Repair!")
    word = {"outcome": "CancelledByPerson", "reason": "needed tonight", "at": rfc3339(story.moment), "by": "ops-2"}
    story.repair.metadata.annotations["sickbay.dev/resolve"] = json.dumps(word)
    story.look()
    for part in ("ops-2", "needed tonight", "without a passed validation"):
        assert part in story.repair.status.message
    assert "ReturnedByHand" in story.reasons()
    story.report("Done")
    story.ended("Cancelled", "CancelledByPerson")


def test_an_uncordon_between_the_cordon_and_our_look_starts_no_drain():
    story = Story("test.reboot")
    story._carry_out()
    story.facts["unschedulable"] = False
    carried, story._carry_out = story._carry_out, dict
    story.report("Done")
    assert (story.phase, story.outcome) == ("Cancelling", "CancelledByPerson")
    assert story.state("Drain") != "Running"
    assert carried


def test_the_way_back_is_not_taken_for_a_persons_uncordon():
    """execute uncordons before it reports: in between the node is as a person would leave it."""
    story = Story("test.reboot").run(*ORDER[:4])
    story._carry_out()
    story.look()
    story.at("Unquarantine", "Running")
    story.report("Done")
    story.ended("Succeeded", "Repaired")


@pytest.mark.case("R38")
@pytest.mark.parametrize("how", ["deleted", "created-again"])
@pytest.mark.parametrize("where", EVERY)
def test_a_node_that_is_gone_ends_the_incident(where, how):
    story = standing(where)
    if how == "deleted":
        story.node_there = False
    else:
        story.facts |= {"uid": "uid-2", "boot": "boot-9", "annotations": {}, "labels": {}, "unschedulable": False}
    acts = story.acts()
    story.look()
    story.ended("Cancelled", "NodeGone")
    assert story.acts() == acts
    assert "Running" not in [s.state for s in story.repair.status.steps.values()]


@pytest.mark.case("R38")
def test_an_approval_of_the_old_incident_does_not_count_for_a_node_of_the_same_name():
    story = standing("Drain?")
    story.facts["uid"] = "uid-2"
    story.approve("Drain")
    story.ended("Cancelled", "NodeGone")
    assert story.label("Drain") == "approved", "we write nothing on a node that is not ours"


@pytest.mark.parametrize(
    ("done", "outcome"),
    [
        pytest.param("running", ("Succeeded", "Replaced"), id="while-it-is-replaced"),
        pytest.param("reported", ("Succeeded", "Replaced"), id="after-it-was-replaced"),
        pytest.param("waiting", ("Cancelled", "NodeGone"), id="before-anybody-replaced-it"),
    ],
)
def test_a_node_that_we_replace_is_replaced_when_it_is_gone(done, outcome):
    story = Story("test.replace").run("Quarantine", "Drain")
    if done != "waiting":
        story.approve("Repair")
        story.at("Repair", "Running")
    if done == "reported":
        story.report("Done")
    story.node_there = False
    story.look()
    story.ended(*outcome)


@pytest.mark.parametrize("where", EVERY)
def test_a_deleted_record_is_cancelled_and_rolled_back(where):
    story = standing(where)
    story.delete()
    if where not in ("Quarantine?", "Quarantine!"):
        assert story.phase == "Cancelling"
        story.report("Done")
    story.ended("Cancelled", "CancelledByPerson")
    assert story.clean()


def test_a_roll_back_that_fails_is_tried_again_without_end():
    story = standing("Repair")
    story.uncordon()
    for _ in range(20):
        story.report("Failed", "refused")
        assert story.phase == "Cancelling"
        story.after(minutes(10))
        assert story.phase == "Cancelling"
    story.report("Done")
    story.ended("Cancelled", "CancelledByPerson")


def test_a_quarantine_under_way_is_waited_for_neither_when_it_is_cancelled():
    story = standing("Quarantine")
    story.delete()
    story.at("Unquarantine", "Running")
    assert story.repair.status.current.args == {}, "a cordon that we have not seen yet is ours all the same"
    story.report("Done")
    assert story.state("Quarantine") == "Cancelled"


# --- left in quarantine


def left() -> Story:
    story = Story("test.reboot", rule=rule(procedure("Quarantine", "Drain"))).run("Quarantine", "Drain")
    story.ended("Succeeded", "LeftQuarantined")
    assert story.node.unschedulable
    return story


def test_what_is_left_in_quarantine_waits_for_a_person():
    story = left()
    story.after(hours(24 * 30))
    story.ended("Succeeded", "LeftQuarantined")
    assert story.state("Unquarantine") == ""


@pytest.mark.parametrize("hand", ["uncordon", "unmark"])
def test_a_persons_uncordon_removes_the_rest(hand):
    story = left()
    getattr(story, hand)()
    story.at("Unquarantine", "Running")
    story.report("Failed", "refused")
    story.at("Unquarantine", "Running")
    story.report("Done")
    story.ended("Succeeded", "LeftQuarantined")
    assert story.state("Unquarantine") == "Done"


def test_a_node_left_in_quarantine_that_is_deleted_leaves_nothing_to_do():
    story = left()
    story.node_there = False
    story.look()
    assert story.state("Unquarantine") == "Done"
