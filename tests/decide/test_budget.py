"""Repeat offenders: what the next repair of a node is when it has used up its budget."""

from __future__ import annotations

import msgspec
import pytest

from sickbay.clock import rfc3339
from tests.decide.made import at, hours, pool, procedure, record, rule
from tests.decide.story import Story

DAY = hours(24)


def repaired(day: float, n: int = 1, acted: bool = True, outcome: str = "Repaired"):
    """A repair of the node that ended so many days before the start."""
    attempts = [{"n": 1, "action": "RebootNode", "state": "Done"}] if acted else []
    end = rfc3339(at(-day * DAY))
    return record(
        metadata={"name": f"n1-{n}", "uid": f"uid-{n}"},
        spec={"node": {"name": "n1", "uid": "uid-n1"}, "faults": [{"type": "test.other"}]},
        status={
            "phase": "Succeeded" if outcome == "Repaired" else "Failed",
            "outcome": outcome,
            "endedAt": end,
            "steps": {"Repair": {"attempts": attempts}},
        },
    )


def offender(then: str = "RepairHardware", steps=None, days=(1, 2, 3), fault="test.reboot", **budget) -> Story:
    limits = pool(budgets={"perNode": {"repairs": 3, "window": "7d", **budget}, "then": then})
    past = tuple(repaired(day, n) for n, day in enumerate(days, 1))
    return Story(fault, rule=rule(steps), pool=limits, past=past)


@pytest.mark.case("P062")
def test_a_repeat_offender_goes_to_hardware_repair():
    story = offender().run("Quarantine", "Drain")
    assert story.acts() == ["RepairHardware"]
    assert story.phase == "Parked"
    assert "repeat offender: 3 repairs within 7d" in story.repair.spec.plan.reason


@pytest.mark.case("P062")
@pytest.mark.case("R11")
@pytest.mark.parametrize("then", ["NeedsHuman", "a-later-word"])
def test_or_to_people_with_the_node_out_of_service(then):
    story = offender(then).run("Quarantine", "Drain")
    assert (story.phase, story.needs, story.acts()) == ("NeedsHuman", "BudgetSpent", [])
    assert story.node.unschedulable
    story.after(DAY * 3)
    assert (story.phase, story.needs) == ("NeedsHuman", "BudgetSpent")


@pytest.mark.case("P075")
@pytest.mark.case("P080")
@pytest.mark.parametrize(
    ("before", "now", "spent"),
    [
        pytest.param("board-1", "board-1", True, id="the-same-machine"),
        pytest.param("board-1", "board-2", False, id="another-machine"),
        pytest.param("", "", False, id="machines-that-nobody-can-tell-apart"),
    ],
)
def test_a_machine_that_returns_under_another_name_keeps_its_budget(before, now, spent):
    past = [repaired(day, n) for n, day in enumerate((1, 2, 3), 1)]
    for record_ in past:
        record_.spec.node = msgspec.structs.replace(record_.spec.node, name="old", uid="uid-old", serial=before)
    limits = pool(budgets={"perNode": {"repairs": 3, "window": "7d"}, "then": "RepairHardware"})
    story = Story("test.reboot", pool=limits, past=tuple(past), serial=now)
    assert story.repair.spec.node.serial == now
    assert ("repeat offender" in story.repair.spec.plan.reason) is spent


@pytest.mark.parametrize(
    ("days", "spent"),
    [
        pytest.param((1, 2), False, id="two-of-three"),
        pytest.param((1, 2, 3), True, id="three-of-three"),
        pytest.param((1, 2, 7), True, id="at-the-edge-of-the-window"),
        pytest.param((1, 2, 7.01), False, id="one-is-out-of-the-window"),
        pytest.param((1, 9, 17, 26), False, id="spread-over-a-month"),
    ],
)
def test_the_budget_counts_what_ended_within_the_window(days, spent):
    story = offender(days=days).run("Quarantine", "Drain")
    assert story.acts() == (["RepairHardware"] if spent else ["RebootNode"])


@pytest.mark.case("P062")
def test_a_longer_window_finds_the_slow_offender():
    story = offender(days=(1, 9, 17, 26), window="30d").run("Quarantine", "Drain")
    assert story.acts() == ["RepairHardware"]


def test_repairs_that_never_acted_cost_nothing():
    past = tuple(repaired(1, n, acted=False, outcome="GaveUp") for n in range(1, 6))
    story = Story("test.reboot", past=past).run("Quarantine", "Drain")
    assert story.acts() == ["RebootNode"]


@pytest.mark.parametrize(
    ("then", "steps"),
    [
        pytest.param("NeedsHuman", ["Quarantine"], id="people"),
        pytest.param("RepairHardware", ["Quarantine", "Drain"], id="hardware"),
    ],
)
def test_a_rule_of_only_repair_takes_the_offender_out_first_behind_a_gate(then, steps):
    story = offender(then, procedure("Repair"), fault="test.service")
    assert (story.phase, story.step) == ("WaitingApproval", "Quarantine")
    story.approve("Quarantine")
    story.run(*steps)
    if then == "NeedsHuman":
        assert story.needs == "BudgetSpent"
    else:
        assert story.phase == "Parked"


def test_a_stronger_fault_is_no_way_around_the_budget():
    story = offender("NeedsHuman", fault="test.service").run("Quarantine", "Drain")
    assert story.needs == "BudgetSpent"
    story.now += 60
    story.fault("test.reboot")
    assert (story.phase, story.acts()) == ("NeedsHuman", [])
    early = offender("NeedsHuman", fault="test.service").run("Quarantine")
    early.fault("test.reboot")
    early.run("Drain")
    assert (early.needs, early.acts()) == ("BudgetSpent", [])
