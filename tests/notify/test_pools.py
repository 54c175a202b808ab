"""A pool whose repairs are stopped as a whole calls people, once and with reminders."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from sickbay.api.repair_pool import RepairPool
from sickbay.clock import rfc3339
from sickbay.notify.pools import of_pool

START = datetime(2027, 3, 1, 8, 0, tzinfo=UTC)
HOUR = 3600.0
OPEN = {"state": "Open", "openedAt": rfc3339(START), "reason": "12 nodes are faulty, at most 10"}
STORM = {"cause": "gpu.xid.79", "since": rfc3339(START), "nodes": 7}


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def pool(**status: Any) -> RepairPool:
    return msgspec.convert({"metadata": {"name": "train", "uid": "p1"}, "status": status}, RepairPool)


@pytest.mark.parametrize(
    ("status", "title", "said", "command"),
    [
        pytest.param(
            {"breaker": OPEN},
            "pool train: its breaker is open",
            "12 nodes are faulty, at most 10",
            "kubectl annotate repairpool train sickbay.dev/reset-breaker=2027-03-01T08:00:00Z --overwrite",
            id="an open breaker",
        ),
        pytest.param(
            {"storms": [STORM]},
            "pool train: many nodes fail at once",
            "7 nodes: gpu.xid.79",
            "kubectl annotate repairpool train sickbay.dev/end-storm=2027-03-01T08:00:00Z --overwrite",
            id="a storm",
        ),
    ],
)
def test_people_are_called_with_the_reason_and_the_way_out(
    status: dict[str, Any], title: str, said: str, command: str
) -> None:
    (message,) = of_pool(pool(**status), at(1)).messages
    assert (message.title, message.command, message.warning) == (title, command, True)
    assert said in message.text


@pytest.mark.parametrize("state", ["Closed", "HalfOpen"])
def test_a_breaker_that_lets_repairs_through_calls_nobody(state: str) -> None:
    assert of_pool(pool(breaker={**OPEN, "state": state}), at(1)).messages == []


@pytest.mark.parametrize("status", [{"breaker": OPEN}, {"storms": [STORM]}], ids=["breaker", "storm"])
def test_they_are_reminded_until_it_is_over(status: dict[str, Any]) -> None:
    first = of_pool(pool(**status), at(0))
    assert [m.key.rpartition("/")[2] for m in first.messages] == ["0"]
    assert first.next == at(4 * HOUR)
    later = of_pool(pool(**status), at(12 * HOUR))
    assert [m.key.rpartition("/")[2] for m in later.messages] == ["0", "2"]
    assert later.next == at(36 * HOUR)
    assert of_pool(pool(), at(12 * HOUR)).next is None


def test_another_opening_and_another_storm_are_told_under_other_keys() -> None:
    again = {**OPEN, "openedAt": rfc3339(at(HOUR))}
    both = [STORM, {**STORM, "cause": "rack=train-rack-1"}]
    told = [
        message.key
        for each in (pool(breaker=OPEN), pool(breaker=again), pool(storms=both))
        for message in of_pool(each, at(HOUR)).messages
    ]
    assert len(set(told)) == len(told) == 4
    assert all(len(key) <= 256 for key in told)
