"""Ceilings: disruption budgets, the governor, the pace of evictions, the pauses of blocked pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sickbay.api.core import Pod, PodDisruptionBudget
from sickbay.api.repair_step import BlockingPod, Report
from sickbay.execute.blocked import Blocked
from sickbay.execute.budgets import covering, never_allows
from sickbay.execute.governor import Governor, Limits
from sickbay.execute.pace import Pace
from tests.support.virtual import clock


def budget(expected: int = 1, name: str = "b", namespace: str = "train", labels: Any = None, **spec: Any) -> Any:
    spec["selector"] = {"matchLabels": labels if labels is not None else {"app": "web"}}
    status = {"expectedPods": expected}
    body = {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": status}
    return msgspec.convert(body, PodDisruptionBudget)


def pod(name: str = "p", **labels: str) -> Pod:
    meta = {"name": name, "namespace": "train", "uid": f"uid-{name}", "labels": labels or {"app": "web"}}
    return msgspec.convert({"metadata": meta}, Pod)


@pytest.mark.parametrize(
    ("subject", "never"),
    [
        (budget(minAvailable=1, expected=1), True),
        (budget(minAvailable=1, expected=2), False),
        (budget(minAvailable=3, expected=2), True),
        (budget(minAvailable="100%", expected=5), True),
        (budget(minAvailable="99%", expected=5), False),
        (budget(maxUnavailable=0, expected=5), True),
        (budget(maxUnavailable="0%", expected=5), True),
        (budget(maxUnavailable=1, expected=1), False),
        (budget(minAvailable=0, expected=1), False),
        (budget(minAvailable=1, expected=0), False),
        (budget(expected=3), False),
    ],
)  # fmt: skip
@pytest.mark.case("R21")
def test_budgets_that_can_never_allow_a_disruption(subject: PodDisruptionBudget, never: bool) -> None:
    assert never_allows(subject) is never


def test_a_budget_covers_pods_of_its_namespace_and_labels() -> None:
    budgets = [
        budget(name="mine"),
        budget(name="elsewhere", namespace="other"),
        budget(name="others", labels={"app": "db"}),
        budget(name="everything", labels={}),
    ]
    assert [b.metadata.name for b in covering(pod(), budgets)] == ["mine", "everything"]


async def test_the_governor_counts_acts_in_two_windows() -> None:
    time = clock()
    governor = Governor(time, Limits(per_10_minutes=2, per_hour=3))
    for key in ("a", "b"):
        assert governor.take(key) == ""
    assert "2 within the last 10 minutes, 2 allowed" in governor.take("c")
    await time.sleep(600)
    assert governor.refusal("c") == ""
    governor.take("c")
    await time.sleep(600)
    assert "3 within the last hour, 3 allowed" in governor.refusal("d")
    await time.sleep(2400)
    assert governor.refusal("d") == ""


async def test_one_act_counts_once_however_often_it_is_sent() -> None:
    governor = Governor(clock(), Limits(per_10_minutes=1))
    for _ in range(5):
        assert governor.take("a") == ""
    assert governor.refusal("b") != ""


async def test_a_governor_without_limits_stops_nothing() -> None:
    governor = Governor(clock(), Limits(0, 0))
    for n in range(1000):
        governor.take(str(n))
    assert governor.refusal("x") == ""


async def test_evictions_keep_to_a_pace_after_a_burst() -> None:
    time = clock()
    pace = Pace(time, per_minute=60)
    assert sum(pace.take() for _ in range(200)) == 50
    taken = 0
    for _ in range(600):
        await time.sleep(0.1)
        taken += pace.take()
    assert 58 <= taken <= 61


async def test_a_pace_of_zero_is_no_ceiling() -> None:
    pace = Pace(clock(), 0)
    assert all(pace.take() for _ in range(10_000))


@pytest.mark.case("R23")
async def test_a_blocked_pod_is_tried_after_growing_pauses() -> None:
    time = clock()
    blocked = Blocked(time)
    pauses = []
    for _ in range(7):
        blocked.note(pod(), "Busy", "b")
        began = time.monotonic()
        assert not blocked.due(pod())
        while not blocked.due(pod()):
            await time.sleep(1)
        pauses.append(time.monotonic() - began)
    assert pauses == [5, 10, 20, 40, 60, 60, 60]


async def test_what_holds_a_pod_is_told_once_and_again_when_it_changes() -> None:
    blocked = Blocked(clock())
    blocked.note(pod(), "Busy", "b")
    assert [t.message for t in blocked.news([pod()])] == ["train/p is held by PodDisruptionBudget b"]
    blocked.note(pod(), "Busy", "b")
    assert blocked.news([pod()]) == ()
    blocked.note(pod(), "Never", "b")
    assert "allows no disruption as it is written" in blocked.news([pod()])[0].message
    assert blocked.news([pod()]) == ()


async def test_what_was_told_before_a_restart_is_not_told_again() -> None:
    blocked = Blocked(clock())
    report = Report(
        pods=[BlockingPod(pod="train/p", state="Blocked", why="Never", pdb="b", until="2027-03-01T08:00:05Z")]
    )
    blocked.remember([pod()], report)
    assert blocked.due(pod()), "it is tried at once"
    assert blocked.news([pod()]) == ()
    assert blocked.entry(pod()) == report.pods[0]
    blocked.note(pod(), "Never", "b")
    assert blocked.news([pod()]) == ()


async def test_trouble_that_may_pass_is_told_when_it_lasts_and_two_budgets_at_once() -> None:
    blocked = Blocked(clock())
    told = []
    for _ in range(4):
        blocked.note(pod(), "Error", "", "InternalError (500): etcd")
        told.append(len(blocked.news([pod()])))
    assert told == [0, 0, 1, 0]
    blocked.note(pod("q"), "Error", "a,b", "more than one PodDisruptionBudget")
    assert [t.message for t in blocked.news([pod("q")])] == [
        "train/q cannot be evicted (covered by PodDisruptionBudgets a, b): more than one PodDisruptionBudget"
    ]


async def test_a_throttled_pod_is_not_blamed_on_a_budget() -> None:
    time = clock()
    blocked = Blocked(time)
    blocked.note(pod(), "", at_least=30)
    assert blocked.news([pod()]) == ()
    assert blocked.reason(pod()) == ""
    assert blocked.entry(pod()).state == "Evicting"
    assert blocked.next_due([pod()]) == 30


async def test_a_pod_that_went_is_forgotten() -> None:
    blocked = Blocked(clock())
    blocked.note(pod(), "Busy", "b")
    blocked.gone(pod())
    assert blocked.due(pod())
    assert blocked.next_due([pod()]) is None
