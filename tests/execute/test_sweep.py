"""What is left on a node without an owner: taken away when its record is closed, told to people when it is gone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sickbay.api import names
from sickbay.execute.sweep import SETTLED
from sickbay.kube.leadership import NotLeading
from tests.execute.kit import REPAIRS, Bench, Driven

OURS = {"type": "MaintenanceInProgress", "status": "True", "reason": "Sickbay", "message": "m"}


def left_over(phase: str = "Succeeded", **status: Any) -> Bench:
    """A closed record whose marks stand on the node: the late write of a leader that has lost its lease."""
    bench = Bench()
    bench.open("Unquarantine")
    bench.status(conditions=[OURS])
    states = {"Unquarantine": {"state": "Done"}}
    bench.ask("Unquarantine", done=["Quarantine"], states=states, **{"phase": phase, "outcome": "Repaired", **status})
    bench.merge({"metadata": {"finalizers": None}}, REPAIRS, "r1")
    return bench


async def sweeps(shift: Driven, times: int = 3) -> None:
    for _ in range(times):
        await shift.read()
        await shift.shift.sweep()
        await shift.bench.clock.sleep(SETTLED)


def traces(bench: Bench) -> list[str]:
    node = bench.node()
    found = [c["type"] for c in node["status"]["conditions"] if c.get("reason") == "Sickbay"]
    found += ["mark"] if names.QUARANTINE in (node["metadata"].get("annotations") or {}) else []
    return found + (["cordon"] if node["spec"].get("unschedulable") else [])


@pytest.mark.case("P066")
@pytest.mark.case("P126")
async def test_what_a_closed_record_has_left_is_taken_away() -> None:
    bench = left_over()
    shift = bench.shift()
    await sweeps(shift)
    assert traces(bench) == []
    assert [reason for reason, _ in await shift.events()] == ["TracesRemoved"]


async def test_it_takes_two_sights_of_it() -> None:
    bench = left_over()
    shift = bench.shift()
    await sweeps(shift, 1)
    assert traces(bench) == ["MaintenanceInProgress", "mark", "cordon"]


@pytest.mark.parametrize("phase", ["Running", "NeedsHuman", "Parked", "Cancelling"])
async def test_the_marks_of_an_open_repair_stay(phase: str) -> None:
    bench = Bench()
    bench.open("Drain")
    bench.ask("Drain", phase=phase, done=["Quarantine"])
    await sweeps(bench.shift())
    assert traces(bench) == ["mark", "cordon"]


async def test_a_node_that_is_left_quarantined_on_purpose_stays_so() -> None:
    bench = left_over(outcome="LeftQuarantined")
    bench.merge({"metadata": {"finalizers": [names.FINALIZER]}}, REPAIRS, "r1")
    await sweeps(bench.shift())
    assert "cordon" in traces(bench)


async def test_a_cordon_whose_record_is_gone_is_for_people_to_take_away_and_they_are_told_once() -> None:
    bench = left_over()
    bench.store.delete(REPAIRS, "r1")
    shift = bench.shift()
    await sweeps(shift, 5)
    assert traces(bench) == ["MaintenanceInProgress", "mark", "cordon"]
    events = await shift.events()
    assert [reason for reason, _ in events] == ["OwnerMissing"]
    assert "kubectl uncordon n1" in events[0][1]
    assert [event["count"] for event in bench.store.list("events")] == [1]
    bench.merge({"spec": {"unschedulable": None}})
    await sweeps(shift)
    assert traces(bench) == []


async def test_a_record_made_anew_under_the_name_is_not_the_owner() -> None:
    bench = left_over()
    bench.store.delete(REPAIRS, "r1")
    uid = bench.node()["metadata"]["uid"]
    bench.store.create(REPAIRS, {"metadata": {"name": "r1"}, "spec": {"node": {"name": "n2", "uid": uid + "x"}}})
    shift = bench.shift()
    await sweeps(shift)
    assert "cordon" in traces(bench)
    assert [reason for reason, _ in await shift.events()] == ["OwnerMissing"]


async def test_a_repair_that_has_taken_the_node_meanwhile_keeps_it() -> None:
    """The caches lag: on the server the record is open."""
    bench = left_over()
    shift = bench.shift()
    await shift.read()
    bench.store.delete(REPAIRS, "r1")
    bench.open("Drain")
    for _ in range(3):
        await shift.shift.sweep()
        await bench.clock.sleep(SETTLED)
    assert "cordon" in traces(bench)


async def test_every_act_keeps_traces_as_they_are() -> None:
    bench = left_over()
    bench.hold("EveryAct")
    shift = bench.shift()
    await sweeps(shift)
    assert "cordon" in traces(bench)
    bench.release()
    await sweeps(shift)
    assert traces(bench) == []


async def test_who_does_not_lead_sweeps_nothing() -> None:
    bench = left_over()
    shift = bench.shift()
    await sweeps(shift, 1)
    shift.term.end()
    with pytest.raises(NotLeading):
        await sweeps(shift)
    assert "cordon" in traces(bench)


async def test_conditions_of_others_and_cordons_of_people_are_no_traces() -> None:
    bench = Bench(conditions=[{**OURS, "reason": "Other"}], unschedulable=True)
    bench.open("Quarantine")
    bench.store.patch(REPAIRS, "r1", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    bench.store.delete(REPAIRS, "r1")
    before = bench.node()
    shift = bench.shift()
    bench.wire.asked.clear()
    await sweeps(shift)
    assert bench.node() == before
    assert bench.wire.asked == []


# --- questions that nobody asks any more

DRAIN = "intervention.sickbay.dev/drain-node"


def asks(bench: Bench, uid: str = "", **labels: str) -> None:
    uid = uid or bench.store.get(REPAIRS, "r1")["metadata"]["uid"]
    inquiry = json.dumps({"repair": "r1", "uid": uid, "step": "Drain", "attempt": 1})
    meta = {"labels": {DRAIN: "inquiring", **labels}, "annotations": {names.INQUIRY: inquiry}}
    bench.merge({"metadata": meta})


def question(bench: Bench) -> tuple[bool, bool]:
    meta = bench.node()["metadata"]
    return DRAIN in (meta.get("labels") or {}), names.INQUIRY in (meta.get("annotations") or {})


@pytest.mark.case("P066")
@pytest.mark.parametrize("record", ["gone", "another of that name", "over"])
async def test_a_question_without_an_open_record_goes(record: str) -> None:
    bench = Bench()
    bench.open("Quarantine")
    asks(bench, uid="u-old" if record == "another of that name" else "")
    bench.merge(
        {"status": {"phase": "Cancelled", "outcome": "Denied", "current": {"step": ""}}}, REPAIRS, "r1", "status"
    )
    bench.merge({"metadata": {"finalizers": None}}, REPAIRS, "r1")
    if record == "gone":
        bench.store.delete(REPAIRS, "r1")
    await sweeps(bench.shift())
    assert question(bench) == (False, False)


async def test_the_question_of_an_open_repair_stays() -> None:
    bench = Bench()
    bench.open("Quarantine")
    asks(bench)
    await sweeps(bench.shift())
    assert question(bench) == (True, True)


@pytest.mark.parametrize("step", ["Drain", "Repair", "Unquarantine"])
async def test_of_a_record_that_is_gone_nothing_is_remembered(step: str) -> None:
    bench = Bench()
    bench.open(step)
    driven = bench.shift()
    await driven.look()
    shift = driven.shift

    def remembered() -> int:
        books = (shift._claims._mine, shift._claims._written, shift._stops, shift._release._tried)
        return sum(len(book) for book in (*books, shift._repair._sending, shift._drain._blocked))

    await sweeps(driven, 1)
    assert remembered() > 0
    bench.merge({"metadata": {"finalizers": None}}, REPAIRS, "r1")
    bench.store.delete(REPAIRS, "r1")
    await sweeps(driven, 1)
    assert remembered() == 0
