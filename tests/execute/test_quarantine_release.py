"""Quarantine and Unquarantine: one conditional write each, and everything is taken back whatever fails."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from sickbay.api import names
from sickbay.kube import errors
from tests.execute.kit import NODES, REPAIRS, Bench

LEASES = "leases.coordination.k8s.io"
THEIRS = {"type": "DrainInProgress", "status": "False", "reason": "Other", "message": "theirs"}


def facts(bench: Bench) -> dict[str, Any]:
    node = bench.node()
    conditions = {c["type"]: (c["status"], c.get("reason"), c.get("message")) for c in node["status"]["conditions"]}
    meta, spec = node["metadata"], {key: value for key, value in node["spec"].items() if value}
    return {"spec": spec, "conditions": conditions, **{k: meta.get(k) or {} for k in ("annotations", "labels")}}


def shared() -> Bench:
    bench = Bench(conditions=[THEIRS])
    bench.store.create("namespaces", {"metadata": {"name": "medik8s-leases"}})
    return bench


async def cancelled(bench: Bench) -> None:
    bench.ask("Unquarantine", attempt=9, done=["Quarantine"], phase="Cancelling")


async def test_cordon_mark_and_taint_come_in_one_write() -> None:
    bench = Bench()
    bench.open("Quarantine", Quarantine={"taint": "GPU"})
    writes: list[Any] = []
    bench.store.after_write(lambda write: writes.append(write) if write.resource == NODES else None)
    await bench.shift().look()
    assert [write.verb for write in writes] == ["patch"]
    node = bench.node()
    assert node["spec"]["unschedulable"] is True
    assert node["spec"]["taints"] == [{"key": names.QUARANTINE, "value": "GPU", "effect": "NoSchedule"}]
    assert bench.report["state"] == "Done"
    assert bench.report["proof"]["nvidia.com/gpu"] == "8"
    assert bench.repair().status.prior is not None


@pytest.mark.case("R40")
async def test_a_cordon_that_meets_another_write_is_tried_again_on_what_stands_there_then() -> None:
    bench = Bench()
    bench.open("Quarantine")
    foreign = {"key": "example.com/x", "value": "1", "effect": "NoSchedule"}
    once = [True]

    def between(request: Any) -> None:
        if request.method == "PATCH" and request.url.path.endswith("/nodes/n1") and once.pop():
            once.append(False)
            bench.merge({"spec": {"taints": [foreign]}})

    bench.wire.before = between
    shift = bench.shift()
    with pytest.raises(errors.Conflict):
        await shift.look()
    assert "unschedulable" not in bench.node()["spec"]
    await bench.clock.sleep(2)
    await shift.look()
    assert bench.node()["spec"]["unschedulable"] is True
    assert bench.node()["spec"]["taints"] == [foreign]


async def test_a_cordon_written_before_a_crash_is_recognised_and_not_written_again() -> None:
    bench = Bench(annotations={names.SCALE_DOWN_DISABLED: "false"})
    bench.open("Quarantine")
    bench.wire.refuse = lambda request: 500 if "noderepairs" in request.url.path and bench.node()["spec"] else 0
    with pytest.raises(errors.ServerError):
        await bench.shift().look()
    assert bench.node()["spec"]["unschedulable"] is True
    bench.wire.refuse = lambda request: 0
    marked = bench.node()
    await bench.shift().look()
    assert bench.report["state"] == "Done"
    assert bench.node() == marked
    prior = bench.repair().status.prior
    assert prior is not None
    assert prior.annotations == {names.SCALE_DOWN_DISABLED: "false"}


async def test_a_person_who_uncordons_after_the_crash_is_not_overruled() -> None:
    bench = Bench()
    bench.open("Quarantine")
    bench.mark()
    bench.merge({"spec": {"unschedulable": None}})
    await bench.shift().look()
    assert bench.report["state"] == "Done"
    assert "unschedulable" not in bench.node()["spec"]


async def full_circle(bench: Bench) -> dict[str, Any]:
    before = facts(bench)
    bench.open("Quarantine", Quarantine={"taint": "GPU"})
    shift = bench.shift()
    await shift.look()
    for step, action in (("Drain", ""), ("Repair", "RebootNode")):
        done = ["Quarantine", "Drain"][: 1 if step == "Drain" else 2]
        bench.ask(step, action=action, done=done)
        await shift.look()
    return before


@pytest.mark.case("R05")
async def test_a_node_is_as_it_was_conditions_of_others_included() -> None:
    bench = shared()
    before = await full_circle(bench)
    standing = facts(bench)["conditions"]
    assert standing["MaintenanceInProgress"][:2] == ("True", "Sickbay")
    assert standing["DrainInProgress"][:2] == ("False", "Sickbay")
    assert standing["Drained"][:2] == ("True", "Sickbay")
    assert len(bench.store.list(LEASES)) == 1
    bench.ask("Unquarantine", done=["Quarantine", "Drain", "Repair", "Validate"])
    await bench.shift().look()
    assert bench.report["state"] == "Done"
    assert facts(bench) == before
    assert bench.store.list(LEASES) == []


async def test_a_lifecycle_condition_that_is_true_for_another_is_left_alone() -> None:
    bench = Bench(conditions=[{**THEIRS, "status": "True"}])
    await full_circle(bench)
    assert facts(bench)["conditions"]["DrainInProgress"] == ("True", "Other", "theirs")
    bench.ask("Unquarantine", done=["Quarantine"])
    await bench.shift().look()
    assert facts(bench)["conditions"]["DrainInProgress"] == ("True", "Other", "theirs")


async def test_a_lifecycle_condition_that_another_set_since_is_theirs() -> None:
    bench = Bench()
    bench.open("Quarantine")
    shift = bench.shift()
    await shift.look()
    bench.status(conditions=[THEIRS])
    bench.ask("Drain", done=["Quarantine"])
    await shift.look()
    assert facts(bench)["conditions"]["DrainInProgress"] == ("False", "Other", "theirs")


@pytest.mark.parametrize(
    ("path", "verb"),
    [("/nodes/n1", "PATCH"), ("/nodes/n1/status", "PATCH"), ("/leases/node-n1", "DELETE")],
    ids=["cordon", "conditions", "lease"],
)
@pytest.mark.case("R28")
async def test_when_one_part_of_the_return_fails_the_others_are_done_and_it_is_tried_again(
    path: str, verb: str
) -> None:
    bench = shared()
    before = await full_circle(bench)
    await cancelled(bench)
    bench.wire.refuse = lambda request: 500 if request.url.path.endswith(path) and request.method == verb else 0
    shift = bench.shift()
    with pytest.raises(errors.ServerError):
        await shift.look()
    assert bench.report["state"] == "Claimed"
    assert ("unschedulable" in bench.node()["spec"]) is (path == "/nodes/n1")
    assert ("Drained" in facts(bench)["conditions"]) is path.endswith("/status")
    assert len(bench.store.list(LEASES)) == (1 if "lease" in path else 0)
    bench.wire.refuse = lambda request: 0
    await shift.look()
    assert bench.report["state"] == "Done"
    assert facts(bench) == before
    assert bench.store.list(LEASES) == []


@pytest.mark.case("R28")
async def test_the_cordon_goes_first() -> None:
    bench = shared()
    await full_circle(bench)
    await cancelled(bench)
    bench.wire.asked.clear()
    await bench.shift().look()
    writes = [each for each in bench.wire.asked if each.split()[0] in ("PATCH", "DELETE") and "noderep" not in each]
    assert writes == ["PATCH nodes", "PATCH nodes/status", "DELETE leases"]


async def test_an_act_that_nobody_has_begun_is_withdrawn_before_the_node_returns() -> None:
    """Otherwise an agent that comes back would reboot a node that is in service again."""
    bench = Bench()
    attempts = [
        {"n": 1, "action": "ResetGPU", "state": "Done"},
        {"n": 2, "action": "ResetGPU", "state": "Cancelled"},
    ]
    bench.open("Unquarantine", phase="Cancelling", states={"Repair": {"attempts": attempts}})
    at_withdrawal: list[bool] = []
    withdraw = bench.agent.withdraw

    async def seen(act: Any) -> None:
        at_withdrawal.append("unschedulable" in bench.node()["spec"])
        await withdraw(act)

    bench.agent.withdraw = seen  # type: ignore[method-assign]
    await bench.shift().look()
    assert bench.agent.withdrawn == [f"{bench.repair().metadata.uid}/Repair/2"]
    assert at_withdrawal == [True]
    assert bench.report["state"] == "Done"


async def test_a_return_after_a_repair_withdraws_nothing() -> None:
    bench = Bench()
    attempts = [{"n": 1, "action": "ResetGPU", "state": "Failed"}]
    bench.open("Unquarantine", states={"Repair": {"attempts": attempts}})
    await bench.shift().look()
    assert bench.agent.withdrawn == []


async def test_a_repair_that_never_marked_the_node_changes_nothing_on_it() -> None:
    """Cancelled while Quarantine was stopped. What looks like ours is the user's own."""
    bench = Bench(annotations={names.SCALE_DOWN_DISABLED: "true"}, unschedulable=True)
    bench.open("Quarantine")
    bench.ask("Unquarantine", attempt=2, phase="Cancelling", states={"Quarantine": {"state": "Running"}})
    before = bench.node()
    await bench.shift().look()
    assert bench.report["state"] == "Done"
    assert bench.node() == before


async def test_releases_flow_though_the_node_is_leaving_and_its_lease_is_anothers() -> None:
    bench = shared()
    await full_circle(bench)
    lease = {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 3600}}
    bench.store.patch(LEASES, "node-n1", lease, "application/merge-patch+json", "medik8s-leases")
    bench.merge({"metadata": {"labels": {names.EXCLUDE_FROM_REMEDIATION: "true"}}})
    bench.ask("Unquarantine", done=["Quarantine"])
    await bench.shift().look()
    assert "unschedulable" not in bench.node()["spec"]
    assert [o["spec"]["holderIdentity"] for o in bench.store.list(LEASES)] == ["other"]


async def test_an_old_leader_that_wakes_up_in_the_middle_of_a_return_writes_nothing_more() -> None:
    bench = shared()
    await full_circle(bench)
    await cancelled(bench)
    shift = bench.shift()

    def ends(request: Any) -> None:
        if request.method == "PATCH" and request.url.path.endswith("/nodes/n1"):
            shift.term.end()

    bench.wire.before = ends
    with pytest.raises(Exception, match="is over"):
        await shift.look()
    assert "Drained" in facts(bench)["conditions"]
    assert len(bench.store.list(LEASES)) == 1


async def test_a_lease_that_was_given_back_is_taken_anew_by_the_next_repair_at_once() -> None:
    """What was sure a moment ago is not, once the Lease is given back."""
    bench = shared()
    bench.open("Quarantine")
    shift = bench.shift()
    await shift.look()
    bench.ask("Unquarantine", done=["Quarantine"])
    await shift.look()
    assert bench.store.list(LEASES) == []
    bench.ask("Quarantine", attempt=2)
    await shift.look()
    assert [lease["spec"]["holderIdentity"] for lease in bench.store.list(LEASES)] == ["sickbay"]


@pytest.mark.parametrize("resumed", [False, True], ids=["the-first-try", "another-leaders-try"])
async def test_a_cordon_without_our_mark_is_lifted_once_and_left_where_nobody_knows_whose_it_is(resumed: bool) -> None:
    """A leader that finds a release half done cannot tell our cordon from one that a person has set since."""
    bench = Bench()
    bench.open("Drain")
    prior = {"prior": {"unschedulable": False}}
    bench.merge({"status": prior}, REPAIRS, "r1", "status")
    bench.merge({"metadata": {"annotations": {names.QUARANTINE: None}}})
    assert bench.node()["spec"]["unschedulable"]
    await cancelled(bench)
    if resumed:
        report = {"state": "Claimed", "attempt": 9, "planGeneration": 1, "term": 0}
        bench.merge({"status": {"steps": {"Unquarantine": {"report": report}}}}, REPAIRS, "r1", "status")
    await bench.shift().look()
    assert bench.report["state"] == "Done"
    assert bool(bench.node()["spec"].get("unschedulable")) == resumed


async def test_a_cordon_without_our_mark_is_ours_still_when_another_write_came_in_between() -> None:
    """The refused try has lifted nothing, so what stands is what we have set."""
    bench = Bench()
    bench.open("Drain")
    bench.merge({"status": {"prior": {"unschedulable": False}}}, REPAIRS, "r1", "status")
    bench.merge({"metadata": {"annotations": {names.QUARANTINE: None}}})
    await cancelled(bench)
    shift, others = bench.shift(), iter(["once"])

    def meanwhile(request: Any) -> None:
        if request.method == "PATCH" and request.url.path.endswith("/nodes/n1") and next(others, ""):
            bench.merge({"metadata": {"labels": {"somebody": "else"}}})

    bench.wire.before = meanwhile
    for _ in range(3):
        with suppress(errors.ApiError):
            await shift.look()
    assert bench.report["state"] == "Done"
    assert "unschedulable" not in bench.node()["spec"]
