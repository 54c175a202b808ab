"""A pool is looked at again when time alone can change something for it, and at no other moment."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.clock import rfc3339
from sickbay.decide import breaker, storm, windows
from sickbay.decide.tally import Counts
from sickbay.decide.tending import next_look
from tests.decide.made import at, hours, minutes

NIGHTLY = {"cron": "0 2 * * *", "duration": "4h", "zone": "UTC", "kind": "Allow"}
CLOSED = {"state": "Closed"}


def pool(status: dict[str, Any] | None = None, **spec: Any) -> RepairPool:
    return msgspec.convert({"metadata": {"name": "train"}, "spec": spec, "status": status or {}}, RepairPool)


def text(seconds: float) -> str:
    return rfc3339(at(seconds))


def started(seconds: float) -> NodeRepair:
    step = {"state": "Running", "started": text(seconds)}
    return msgspec.convert({"metadata": {"name": "r"}, "status": {"steps": {"Quarantine": step}}}, NodeRepair)


OPEN = {"state": "Open", "openedAt": text(-600), "belowSince": text(-300)}
COOLING = {"cooldown": "15m", "threshold": 3, "maxNodes": 3}


@pytest.mark.parametrize(
    ("status", "spec", "waiting", "expected"),
    [
        ({}, {}, False, None),
        ({}, {}, True, None),
        ({}, {"windows": [NIGHTLY]}, True, hours(18)),
        ({}, {"windows": [NIGHTLY]}, False, None),
        ({"breaker": OPEN}, {"breaker": COOLING}, False, minutes(10)),
        ({"breaker": OPEN}, {"breaker": {**COOLING, "reset": "Manual"}}, True, None),
        ({"breaker": {**OPEN, "belowSince": None}}, {"breaker": COOLING}, True, None),
        ({"storms": [{"cause": "c", "since": text(-90), "nodes": 5}]}, {}, False, None),
        (
            {"storms": [{"cause": "c", "since": text(-90), "nodes": 4, "belowSince": text(-20)}]},
            {"storm": {"nodes": 5, "window": "60s"}},
            False,
            40,
        ),
        ({"slots": [{"repair": "r", "node": "n", "kind": "Repair", "since": text(-2)}]}, {}, False, 10),
        ({"slots": [{"repair": "r", "node": "n", "kind": "Repair", "since": text(-200)}]}, {}, False, 60),
    ],
    ids=[
        "nothing waits",
        "only room can help",
        "the next window",
        "a window that nobody waits for",
        "a breaker cools down",
        "only a person closes it",
        "it is above its threshold",
        "a storm",
        "a storm that calms down",
        "a slot just taken",
        "a slot",
    ],
)
def test_the_next_look(status: dict[str, Any], spec: dict[str, Any], waiting: bool, expected: float | None) -> None:
    due = next_look(pool(status, **spec), Counts(), [], waiting, at(0))
    assert due == (None if expected is None else at(expected))


def test_a_blind_node_is_looked_at_when_it_begins_to_count() -> None:
    counts = Counts(unknown={"n1": at(-60), "n2": at(-400)})
    assert next_look(pool(), counts, [], False, at(0)) == at(240)


def test_what_waits_for_min_interval_is_looked_at_when_it_is_over() -> None:
    repairs = [started(-minutes(50)), started(-minutes(20))]
    assert next_look(pool(minInterval="30m"), Counts(), repairs, True, at(0)) == at(minutes(10))
    assert next_look(pool(minInterval="30m"), Counts(), repairs, False, at(0)) is None


@given(st.integers(0, 14 * 24 * 3600), st.integers(0, 3600))
def test_between_two_looks_time_changes_nothing(begin: int, between: int) -> None:
    spec = {"windows": [NIGHTLY, {**NIGHTLY, "cron": "30 3 * * wed", "duration": "1h", "kind": "Deny"}]}
    status = {"breaker": {**OPEN, "belowSince": text(begin - 100)}, "storms": []}
    one, now = pool(status, breaker=COOLING, **spec), at(begin)
    due = next_look(one, Counts(), [], True, now)
    assert due is not None and due > now
    later = now + min(due - now, at(between) - at(0))
    if later == due:
        return
    assert windows.refusal(one.spec.windows, later) == windows.refusal(one.spec.windows, now)
    assert breaker.judge(one, 8, 1, None, later) == breaker.judge(one, 8, 1, None, now)
    assert storm.judge(one, [], later) == storm.judge(one, [], now)
