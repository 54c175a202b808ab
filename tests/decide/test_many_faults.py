"""A node with more faults than a record holds."""

from __future__ import annotations

import pytest

from sickbay.decide.faultstate import MAX_FAULTS
from tests.decide.made import fault_type
from tests.decide.story import Story

NAMES = [f"site.f{n:02d}" for n in range(MAX_FAULTS + 2)]
LATE = NAMES[MAX_FAULTS]


def full() -> Story:
    """As many faults as there is room for, and the node has been rebooted for them."""
    types = tuple(fault_type(name, clearsBy="condition") for name in NAMES)
    story = Story(*NAMES[:MAX_FAULTS], types=types).run("Quarantine", "Drain")
    story.at("Repair", "Running")
    return story


def recorded(story: Story) -> list[str]:
    return [fault.type for fault in story.repair.spec.faults]


def test_a_node_does_not_return_with_a_fault_that_came_when_the_record_was_full():
    story = full()
    story.fault(LATE)
    assert LATE not in recorded(story)
    story.run("Repair")
    story.fault(LATE)
    story.settle()
    assert (LATE in recorded(story), len(recorded(story))) == (True, MAX_FAULTS)
    assert (story.repair.status.current.step, story.repair.status.current.attempt) == ("Repair", 2)
    assert story.facts["unschedulable"]


def test_of_a_full_record_only_what_is_over_makes_room():
    story = full()
    lead, over = NAMES[0], NAMES[5]
    story.fault(lead, "False")
    story.fault(LATE)
    assert recorded(story) == NAMES[:MAX_FAULTS]
    story.fault(over, "False")
    assert recorded(story) == [name for name in NAMES[:MAX_FAULTS] if name != over] + [LATE]
    story.fault(NAMES[-1])
    assert NAMES[-1] not in recorded(story)
    story.fault(over)
    assert over not in recorded(story)


@pytest.mark.parametrize("here", [2, MAX_FAULTS - 1])
def test_what_is_over_stays_on_record_as_long_as_there_is_room(here):
    types = tuple(fault_type(name, clearsBy="condition") for name in NAMES)
    story = Story(*NAMES[:here], types=types).run("Quarantine", "Drain")
    story.fault(NAMES[1], "False")
    story.fault(LATE)
    assert recorded(story) == [*NAMES[:here], LATE]
