"""Ended records are kept as long as anything is computed from them, and no longer."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sickbay.clock import rfc3339
from sickbay.decide.retention import kept_for, too_old
from tests.decide.made import START, pool, record

DAY = timedelta(days=1)


def ended(days_ago: float, name: str = "r", phase: str = "Succeeded", **meta):
    status = {"phase": phase, "endedAt": rfc3339(START - days_ago * DAY), "outcome": "Repaired"}
    return record(metadata={"name": name, **meta}, status=status)


@pytest.mark.parametrize(
    ("repair", "gone"),
    [
        pytest.param(ended(31), True, id="older than 30 days"),
        pytest.param(ended(29), False, id="younger"),
        pytest.param(ended(99, phase="Running"), False, id="open"),
        pytest.param(ended(99, phase="NeedsHuman"), False, id="with people"),
        pytest.param(ended(99, finalizers=["sickbay.dev/finalizer"]), False, id="its marks stand on the node"),
        pytest.param(ended(99, phase="WouldAct"), True, id="only observed, to its end"),
    ],
)
def test_what_has_ended_long_ago_goes(repair, gone):
    assert (too_old([repair], [pool()], START) == [repair]) is gone


@pytest.mark.parametrize(
    ("spec", "days"),
    [
        pytest.param({}, 30, id="30 days at least"),
        pytest.param({"budgets": {"perNode": {"window": "90d"}}}, 90, id="a longer budget window"),
        pytest.param({"cancelHold": "45d"}, 45, id="a longer hold"),
        pytest.param({"budgets": {"perNode": {"cooldown": "60d"}}}, 60, id="a longer pause"),
    ],
)
def test_the_longest_window_of_any_pool_counts(spec, days):
    assert kept_for([pool(), pool(name="b", **spec)]) == days * DAY


def test_the_oldest_go_first():
    found = too_old([ended(40, "b"), ended(50, "a"), ended(45, "c")], [], START)
    assert [r.metadata.name for r in found] == ["a", "c", "b"]
