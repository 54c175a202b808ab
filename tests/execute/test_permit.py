"""Nothing is done without a permit, and a permit is what the server says now."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sickbay.api import names
from sickbay.apiserver.store import MERGE
from sickbay.kube import errors
from sickbay.providers.base import Transient
from tests.execute.kit import POOLS, REPAIRS, Bench, Driven

LEASES = "leases.coordination.k8s.io"


def leave(bench: Bench) -> None:
    bench.merge({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}})


def opt_out(bench: Bench) -> None:
    bench.merge({"metadata": {"labels": {names.EXCLUDE_FROM_REMEDIATION: "true"}}})


def share_leases(bench: Bench) -> None:
    if bench.store.find("namespaces", "medik8s-leases") is None:
        bench.store.create("namespaces", {"metadata": {"name": "medik8s-leases"}})


def other_owner(bench: Bench) -> None:
    spec = {"holderIdentity": "node-maintenance-operator", "leaseDurationSeconds": 3600}
    share_leases(bench)
    if bench.store.find(LEASES, "node-n1", "medik8s-leases") is not None:
        bench.store.patch(LEASES, "node-n1", {"spec": spec}, MERGE, "medik8s-leases")
    else:
        bench.store.create(LEASES, {"metadata": {"name": "node-n1"}, "spec": spec}, "medik8s-leases")


def uncordon(bench: Bench) -> None:
    bench.merge({"spec": {"unschedulable": None}})


def take_mark_off(bench: Bench) -> None:
    bench.merge({"metadata": {"annotations": {names.QUARANTINE: None}}})


def cancel(bench: Bench) -> None:
    bench.ask("Unquarantine", attempt=2, phase="Cancelling", done=["Quarantine"])


def delete_record(bench: Bench) -> None:
    bench.store.delete(REPAIRS, "r1")


def new_attempt(bench: Bench) -> None:
    bench.ask("Repair", attempt=2, action="PowerCycle", done=["Quarantine", "Drain"])


def replan(bench: Bench) -> None:
    bench.merge({"spec": {"plan": {"generation": 2}}}, REPAIRS, "r1")


def replace_node(bench: Bench) -> None:
    bench.store.delete("nodes", "n1")
    bench.add_node()


def delete_node(bench: Bench) -> None:
    bench.store.delete("nodes", "n1")


def acted(bench: Bench) -> bool:
    return bool(bench.backend.acts)


HANDS = [uncordon, take_mark_off, cancel, delete_record, new_attempt, replan, replace_node, delete_node]
STOPS = [leave, opt_out, other_owner]


@pytest.mark.parametrize("happens", HANDS, ids=lambda f: f.__name__)
@pytest.mark.case("R03")
@pytest.mark.case("N01")
async def test_what_has_happened_since_the_caches_were_read_stops_the_act(happens: Callable[[Bench], None]) -> None:
    bench = Bench()
    bench.open()
    shift = bench.shift()
    await shift.read()
    happens(bench)
    assert await shift.look(read=False) is None
    assert not acted(bench)


@pytest.mark.parametrize("happens", [*HANDS, *STOPS], ids=lambda f: f.__name__)
async def test_what_happens_between_claim_and_act_stops_the_act(happens: Callable[[Bench], None]) -> None:
    """The claim stands; the call that was refused for now is not repeated."""
    bench = Bench()
    share_leases(bench)
    bench.open()
    bench.backend.submits = [Transient("busy")]
    shift = bench.shift()
    await shift.look()
    assert len(bench.backend.acts) == 1
    await shift.read()
    happens(bench)
    await bench.clock.sleep(61)
    await shift.look(read=False)
    assert len(bench.backend.acts) == 1


@pytest.mark.parametrize("happens", STOPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair"])
@pytest.mark.case("R43")
async def test_a_node_in_other_hands_is_not_touched_and_the_record_says_whose(
    step: str, happens: Callable[[Bench], None]
) -> None:
    bench = Bench()
    bench.open(step)
    happens(bench)
    before = bench.node()
    shift = bench.shift()
    again = await shift.look()
    assert again is not None
    assert bench.node() == before
    assert not acted(bench)
    assert bench.report["waitsFor"] == "OtherOwner"
    assert "state" not in bench.report


async def test_a_foreign_lease_names_its_holder_and_the_event_is_told_once() -> None:
    bench = Bench()
    other_owner(bench)
    bench.open("Quarantine")
    shift = bench.shift()
    for _ in range(5):
        again = await shift.look()
        await bench.clock.sleep(again or 0)
    assert "node-maintenance-operator" in bench.report["message"]
    events = await shift.events()
    assert [reason for reason, _ in events] == ["QuarantineStopped"]


async def test_the_lease_is_taken_before_the_first_write_and_not_where_nobody_uses_it() -> None:
    for used in (True, False):
        bench = Bench()
        if used:
            share_leases(bench)
        bench.open("Quarantine")
        await bench.shift().look()
        assert bench.node()["spec"]["unschedulable"] is True
        holders = [lease["spec"]["holderIdentity"] for lease in bench.store.list(LEASES)]
        assert holders == (["sickbay"] if used else [])


# --- Holds


@pytest.mark.parametrize(
    ("step", "level", "claimed", "stopped"),
    [
        ("Quarantine", "NewRepairs", False, True),
        ("Quarantine", "NextStep", False, True),
        ("Quarantine", "EveryAct", False, True),
        ("Quarantine", "NewRepairs", True, False),
        ("Quarantine", "NextStep", True, False),
        ("Quarantine", "EveryAct", True, True),
        ("Drain", "NewRepairs", False, False),
        ("Drain", "NextStep", False, True),
        ("Drain", "EveryAct", True, True),
        ("Repair", "NewRepairs", False, False),
        ("Repair", "NextStep", False, True),
        ("Repair", "NextStep", True, False),
        ("Repair", "EveryAct", True, True),
        ("Repair", "AnUnknownLevel", True, True),
        ("Validate", "NextStep", False, False),
        ("Validate", "EveryAct", False, True),
        ("Unquarantine", "NewRepairs", False, False),
        ("Unquarantine", "NextStep", False, False),
        ("Unquarantine", "EveryAct", False, True),
        ("Unquarantine", "EveryAct", True, True),
    ],
)
async def test_levels_of_holds_against_steps(step: str, level: str, claimed: bool, stopped: bool) -> None:
    bench = Bench()
    bench.open(step, plan=["Quarantine", "Drain", "Repair", "Validate", "Unquarantine"])
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}
    bench.store.create("pods", pod, "train")
    if claimed:
        report = {"state": "Claimed", "attempt": 1, "planGeneration": 1, "term": 1}
        bench.merge({"status": {"steps": {step: {"report": report}}}}, REPAIRS, "r1", "status")
    unknown = level == "AnUnknownLevel"
    bench.hold("EveryAct" if unknown else level)
    if unknown:
        stored = bench.store.get("holds.sickbay.dev", "stop")
        bench.store.put(bench.store.type("holds.sickbay.dev"), {**stored, "spec": {**stored["spec"], "level": level}})
    before = (bench.node(), bench.store.get("pods", "p", "train")["metadata"].get("deletionTimestamp"))
    bench.backend.keeps_keys = False
    shift = bench.shift()
    shift.shift._claims._mine.update({(bench.key, 1)} if claimed else ())
    await shift.look()
    after = (bench.node(), bench.store.get("pods", "p", "train")["metadata"].get("deletionTimestamp"))
    did = acted(bench) or bench.report.get("state") in ("InProgress", "Done") or _acted_on(before, after)
    assert did is not stopped
    if stopped:
        assert (bench.report["waitsFor"], "Hold stop: a test") == ("Hold", bench.report["message"])


def _acted_on(before: tuple[Any, Any], after: tuple[Any, Any]) -> bool:
    return before[1] != after[1] or before[0]["spec"] != after[0]["spec"]


def observe_only(bench: Bench) -> None:
    bench.merge({"spec": {"mode": "Observe"}}, POOLS, "train")


def delete_pool(bench: Bench) -> None:
    bench.store.delete(POOLS, "train")


def take_rule(bench: Bench) -> None:
    bench.merge({"spec": {"rule": None}}, POOLS, "train")


def move_node(bench: Bench) -> None:
    bench.merge({"metadata": {"labels": {"example.com/other": "yes"}}})


WITHDRAWN = {observe_only: "only observes", delete_pool: "is gone", take_rule: "has no rule", move_node: "has left"}


@pytest.mark.parametrize("withdraw", WITHDRAWN, ids=lambda f: f.__name__)
@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair"])
async def test_what_its_pool_does_not_want_any_more_does_not_begin(
    step: str, withdraw: Callable[[Bench], None]
) -> None:
    """decide takes such a step back; while it does not run, the order to begin stands on the record."""
    bench = Bench()
    bench.open(step)
    withdraw(bench)
    before = bench.node()
    await bench.shift().look()
    assert WITHDRAWN[withdraw] in bench.report["message"]
    assert (bench.report.get("state", ""), bench.report["waitsFor"]) == ("", "People")
    assert not acted(bench)
    assert bench.node() == before


@pytest.mark.parametrize("withdraw", WITHDRAWN, ids=lambda f: f.__name__)
async def test_it_begins_when_the_pool_wants_it_again(withdraw: Callable[[Bench], None]) -> None:
    bench = Bench()
    bench.open("Repair")
    withdraw(bench)
    shift = bench.shift()
    await shift.look()
    bench.merge({"metadata": {"labels": {"example.com/other": None}}})
    if bench.store.find(POOLS, "train") is None:
        bench.add_pool()
    bench.merge({"spec": {"mode": "Act", "rule": "all"}}, POOLS, "train")
    await shift.look()
    assert acted(bench)


@pytest.mark.parametrize("withdraw", WITHDRAWN, ids=lambda f: f.__name__)
async def test_what_has_begun_goes_to_its_end_and_the_way_back_stays_open(withdraw: Callable[[Bench], None]) -> None:
    bench = Bench()
    bench.open("Repair")
    shift = bench.shift()
    await shift.look()
    withdraw(bench)
    bench.boots()
    await bench.clock.sleep(30)
    await shift.look()
    assert bench.report["state"] == "Done"
    bench.ask("Unquarantine", done=["Quarantine", "Drain", "Repair", "Validate"])
    await shift.look()
    assert not bench.node()["spec"].get("unschedulable")


async def test_a_pool_that_acts_on_some_faults_only_leaves_the_judgement_to_decide() -> None:
    bench = Bench()
    bench.open("Repair")
    bench.merge(
        {"spec": {"mode": "Observe", "overrides": [{"faults": {"classes": ["Node"]}, "mode": "Act"}]}}, POOLS, "train"
    )
    await bench.shift().look()
    assert acted(bench)


async def test_a_pool_that_cannot_be_read_means_that_nothing_begins() -> None:
    bench = Bench()
    bench.open("Repair")
    bench.wire.refuse = lambda request: 503 if "repairpools/train" in request.url.path else 0
    shift = bench.shift()
    with pytest.raises(errors.ServerError):
        await shift.look()
    assert not acted(bench)
    bench.wire.refuse = lambda request: 0
    await shift.look()
    assert acted(bench)


@pytest.mark.parametrize("trouble", ["refused", "malformed"])
async def test_holds_that_cannot_be_read_mean_that_nothing_new_is_done(trouble: str) -> None:
    bench = Bench()
    bench.open("Quarantine")
    if trouble == "malformed":
        bench.hold("NewRepairs")
        stored = bench.store.get("holds.sickbay.dev", "stop")
        odd = {**stored, "spec": {**stored["spec"], "scope": "everything"}}
        bench.store.put(bench.store.type("holds.sickbay.dev"), odd)
    else:
        bench.wire.refuse = lambda request: 403 if "holds" in request.url.path else 0
    shift = bench.shift()
    shift.read = nothing_new(shift) if trouble == "malformed" else shift.read  # type: ignore[method-assign]
    again = await shift.look()
    assert again is not None
    assert bench.node()["spec"].get("unschedulable") is None
    assert bench.report["waitsFor"] == "Hold"


def nothing_new(shift: Driven) -> Callable[[], Any]:
    async def read() -> None:
        await shift.tools.nodes.relist()
        await shift.tools.repairs.relist()

    return read


async def test_the_end_of_a_hold_lets_the_step_go_on() -> None:
    bench = Bench()
    bench.open("Quarantine")
    bench.hold("NewRepairs")
    shift = bench.shift()
    await shift.look()
    assert bench.node()["spec"].get("unschedulable") is None
    bench.release()
    await shift.look()
    assert bench.node()["spec"]["unschedulable"] is True


async def test_a_hold_that_a_cache_knows_costs_no_requests() -> None:
    bench = Bench()
    bench.open("Drain")
    bench.hold("EveryAct")
    shift = bench.shift()
    await shift.look()
    bench.wire.asked.clear()
    for _ in range(10):
        await shift.look()
        await bench.clock.sleep(60)
    assert bench.wire.asked == []


async def test_new_repairs_is_about_the_first_step_of_any_plan() -> None:
    """A rule of only Repair starts with it."""
    bench = Bench()
    bench.open("Repair", action="RestartService", plan=["Repair"])
    bench.hold("NewRepairs")
    await bench.shift().look()
    assert bench.agent.acts == []
    assert bench.report["waitsFor"] == "Hold"


# --- the governor


async def test_the_governor_stops_acts_beyond_its_limits_and_says_so() -> None:
    bench = Bench()
    bench.open()
    for n in range(10):
        bench.governor.take(f"other/Repair/{n}")
    shift = bench.shift()
    again = await shift.look()
    assert not acted(bench)
    assert "governor" in bench.report["message"]
    assert [reason for reason, _ in await shift.events()] == ["RepairStopped"]
    await bench.clock.sleep(600)
    await shift.look()
    assert again is not None
    assert acted(bench)


@pytest.mark.case("R38")
@pytest.mark.parametrize("read", [True, False], ids=["seen", "not-seen-yet"])
async def test_a_node_made_anew_under_the_name_is_not_cordoned_for_the_old_one(read: bool) -> None:
    bench = Bench()
    bench.open("Quarantine")
    shift = bench.shift()
    await shift.read()
    replace_node(bench)
    assert await shift.look(read=read) is None
    assert "unschedulable" not in bench.node()["spec"]
    assert bench.report == {}


@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair", "Unquarantine"])
async def test_a_hold_that_no_cache_knows_yet_stops_the_act(step: str) -> None:
    bench = Bench()
    bench.open(step)
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}
    bench.store.create("pods", pod, "train")
    shift = bench.shift()
    await shift.read()
    bench.hold("EveryAct")
    before = bench.node()
    await shift.look(read=False)
    assert bench.node() == before
    assert not acted(bench)
    assert "deletionTimestamp" not in bench.store.get("pods", "p", "train")["metadata"]
    assert bench.report["waitsFor"] == "Hold"


async def test_acts_of_others_that_come_between_the_judgement_and_the_call_count() -> None:
    """Several looks go on side by side; the limit holds at the moment of the call."""
    bench = Bench()
    bench.open()
    for n in range(9):
        bench.governor.take(f"other/Repair/{n}")

    def tenth(request: Any) -> None:
        if request.method == "PATCH" and request.url.path.endswith("/n1/status"):
            bench.governor.take("tenth/Repair/1")

    bench.wire.before = tenth
    await bench.shift().look()
    assert not acted(bench)
    assert "governor" in bench.report["message"]


@pytest.mark.parametrize(
    ("said", "claimed", "acts"),
    [
        pytest.param("denied", False, False, id="denied-before-it-began"),
        pytest.param("denied", True, True, id="denied-after-it-began"),
        pytest.param("approved", False, True, id="approved"),
        pytest.param("resolved", False, False, id="cancelled-by-a-word"),
        pytest.param("resolved", True, False, id="cancelled-by-a-word-after-the-claim"),
        pytest.param("followed", False, True, id="a-word-that-was-followed-before"),
    ],
)
async def test_a_persons_no_counts_though_decide_has_not_followed_it_yet(said: str, claimed: bool, acts: bool) -> None:
    bench = Bench()
    repair = bench.open()
    word = {"outcome": "CancelledByPerson", "at": "2027-03-01T08:00:00Z", "by": "ops-2"}
    if said in ("denied", "approved"):
        asked = {"repair": "r1", "uid": repair.metadata.uid, "step": "Repair", "attempt": 1}
        marks = {"annotations": {names.INQUIRY: json.dumps(asked)}}
        bench.merge({"metadata": {**marks, "labels": {"intervention.sickbay.dev/repair-node": said}}})
    else:
        bench.merge({"metadata": {"annotations": {names.RESOLVE: json.dumps(word)}}}, REPAIRS, "r1")
    if said == "followed":
        bench.merge({"status": {"resolved": word["at"]}}, REPAIRS, "r1", "status")
    if claimed:
        report = {"state": "Claimed", "attempt": 1, "planGeneration": 1, "term": 1}
        bench.merge({"status": {"steps": {"Repair": {"report": report}}}}, REPAIRS, "r1", "status")
    shift = bench.shift()
    shift.shift._claims._mine.update({(bench.key, 1)} if claimed else ())
    await shift.look()
    assert bench.backend.sent == ([bench.key] if acts else [])


@pytest.mark.parametrize("what", ["hold", "uncordon", "word"])
async def test_what_comes_between_the_claim_and_the_act_stops_the_act(what: str) -> None:
    """A machine is never rebooted on a permit of a moment ago."""
    bench = Bench()
    bench.open()
    word = json.dumps({"outcome": "CancelledByPerson", "at": "2027-03-01T08:00:00Z"})

    def between(write: Any) -> None:
        claimed = write.resource == REPAIRS and bench.report.get("state") == "Claimed"
        if not claimed or hands:
            return
        hands.append(what)
        if what == "hold":
            bench.hold("EveryAct")
        elif what == "uncordon":
            bench.merge({"spec": {"unschedulable": None}})
        else:
            bench.merge({"metadata": {"annotations": {names.RESOLVE: word}}}, REPAIRS, "r1")

    hands: list[str] = []
    bench.store.after_write(between)
    await bench.shift().look()
    assert hands == [what]
    assert bench.backend.sent == []
