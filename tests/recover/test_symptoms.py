"""What shows that an attempt is over although no pod of the gang has failed: one was replaced, or cannot join again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sickbay.clock import rfc3339
from sickbay.recover.adapters import ADAPTERS
from sickbay.recover.adapters.base import facts
from sickbay.recover.ends import End, end_of
from sickbay.recover.fence import lingering
from sickbay.recover.phases import advance
from sickbay.recover.view import Standing
from tests.recover.fleet import job_set
from tests.recover.looks import at, look, node, pod, unplaced
from tests.recover.records import record

PLACED = {str(rank): f"n{rank}" for rank in range(4)}
RUNS = {"n": 1, "started": rfc3339(at(5)), "youngest": rfc3339(at(1)), "placement": PLACED}
GANG = [pod(rank, made=0) for rank in range(4)]


def running(**more):
    return record("Running", attempts=[{**RUNS, **more}], template="same")


def crashed(times, over=50.0):
    """A rank whose container has failed so often, and waits to be started again."""
    last = {"exitCode": 1, "finishedAt": rfc3339(at(over)), "message": "rendezvous: connection refused"}
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    return pod(1, containers=[{"restartCount": times, "state": state, "lastState": {"terminated": last}}])


@pytest.mark.case("P144")
@pytest.mark.case("P153")
@pytest.mark.parametrize("rank", [0, 1], ids=["the-host-of-the-rendezvous", "a-worker"])
def test_a_rank_that_was_replaced_while_nobody_looked_is_the_end_of_its_gang(rank):
    pods = [pod(r, made=30 if r == rank else 0) for r in range(4)]
    work = advance(running(), look(*pods))
    (attempt,) = work.status.attempts
    assert (work.phase, attempt.verdict, attempt.action) == ("TearingDown", "Policy", "RestartInPlace")
    assert attempt.root_rank == str(rank)
    assert "replaced" in attempt.evidence[0]


def test_a_gang_that_somebody_has_restarted_as_a_whole_runs_on_as_another_attempt():
    work = advance(running(), look(*(pod(rank, made=30) for rank in range(4))))
    first, second = work.status.attempts
    assert (work.phase, first.verdict, second.youngest) == ("Recovered", "Unknown", rfc3339(at(30)))


@pytest.mark.parametrize(
    "attempt", [{"youngest": None}, {"youngest": rfc3339(at(30))}], ids=["written-by-an-older-version", "no-younger"]
)
def test_a_gang_is_left_alone_whose_pods_are_those_it_began_with(attempt):
    pods = [pod(rank, made=30 if rank == 1 else 0) for rank in range(4)]
    assert advance(running(**attempt), look(*pods)).phase == "Running"


@pytest.mark.case("P144")
def test_a_rank_that_fails_again_and_again_alone_is_restarted_with_all_others_as_one_attempt():
    work = advance(running(), look(GANG[0], crashed(2), *GANG[2:], now=51))
    assert work.phase == "Failing"
    work = advance(work.record, look(GANG[0], crashed(2), *GANG[2:], now=57))
    (attempt,) = work.status.attempts
    assert (work.phase, attempt.verdict, attempt.action) == ("TearingDown", "Transient", "RestartInPlace")
    assert "connection refused" in " ".join(attempt.evidence)


@pytest.mark.parametrize(
    ("rank", "standing"),
    [
        (crashed(1), Standing()),
        (crashed(2), Standing(step=9, since=at(55), expected=True)),
    ],
    ids=["once", "the-gang-has-come-further-since"],
)
def test_a_rank_may_be_started_again_once_and_is_none_to_worry_about_where_the_gang_goes_on(rank, standing):
    assert advance(running(), look(GANG[0], rank, *GANG[2:], standing=standing)).phase == "Running"


def test_a_gang_whose_ranks_are_all_started_again_is_left_to_its_kubelets():
    again = [{"restartCount": 2, "state": {}, "lastState": {}}]
    pods = [pod(0, containers=again), crashed(2), pod(2, containers=again), pod(3, containers=again)]
    assert advance(running(), look(*pods)).phase == "Running"


def job_set_run(restarts, pods_of, phase="Running"):
    """A JobSet whose own controller has made so many restarts, while the pods seen are of restart `pods_of`."""
    manifest = job_set("llm", 1, 4, restarts=10)
    manifest["metadata"] |= {"uid": "u-1", "resourceVersion": "1"}
    manifest["status"] = {"restarts": restarts}
    found = facts(ADAPTERS["JobSet"], manifest)
    gang = [replace(pod(r, phase=phase), rank=f"w-0-{r}", restart=pods_of) for r in range(4)]
    begun = record("Running", kind="JobSet", attempts=[{"n": 1, "started": rfc3339(at(5))}], template="same")
    return begun, replace(look(*gang), job=found, id=found.id)


def test_a_restart_by_its_own_controller_is_no_failure_of_its_own_while_the_pods_are_seen_as_they_were():
    """Jobs and pods come by two watches: what ended the ranks is about to be seen."""
    begun, seen = job_set_run(restarts=1, pods_of=0)
    work = advance(begun, seen)
    assert [a.verdict for a in work.status.attempts] == [""]
    end = End("w-0-1", "n1", "llm-1-0", "p-1-0", at(59), code=134 - 128, how="OutOfMemory")
    work = advance(work.record, replace(seen, ends=(end,), now=at(61)))
    assert work.status.attempts[0].verdict == "" and work.phase == "Failing"
    assert work.status.attempts[0].root_rank == "w-0-1"


def test_a_restart_by_its_own_controller_that_nobody_saw_counts_as_an_attempt():
    work = advance(*job_set_run(restarts=1, pods_of=1))
    assert [a.verdict for a in work.status.attempts] == ["Unknown", ""]


# --- no room


def exits(rank, log):
    ended = {"exitCode": 1, "finishedAt": rfc3339(at(20)), "message": log}
    return pod(rank, phase="Failed", containers=[{"state": {"terminated": ended}}])


def without_room(log, nodes=(), **policy):
    """Three of four ranks have found a place; one of them ends."""
    begun = record("Placing", attempts=[{"n": 1}], template="same")
    pods = [pod(0), exits(1, log), pod(2), unplaced(3)]
    seen = [look(*pods, now=now, nodes=nodes, policy=policy) for now in (21, 30)]
    ends = (end_of(pods[1].pod, "1", 1, 0, at(21)),)
    work = advance(begun, replace(seen[0], ends=ends))
    return advance(work.record, replace(seen[1], ends=ends))


@pytest.mark.case("P151")
def test_ranks_that_do_not_wait_for_the_others_place_cost_no_attempt_and_the_job_is_held_for_a_while():
    work = without_room("rendezvous: connection refused")
    (attempt,) = work.status.attempts
    assert (work.phase, work.status.on_deadline) == ("Held", "released again")
    assert (attempt.verdict, attempt.action, attempt.fingerprint) == ("Policy", "Requeue", "does not fit")
    assert "ranks had found no place" in work.status.message


@pytest.mark.parametrize(
    ("log", "nodes", "verdict"),
    [
        ("ValueError: no such option", (), "Workload"),
        ("connection refused", (node("n1", "Unknown", since=10),), "Hardware"),
    ],
)
def test_what_has_a_cause_of_its_own_counts_although_there_was_no_room(log, nodes, verdict):
    assert without_room(log, nodes).status.attempts[0].verdict == verdict


# --- teardown


@pytest.mark.case("P165")
@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_pods_that_end_on_a_node_that_is_not_ready_are_not_waited_for(ready):
    sick = node("n1", ready, cordoned=True)
    assert lingering(look(pod(1, deleted=90), nodes=(sick,))) == []


@pytest.mark.parametrize(
    ("pods", "sick"),
    [
        ([pod(1, deleted=90)], node("n1", "True", cordoned=True)),
        ([pod(1, deleted=90)], node("n1", "False")),
        ([pod(1, deleted=90), pod(2, on="n1")], node("n1", "False", cordoned=True)),
    ],
    ids=["the-node-is-well", "new-pods-may-come-there", "one-was-not-told-to-go"],
)
def test_every_other_pod_of_the_old_gang_is_waited_for(pods, sick):
    assert pods[0] in lingering(look(*pods, nodes=(sick,)))
