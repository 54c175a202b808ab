"""What an ended record remembers of a person's word, and what lifts it."""

from __future__ import annotations

import msgspec
import pytest

from sickbay.clock import rfc3339
from sickbay.decide import memory
from sickbay.decide.faults import active_faults
from sickbay.decide.progress import advance
from sickbay.decide.work import View
from tests.decide.made import at, catalogue, fault_type, node, procedure, rule
from tests.decide.story import Story

FOR = (fault_type("test.timed", clears_by="condition", for_="10m"),)


def cancelled(*faults: str, types=()) -> Story:
    """A repair that a person has ended by an uncordon."""
    story = Story(*faults, types=types)
    story.now = 3600 if types else 0
    story.look()
    story.run("Quarantine")
    story.uncordon()
    story.report("Done")
    story.ended("Cancelled", "CancelledByPerson")
    return story


def marked(story: Story, now: float | None = None, **faults):
    """What is written on the record when the node is looked at, as its conditions are then."""
    if now is not None:
        story.now = now
    for name, status in faults.items():
        story.conditions[name.replace("_", ".")] = (status, story.now)
    found = memory.refreshed(story.repair, story.view())
    if found is not None:
        story.repair = found
    return found


def test_nothing_is_written_while_the_fault_stands():
    assert marked(cancelled("test.service")) is None


def test_what_has_cleared_is_marked_so_once():
    story = cancelled("test.service")
    found = marked(story, 900, test_service="False")
    assert found.spec.faults[0].cleared_at == rfc3339(at(900))
    assert marked(story, 1000) is None
    assert marked(story, 1100, test_service="True") is None, "what comes again is another incident"


def test_what_is_only_no_longer_seen_is_not_marked_as_cleared():
    story = cancelled("test.reboot")
    found = marked(story, 900, test_reboot="False")
    assert (found.spec.faults[0].gone_since, found.spec.faults[0].cleared_at) == (rfc3339(at(900)), None)
    story.facts["boot"] = "boot-2"
    assert marked(story, 1000).spec.faults[0].cleared_at == rfc3339(at(1000))


@pytest.mark.parametrize(
    ("gone_for", "cleared"), [pytest.param(599, False, id="not-long-enough"), pytest.param(600, True, id="for-its-for")]
)
def test_a_fault_has_to_stay_away_for_as_long_as_its_type_says(gone_for, cleared):
    story = cancelled("test.timed", types=FOR)
    start = story.now + 60
    marked(story, start, test_timed="False")
    found = marked(story, start + gone_for)
    assert (found is not None) is cleared


def test_a_detector_that_cannot_see_lifts_nothing():
    assert marked(cancelled("test.service"), 900, test_service="Unknown") is None


def test_each_fault_is_remembered_by_itself():
    story = cancelled("test.service", "test.reboot")
    found = marked(story, 900, test_service="False")
    assert {f.type: f.cleared_at is not None for f in found.spec.faults} == {"test.reboot": False, "test.service": True}


@pytest.mark.parametrize("outcome", ["Repaired", "SelfRecovered", "GaveUp", "NodeGone", "Observed"])
def test_only_a_persons_word_is_remembered(outcome):
    story = cancelled("test.service")
    story.repair.status.outcome = outcome
    assert marked(story, 900, test_service="False") is None
    active = active_faults(node(faults=["test.service"]), catalogue())
    assert memory.kept_back(story.repair, active[0], story.node, story.pool) is None


def test_the_word_is_about_the_boot_in_which_it_was_given():
    """The node had booted since the fault was first seen, and the fault was there all the same."""
    story = Story("test.service").run("Quarantine", "Drain")
    story.facts["boot"] = "boot-2"
    story.look()
    story.uncordon()
    story.report("Done")
    (active,) = story.active
    assert memory.kept_back(story.repair, active, story.node, story.pool) is not None
    story.facts["boot"] = "boot-3"
    assert memory.kept_back(story.repair, active, story.node, story.pool) is None


# --- a record that was deleted


def tombstone(story: Story):
    story.delete()
    story.report("Done")
    made = memory.tombstone(story.repair, "n1-x-2")
    made.metadata = msgspec.structs.replace(made.metadata, uid="uid-2")
    return made


def test_a_record_in_the_place_of_a_deleted_one_ends_at_once_as_cancelled():
    story = Story("test.service").run("Quarantine")
    made = tombstone(story)
    work = advance(made, story.view())
    assert (work.repair.status.phase, work.repair.status.outcome) == ("Cancelled", "CancelledByPerson")
    assert work.node_ops == []
    assert "n1-5716f047-1 (uid-r1) was deleted by a person" in work.repair.status.message
    (active,) = story.active
    assert memory.kept_back(work.repair, active, story.node, story.pool) == at(story.now + 24 * 3600)


@pytest.mark.parametrize("gated", [False, True], ids=["a-reboot-was-under-way", "nothing-was-under-way"])
def test_it_bears_a_reboot_of_ours_that_was_under_way(gated):
    gates = {"Repair": {"by": "People"}} if gated else {}
    story = Story("test.reboot", rule=rule(procedure(**gates))).run("Quarantine", "Drain")
    made = advance(tombstone(story), story.view()).repair
    story.facts["boot"] = "boot-2"
    (active,) = story.active
    kept = memory.kept_back(made, active, story.node, story.pool)
    assert (kept is not None) is not gated


def test_a_tombstone_of_a_node_that_is_gone_is_over_too():
    story = Story("test.service").run("Quarantine")
    work = advance(tombstone(story), View(now=at(0), node=None))
    assert work.repair.ended
