"""In which order a pool says no, and to what."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import BreakerStatus, RepairPool, StormStatus
from sickbay.clock import rfc3339
from sickbay.decide import limits, slots
from sickbay.decide.limits import Moment
from tests.decide.made import at, node

OPEN = BreakerStatus(state="Open", opened_at=rfc3339(at(0)), reason="7 nodes are faulty")
STORM = [StormStatus(cause="fault x", since=rfc3339(at(0)), nodes=9)]


def repair(name: str = "r1", phase: str = "WaitingSlot", **steps: dict[str, Any]) -> NodeRepair:
    return msgspec.convert({"metadata": {"name": name}, "status": {"phase": phase, "steps": steps}}, NodeRepair)


def moment(
    status: BreakerStatus | None = None,
    storms: list[StormStatus] | None = None,
    repairs: list[NodeRepair] | None = None,
    size: int = 100,
    **spec: Any,
) -> Moment:
    pool = msgspec.convert({"metadata": {"name": "train"}, "spec": {"maxUnavailable": "50%", **spec}}, RepairPool)
    view = slots.PoolView(pool, size)
    return Moment(view, status or BreakerStatus(), storms or [], repairs or [], at(600))


def waits_for(found: limits.Refusal | None) -> str:
    return "" if found is None else found.waits_for


@pytest.mark.parametrize("kind", ["Unavailable", "Repair"])
@pytest.mark.parametrize(
    ("given", "word"),
    [
        pytest.param({"storms": STORM, "status": OPEN}, "Storm", id="a storm is named first"),
        pytest.param({"status": OPEN}, "Breaker", id="an open breaker"),
        pytest.param({"windows": [{"cron": "0 0 1 1 *", "duration": "1h"}]}, "Window", id="outside its windows"),
        pytest.param({"maxUnavailable": 0, "maxParallelRepairs": 0}, "Slot", id="full"),
        pytest.param({}, "", id="nothing in the way"),
    ],
)
def test_the_first_reason_is_the_one_to_read(given: dict[str, Any], word: str, kind: str) -> None:
    assert waits_for(limits.refusal(moment(**given), repair(), [node()], kind)) == word


@pytest.mark.case("N25")
def test_validation_is_touched_by_neither_breaker_nor_storm() -> None:
    assert limits.refusal(moment(status=OPEN, storms=STORM), repair(), [node()], "Validate") is None


def test_a_frozen_pool_starts_no_new_repair_but_goes_on_with_others() -> None:
    stuck = repair("r0", "NeedsHuman")
    frozen = moment(repairs=[stuck], freezeOnFailure=True)
    found = limits.refusal(frozen, repair(), [node()], "Unavailable")
    assert found is not None
    assert "r0 needs people" in found.why
    begun = repair("r1", "WaitingSlot", Quarantine={"state": "Done", "started": rfc3339(at(0))})
    assert limits.refusal(frozen, begun, [node()], "Repair") is None


def test_the_interval_is_kept_between_first_starts_only() -> None:
    last = repair("r0", "Running", Quarantine={"state": "Done", "started": rfc3339(at(500))})
    spaced = moment(repairs=[last], minInterval="5m")
    found = limits.refusal(spaced, repair(), [node()], "Unavailable")
    assert found is not None
    assert "minInterval" in found.why
    begun = repair("r1", "WaitingSlot", Quarantine={"state": "Done", "started": rfc3339(at(0))})
    assert limits.refusal(spaced, begun, [node()], "Repair") is None
    earlier = repair("r0", "Running", Quarantine={"state": "Done", "started": rfc3339(at(299))})
    assert limits.refusal(moment(repairs=[earlier], minInterval="5m"), repair(), [node()], "Unavailable") is None


@pytest.mark.parametrize(
    ("size", "spec", "fits"),
    [
        pytest.param(100, {"maxParallelRepairs": 5, "breaker": {"threshold": "10%"}}, True, id="5 of at most 10"),
        pytest.param(30, {"maxParallelRepairs": 5, "breaker": {"threshold": "10%"}}, False, id="5, but 3 open it"),
        pytest.param(100, {"maxParallelRepairs": "50%", "breaker": {"maxNodes": 10}}, True, id="percent and percent"),
        pytest.param(100, {"maxParallelRepairs": "50%", "breaker": {"threshold": 5}}, False, id="percent and count"),
        pytest.param(1, {"maxParallelRepairs": 5, "breaker": {"threshold": "20%"}}, True, id="a pool of one"),
        pytest.param(0, {"maxParallelRepairs": 5, "breaker": {"threshold": 1}}, True, id="an empty pool"),
    ],
)
def test_the_interlock_judges_mixed_units(size: int, spec: dict[str, Any], fits: bool) -> None:
    m = moment(size=size, **spec)
    assert limits.fits(m.view) is fits
    assert (waits_for(limits.refusal(m, repair(), [node()], "Unavailable")) == "Slot") is (not fits and size > 0)
