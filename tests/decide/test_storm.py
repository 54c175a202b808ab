"""Storm sense: one shared cause behind many first faults."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from sickbay.api import names
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import Breaker, RepairPool, StormStatus
from sickbay.clock import rfc3339
from sickbay.decide import storm
from sickbay.decide.storm import Onset
from tests.decide.made import at


def pool(storms: list[StormStatus] | None = None, annotation: str = "", nodes: int = 5, **spec: Any) -> RepairPool:
    meta: dict[str, Any] = {"name": "train"}
    if annotation:
        meta["annotations"] = {names.END_STORM: annotation}
    made = msgspec.convert({"metadata": meta, "spec": {"storm": {"nodes": nodes, "window": "60s"}, **spec}}, RepairPool)
    made.status.storms = storms or []
    return made


def onsets(count: int, fault: str = "gpu.xid.79", step: float = 1, **more: Any) -> list[Onset]:
    labels = more.pop("labels", {})
    return [Onset(f"n{i}", fault, at(i * step), labels, **more) for i in range(count)]


def causes(storms: list[StormStatus]) -> list[str]:
    return [s.cause for s in storms]


def test_five_nodes_with_one_fault_within_a_minute_are_a_storm() -> None:
    assert causes(storm.judge(pool(), onsets(5), at(10))) == ["fault gpu.xid.79"]
    assert storm.judge(pool(), onsets(4), at(10)) == []


def test_the_same_faults_spread_over_time_are_none() -> None:
    assert storm.judge(pool(), onsets(8, step=30), at(240)) == []


def test_old_faults_do_not_become_a_storm_when_a_controller_starts() -> None:
    assert storm.judge(pool(), onsets(8), at(3600)) == []


def test_a_failure_domain_is_a_cause_of_its_own() -> None:
    mixed = [
        Onset(f"n{i}", f"fault-{i}", at(i), {"topology.kubernetes.io/zone": "a" if i < 5 else "b"}) for i in range(7)
    ]
    assert causes(storm.judge(pool(), mixed, at(10))) == ["domain topology.kubernetes.io/zone=a"]


def test_a_detector_version_is_a_cause_of_its_own() -> None:
    mixed = [Onset(f"n{i}", f"fault-{i}", at(i), {}, detector="agent/1.2") for i in range(5)]
    assert causes(storm.judge(pool(), mixed, at(10))) == ["detector agent/1.2"]


def test_a_rack_that_is_repaired_as_one_counts_once() -> None:
    assert storm.judge(pool(), onsets(18, group="rack-1"), at(20)) == []


def test_zero_nodes_turns_it_off() -> None:
    assert storm.judge(pool(nodes=0), onsets(100), at(100)) == []


def standing(since: datetime, below: datetime | None = None) -> StormStatus:
    return StormStatus(
        cause="fault gpu.xid.79", since=rfc3339(since), nodes=5, below_since=rfc3339(below) if below else None
    )


def test_it_ends_when_fewer_than_that_many_have_been_faulty_for_a_window() -> None:
    few = onsets(4)
    (first,) = storm.judge(pool([standing(at(0))]), few, at(100))
    assert first.below_since == rfc3339(at(100))
    assert len(storm.judge(pool([first]), few, at(159))) == 1
    assert storm.judge(pool([first]), few, at(160)) == []


def test_a_relapse_within_the_window_keeps_it() -> None:
    (again,) = storm.judge(pool([standing(at(0), below=at(100))]), onsets(5), at(130))
    assert again.below_since is None


@pytest.mark.parametrize(
    ("annotation", "ends"),
    [
        pytest.param(rfc3339(at(0)), True, id="names this storm"),
        pytest.param(rfc3339(at(-900)), False, id="names an older one"),
    ],
)
def test_a_person_ends_it_by_naming_when_it_was_seen(annotation: str, ends: bool) -> None:
    left = storm.judge(pool([standing(at(0))], annotation=annotation), onsets(6), at(300))
    assert (left == []) is ends


def test_nothing_starts_in_a_storm() -> None:
    assert "gpu.xid.79" in storm.refusal([standing(at(0))])
    assert storm.refusal([]) == ""


@pytest.mark.parametrize(
    ("age", "origin", "limits", "waits"),
    [
        pytest.param(0, "Fault", {"nodes": 5}, True, id="just opened"),
        pytest.param(2, "Fault", {"nodes": 5}, False, id="alone so far"),
        pytest.param(-600, "Fault", {"nodes": 5}, False, id="a clock that is behind holds nothing up"),
        pytest.param(0, "Manual", {"nodes": 5}, False, id="a person asks for it"),
        pytest.param(0, "Fault", {"nodes": 0, "threshold": "50%"}, True, id="no storm sense, but a breaker"),
        pytest.param(0, "Fault", {"nodes": 0, "threshold": "100%"}, False, id="nothing that could stop it"),
    ],
)
def test_a_new_repair_waits_a_moment_to_see_whether_it_is_alone(age, origin, limits, waits) -> None:
    made = msgspec.convert({"metadata": {"creationTimestamp": rfc3339(at(0))}, "spec": {"origin": origin}}, NodeRepair)
    its = pool(nodes=limits["nodes"])
    its.spec.breaker = Breaker(threshold=limits.get("threshold", "100%"), max_nodes=1000)
    assert storm.settled(its, 20, made, at(age)) == (at(2) if waits else None)
