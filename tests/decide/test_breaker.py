"""The breaker of a pool: when it opens, half opens and closes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api import names
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import BreakerStatus, RepairPool
from sickbay.clock import rfc3339
from sickbay.decide import breaker
from tests.decide.made import START, at, minutes


def pool(status: BreakerStatus | None = None, annotation: str = "", **spec: Any) -> RepairPool:
    settings = {"threshold": "20%", "maxNodes": 10, "cooldown": "15m", "reset": "Auto"} | spec
    meta: dict[str, Any] = {"name": "train"}
    if annotation:
        meta["annotations"] = {names.RESET_BREAKER: annotation}
    made = msgspec.convert({"metadata": meta, "spec": {"breaker": settings}}, RepairPool)
    made.status.breaker = status or BreakerStatus()
    return made


def trial(phase: str, outcome: str = "") -> NodeRepair:
    return msgspec.convert({"metadata": {"name": "t-1"}, "status": {"phase": phase, "outcome": outcome}}, NodeRepair)


def opened(seconds: float = 0, **more: Any) -> BreakerStatus:
    return BreakerStatus(state="Open", opened_at=rfc3339(at(seconds)), reason="many", **more)


@pytest.mark.parametrize(
    ("size", "threshold", "most", "expected"),
    [
        pytest.param(30, "20%", 10, 6, id="a percentage rounds down"),
        pytest.param(29, "20%", 10, 5, id="never up"),
        pytest.param(5, "20%", 10, 2, id="at least two in a small pool"),
        pytest.param(1000, "20%", 10, 10, id="the tighter of the two wins"),
        pytest.param(20, "40%", 100000, 8, id="40 percent of 20"),
        pytest.param(20, 3, 10, 3, id="a count stands as it is"),
        pytest.param(20, 0, 10, 0, id="zero bears nothing"),
    ],
)
def test_the_limit_is_the_tighter_of_threshold_and_max_nodes(
    size: int, threshold: int | str, most: int, expected: int
) -> None:
    assert breaker.limit(pool(threshold=threshold, maxNodes=most), size) == expected


def test_it_opens_only_above_the_limit() -> None:
    assert breaker.judge(pool(), 30, 6, None, START).state == "Closed"
    now = breaker.judge(pool(), 30, 7, None, START)
    assert (now.state, now.opened_at) == ("Open", rfc3339(START))
    assert "7 nodes are faulty, more than 6" in now.reason


def test_it_half_opens_after_a_whole_cooldown_below_the_limit() -> None:
    status = breaker.judge(pool(opened()), 30, 6, None, at(60))
    assert (status.state, status.below_since) == ("Open", rfc3339(at(60)))
    assert breaker.judge(pool(status), 30, 6, None, at(60 + minutes(15) - 1)).state == "Open"
    assert breaker.judge(pool(status), 30, 6, None, at(60 + minutes(15))).state == "HalfOpen"


@pytest.mark.case("R10")
def test_a_relapse_during_the_cooldown_begins_it_anew() -> None:
    status = breaker.judge(pool(opened()), 30, 6, None, at(60))
    status = breaker.judge(pool(status), 30, 7, None, at(minutes(10)))
    assert status.below_since is None
    status = breaker.judge(pool(status), 30, 6, None, at(minutes(12)))
    assert breaker.judge(pool(status), 30, 6, None, at(minutes(20))).state == "Open"
    assert breaker.judge(pool(status), 30, 6, None, at(minutes(27))).state == "HalfOpen"


def test_it_closes_when_no_node_has_been_faulty_for_a_cooldown() -> None:
    status = breaker.judge(pool(opened()), 30, 0, None, at(0))
    assert breaker.judge(pool(status), 30, 0, None, at(minutes(15))).state == "Closed"


def test_with_manual_reset_time_alone_never_closes_it() -> None:
    status = opened(below_since=rfc3339(START))
    assert breaker.judge(pool(status, reset="Manual"), 30, 0, None, at(minutes(600))).state == "Open"


def test_a_person_resets_it_by_naming_the_moment_it_opened() -> None:
    status = opened(30)
    reset = pool(status, annotation=rfc3339(at(30)), reset="Manual")
    assert breaker.judge(reset, 30, 2, None, at(40)).state == "Closed"


def test_reapplying_an_old_reset_does_nothing() -> None:
    old = pool(opened(500), annotation=rfc3339(at(30)), reset="Manual")
    assert breaker.judge(old, 30, 2, None, at(600)).state == "Open"


def test_a_reset_while_too_many_are_faulty_does_not_close_it() -> None:
    reset = pool(opened(30), annotation=rfc3339(at(30)))
    assert breaker.judge(reset, 30, 20, None, at(40)).state == "Open"


@pytest.mark.parametrize(
    ("phase", "outcome", "state", "kept"),
    [
        pytest.param("Succeeded", "Repaired", "Closed", "", id="succeeded closes"),
        pytest.param("Failed", "GaveUp", "Open", "", id="failed opens"),
        pytest.param("NeedsHuman", "", "Open", "", id="with people opens"),
        pytest.param("Parked", "", "Open", "", id="parked opens"),
        pytest.param("Cancelled", "CancelledByPerson", "HalfOpen", "", id="cancelled: the next is the trial"),
        pytest.param("Running", "", "HalfOpen", "t-1", id="running goes on"),
    ],
)
def test_the_trial_decides(phase: str, outcome: str, state: str, kept: str) -> None:
    half = BreakerStatus(state="HalfOpen", opened_at=rfc3339(START), trial="t-1")
    status = breaker.judge(pool(half), 30, 2, trial(phase, outcome), at(100))
    assert (status.state, status.trial) == (state, kept)


def test_half_open_lets_exactly_one_repair_start() -> None:
    half = BreakerStatus(state="HalfOpen", opened_at=rfc3339(START))
    assert breaker.refusal(half, "a") == ""
    half = breaker.with_trial(half, "a")
    assert breaker.refusal(half, "a") == ""
    assert "a is the trial" in breaker.refusal(half, "b")
    assert breaker.with_trial(half, "b").trial == "a"


def test_half_open_goes_back_above_the_limit() -> None:
    half = BreakerStatus(state="HalfOpen", opened_at=rfc3339(START), trial="t-1")
    status = breaker.judge(pool(half), 30, 7, trial("Running"), at(100))
    assert (status.state, status.opened_at) == ("Open", rfc3339(at(100)))


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 600)), max_size=30))
def test_it_is_never_open_for_less_than_a_cooldown(moves: list[tuple[int, int]]) -> None:
    """Whatever the counts do: between opening and letting anything start lies one whole cooldown at or below."""
    status, seconds, above_at = BreakerStatus(), 0, -1
    for faulty, step in moves:
        seconds += step
        status = breaker.judge(pool(status), 30, faulty, None, at(seconds))
        if faulty > 6:
            above_at = seconds
            assert status.state == "Open"
        elif above_at >= 0 and timedelta(seconds=seconds - above_at) < timedelta(minutes=15):
            assert status.state == "Open"
