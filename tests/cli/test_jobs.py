"""Jobs in `explain` and `queue`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import MERGE, OWN, Cluster

HELD = {
    "phase": "Held",
    "message": "the budget for Hardware (10 retries) is used up",
    "since": "2026-01-01T00:00:00Z",
    "deadline": "2026-01-01T04:00:00Z",
    "onDeadline": "people are told again",
    "attempts": [
        {"n": 1, "verdict": "Hardware", "action": "Reschedule", "ended": "2026-01-01T00:00:00Z",
         "evidence": ["n1: gpu.xid.79 fell off the bus"]},
        {"n": 2, "verdict": "Hardware", "action": "Escalate", "ended": "2026-01-01T00:00:00Z", "evidence": ["again"]},
    ],
    "suspects": [{"node": "n1", "uid": "u", "reason": "gpu.xid.79 fell off the bus", "since": "2026-01-01T00:00:00Z"}],
    "excluded": [{"node": "n1", "uid": "u", "until": "2026-01-02T00:00:00Z", "reason": "gpu.xid.79"}],
}  # fmt: skip
RUNS = {"phase": "Recovered", "message": "attempt 2 runs", "attempts": [{"n": 2, "started": "2026-01-01T00:00:00Z"}]}


def job(cluster: Cluster, status: dict[str, Any], namespace: str = "default", finished: bool = False) -> None:
    """An Indexed Job and the job loop's record of it."""
    if cluster.store.find("namespaces", namespace) is None:
        cluster.store.create("namespaces", {"metadata": {"name": namespace}})
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": template, "suspend": True}
    made = cluster.store.create("jobs.batch", {"metadata": {"name": "llm"}, "spec": spec}, namespace)
    if finished:
        failed = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
        cluster.store.patch("jobs.batch", "llm", failed, MERGE, namespace, subresource="status")
    ref = {"apiVersion": "batch/v1", "kind": "Job", "name": "llm", "uid": made["metadata"]["uid"]}
    body = {"apiVersion": OWN, "kind": "JobRecovery", "metadata": {"name": "job-llm"}}
    resource = "jobrecoveries.sickbay.dev"
    cluster.store.create(resource, body | {"spec": {"job": ref, "policy": "training"}}, namespace)
    cluster.store.patch(resource, "job-llm", {"status": status}, MERGE, namespace, subresource="status")


async def test_a_job_that_waits_for_people_is_explained_with_the_command_that_moves_it_on(cluster: Cluster) -> None:
    job(cluster, HELD)
    told = (await cluster.run("explain", "job/llm")).out
    assert "Job llm in namespace default: is held until people act" in told
    assert "1: Hardware, Reschedule, ended 2026-01-01T00:00:00Z: n1: gpu.xid.79 fell off the bus" in told
    assert "n1 until 2026-01-02T00:00:00Z: gpu.xid.79" in told
    assert "Then: people are told again" in told
    command = 'kubectl -n default patch job llm --type merge -p \'{"spec":{"suspend":false}}\''
    assert f"To move it on: {command}" in told


async def test_a_finished_job_cannot_be_resumed_and_no_command_says_so(cluster: Cluster) -> None:
    job(cluster, HELD, finished=True)
    assert "To move it on" not in (await cluster.run("explain", "job/llm")).out


async def test_a_job_that_runs_asks_for_nothing(cluster: Cluster) -> None:
    job(cluster, RUNS)
    told = json.loads((await cluster.run("explain", "job/llm", "-o", "json")).out)
    assert (told["summary"], told["command"], told["phase"]) == ("runs again", "", "Recovered")


async def test_two_jobs_of_one_name_are_told_apart_by_their_namespace(cluster: Cluster) -> None:
    job(cluster, RUNS)
    job(cluster, HELD, "team-b")
    unclear = await cluster.run("explain", "job/llm")
    assert (unclear.code, "say which: -n default job/llm, -n team-b job/llm" in unclear.err) == (1, True)
    assert "is held until people act" in (await cluster.run("explain", "job/llm", "-n", "team-b")).out


@pytest.mark.parametrize(
    ("what", "says"),
    [
        pytest.param("job/ghost", "there is no record of job/ghost", id="no such job"),
        pytest.param("jobset/llm", "there is no record of jobset/llm", id="another kind"),
        pytest.param("pod/llm", "a job is named as job/NAME, or by its kind", id="no kind of job"),
        pytest.param("job/", "a job is named as job/NAME", id="no name"),
    ],
)
async def test_what_is_no_job_is_said_in_one_line(cluster: Cluster, what: str, says: str) -> None:
    job(cluster, RUNS)
    answer = await cluster.run("explain", what)
    assert (answer.code, says in answer.err, "Traceback" in answer.err) == (1, True, False)


async def test_the_queue_lists_jobs_that_need_people_and_no_others(cluster: Cluster) -> None:
    job(cluster, HELD)
    job(cluster, RUNS, "team-b")
    (row,) = json.loads((await cluster.run("queue", "-o", "json")).out)
    assert (row["job"], row["namespace"], row["needs"]) == ("job/llm", "default", "JobHeld")
    assert row["command"].startswith("kubectl -n default patch job llm")
    assert "job/llm" in (await cluster.run("queue")).out
