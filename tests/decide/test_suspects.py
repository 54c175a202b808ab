"""What the job loop has against a node, as a fault; and the jobs' part of a gate."""

from __future__ import annotations

import msgspec
import pytest

from sickbay.api.core import Node
from sickbay.api.fault_type import FaultType
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.node_repair import NodeRepair
from sickbay.api.recovery_policy import RecoveryPolicy
from sickbay.clock import parse_time
from sickbay.decide.jobgate import waiting
from sickbay.decide.suspects import FAULT, is_answered, suspected

NODE = msgspec.convert({"metadata": {"name": "n1", "uid": "u-1"}}, Node)
TYPE = msgspec.convert({"metadata": {"name": FAULT}, "spec": {}}, FaultType)
NOW = parse_time("2027-03-01T08:00:00Z")


def recovery(name="llm", suspects=(), **status):
    meta = {"name": f"job-{name}", "namespace": "a"}
    spec = {"job": {"kind": "Job", "name": name, "uid": f"j-{name}"}, "policy": "p"}
    body = {"metadata": meta, "spec": spec, "status": {"suspects": list(suspects), **status}}
    return msgspec.convert(body, JobRecovery)


def suspect(since="2027-03-01T07:50:00Z", **more):
    return {"node": "n1", "uid": "u-1", "reason": "why", "since": since, **more}


def repaired(ended="2027-03-01T07:55:00Z", outcome="Repaired", uid="u-1"):
    body = {"spec": {"node": {"name": "n1", "uid": uid}}, "status": {"outcome": outcome, "endedAt": ended}}
    return msgspec.convert(body, NodeRepair)


def test_a_suspect_is_a_fault_that_names_its_job():
    found = suspected(NODE, [recovery(suspects=[suspect()])], [], TYPE)
    assert found.name == "job.suspect"
    assert "Job a/llm" in found.message
    assert found.since == parse_time("2027-03-01T07:50:00Z")


@pytest.mark.parametrize("change", [{"uid": "u-0"}, {"node": "n2"}, {"since": None}, {"since": "soon"}], ids=str)
def test_another_node_is_not_meant(change):
    assert suspected(NODE, [recovery(suspects=[suspect() | change])], [], TYPE) is None


@pytest.mark.parametrize(
    ("past", "answered"),
    [
        (repaired(), True),
        (repaired(ended="2027-03-01T07:40:00Z"), False),
        (repaired(outcome="CancelledByPerson"), False),
        (repaired(uid="u-0"), False),
    ],
    ids=["repaired-since", "repaired-before", "cancelled", "another-node"],
)
def test_a_repair_that_ended_well_answers_a_suspicion(past, answered):
    found = suspected(NODE, [recovery(suspects=[suspect()])], [past], TYPE)
    assert (found is None) == answered


def test_of_several_suspicions_the_oldest_counts():
    later = recovery("b", [suspect("2027-03-01T07:59:00Z")])
    found = suspected(NODE, [later, recovery(suspects=[suspect()])], [], TYPE)
    assert found.source == "jobrecovery/a/job-llm"


@pytest.mark.parametrize(("state", "answered"), [("Running", True), ("Done", True), ("Failed", False), ("", False)])
def test_the_validation_itself_is_the_proof(state, answered):
    repair = msgspec.convert({"status": {"steps": {"Validate": {"state": state}}}}, NodeRepair)
    assert is_answered(repair, FAULT) == answered
    assert not is_answered(repair, "gpu.xid.79")


# --- gates

ATTEMPT = [{"n": 1, "placement": {"0": "n1", "1": "n2"}}]
POLICY = msgspec.convert({"spec": {"mode": "Act", "checkpoint": {"window": "10m"}}}, RecoveryPolicy)


def gate(**facts):
    return {"repair": "r", "step": "Drain", "attempt": 1, "state": "Asked", "until": "2027-03-01T08:05:00Z", **facts}


def wait(*records, policy=POLICY, asked=NOW, now=NOW):
    return waiting("n1", "r", "Drain", 1, records, lambda _namespace, _name: policy, asked, now)


@pytest.mark.parametrize(
    ("gates", "open_"),
    [
        ([gate()], False),
        ([gate(state="Checkpointed")], True),
        ([gate(state="TimeOver")], True),
        ([gate(state="Gone")], True),
        ([gate(attempt=2, state="Checkpointed")], False),
        ([gate(step="Repair", state="Checkpointed")], False),
        ([], False),
    ],
    ids=["asked", "checkpointed", "time-over", "gone", "another-attempt", "another-step", "not-asked-yet"],
)
def test_the_jobs_part_is_open_when_each_has_answered(gates, open_):
    assert (wait(recovery(attempts=ATTEMPT, gates=gates)) is None) == open_


@pytest.mark.parametrize(
    "policy",
    [
        None,
        msgspec.convert({"spec": {"mode": "Observe", "checkpoint": {}}}, RecoveryPolicy),
        msgspec.convert({"spec": {"mode": "Act"}}, RecoveryPolicy),
    ],
    ids=["gone", "observe", "no-checkpoint"],
)
def test_a_job_that_is_not_asked_holds_nobody_up(policy):
    assert wait(recovery(attempts=ATTEMPT), policy=policy) is None


@pytest.mark.parametrize(
    "attempts", [[], [{"n": 1, "placement": {"0": "n2"}}], [ATTEMPT[0] | {"ended": "2027-03-01T07:00:00Z"}]]
)
def test_a_job_that_is_not_on_the_node_holds_nobody_up(attempts):
    assert wait(recovery(attempts=attempts)) is None


@pytest.mark.parametrize(("seconds", "open_"), [("08:00:59", False), ("08:01:00", True)])
def test_a_job_loop_that_does_not_ask_is_waited_for_a_minute(seconds, open_):
    now = parse_time(f"2027-03-01T{seconds}Z")
    assert (wait(recovery(attempts=ATTEMPT), now=now) is None) == open_


def test_a_wait_names_its_jobs_and_its_end():
    found = wait(recovery("b", attempts=ATTEMPT, gates=[gate()]), recovery("c", attempts=ATTEMPT))
    assert found.jobs == ("Job a/b", "Job a/c")
    assert found.until == parse_time("2027-03-01T08:05:30Z")
