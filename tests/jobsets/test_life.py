"""A JobSet's life without failures: what it makes, its end, and what is left of it."""

from __future__ import annotations

import pytest

from tests.jobsets.cluster import PREFIX, Cluster, Refused, condition
from tests.jobsets.manifests import replicated, spec

INDEX = "batch.kubernetes.io/job-completion-index"


async def test_pods_say_to_which_jobset_job_and_rank_they_belong(cluster: Cluster) -> None:
    made = await cluster.job_set("llm", spec(cluster, replicated("w", 2, 2), replicated("eval", 1, 1)))
    pods = await cluster.runs("llm", 5)
    assert sorted(pods) == ["eval-0-0", "w-0-0", "w-0-1", "w-1-0", "w-1-1"]
    told = {
        "jobset-name": "llm", "jobset-uid": made["metadata"]["uid"], "replicatedjob-name": "w", "job-index": "1",
        "restart-attempt": "0", "replicatedjob-replicas": "2", "global-replicas": "3", "job-global-index": "1",
        "group-name": "default", "group-replicas": "3", "job-group-index": "1",
    }  # fmt: skip
    pod = pods["w-1-0"]["metadata"]
    for place in ("labels", "annotations"):
        assert {key: pod[place].get(f"{PREFIX}/{key}") for key in told} == told, place
    assert len(pod["labels"][f"{PREFIX}/job-key"]) == 40
    assert pod["labels"][INDEX] == "0"
    assert pods["eval-0-0"]["metadata"]["labels"][f"{PREFIX}/job-global-index"] == "2"


async def test_its_jobs_carry_the_same_and_belong_to_it(cluster: Cluster) -> None:
    made = await cluster.job_set("llm", spec(cluster, replicated("w", 2, 2)))
    await cluster.runs("llm", 4)
    jobs = await cluster.children("Job", "llm")
    assert sorted(jobs) == ["llm-w-0", "llm-w-1"]
    for job in jobs.values():
        (owner,) = job["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("JobSet", made["metadata"]["uid"], True)
        assert job["metadata"]["labels"][f"{PREFIX}/restart-attempt"] == "0"
        assert job["spec"]["completionMode"] == "Indexed"
        assert job["spec"]["suspend"] is False


async def test_ranks_find_each_other_through_a_headless_service(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 2)))
    pods = await cluster.runs("llm", 2)
    assert {pod["spec"]["subdomain"] for pod in pods.values()} == {"llm"}
    assert {pod["spec"]["hostname"] for pod in pods.values()} == {"llm-w-0-0", "llm-w-0-1"}
    service = (await cluster.get("Service", "llm"))["spec"]
    assert (service["clusterIP"], service["selector"]) == ("None", {f"{PREFIX}/jobset-name": "llm"})
    assert service["publishNotReadyAddresses"] is True


async def test_it_is_complete_when_every_child_is(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 2, 1)))
    pods = await cluster.runs("llm", 2)
    cluster.exit(pods["w-0-0"], 0)

    async def one_is_done() -> bool:
        (status,) = (await cluster.get("JobSet", "llm"))["status"]["replicatedJobsStatus"]
        return status["succeeded"] == 1

    await cluster.until(one_is_done, "one child has succeeded")
    assert not condition(await cluster.get("JobSet", "llm"), "Completed")
    cluster.exit(pods["w-1-0"], 0)
    over = await cluster.condition("llm", "Completed")
    assert condition(over, "Completed")["reason"] == "AllJobsCompleted"
    assert over["status"]["terminalState"] == "Completed"


async def test_any_targeted_child_can_be_enough(cluster: Cluster) -> None:
    policy = {"operator": "Any", "targetReplicatedJobs": ["driver"]}
    jobs = [replicated("w", 2, 1), replicated("driver", 1, 1)]
    await cluster.job_set("llm", spec(cluster, *jobs, successPolicy=policy))
    pods = await cluster.runs("llm", 3)
    cluster.exit(pods["driver-0-0"], 0)
    await cluster.condition("llm", "Completed")
    for name in ("llm-w-0", "llm-w-1"):
        await cluster.gone("Job", name)
    assert list(await cluster.children("Job", "llm")) == ["llm-driver-0"]


async def test_its_status_counts_children_by_how_they_stand(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 2, 2), replicated("eval", 1, 1)))
    await cluster.runs("llm", 5)

    async def counted() -> bool:
        status = (await cluster.get("JobSet", "llm"))["status"]["replicatedJobsStatus"]
        found = {s["name"]: (s["active"], s["ready"], s["suspended"], s["succeeded"], s["failed"]) for s in status}
        return found == {"w": (2, 2, 0, 0, 0), "eval": (1, 1, 0, 0, 0)}

    await cluster.until(counted, "all children are counted active and ready")


async def test_one_that_another_controller_manages_is_left_alone(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 1), managedBy="example.com/other"))
    await cluster.quiet()
    assert await cluster.children("Job", "llm") == {}


async def test_a_finished_one_goes_when_its_time_is_over(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 1), ttlSecondsAfterFinished=2))
    pods = await cluster.runs("llm", 1)
    cluster.exit(pods["w-0-0"], 0)
    await cluster.condition("llm", "Completed")
    await cluster.gone("JobSet", "llm")
    await cluster.gone("Job", "llm-w-0")


async def test_deleted_in_the_foreground_it_goes_after_its_children_and_can_be_made_again(cluster: Cluster) -> None:
    slow = replicated("w", 1, 2, annotations={"sim.sickbay.dev/stop-takes": "2s"})
    first = await cluster.job_set("llm", spec(cluster, slow))
    await cluster.runs("llm", 2)
    await cluster.delete("llm", "Foreground")
    assert (await cluster.get("JobSet", "llm"))["metadata"]["deletionTimestamp"]
    await cluster.gone("JobSet", "llm")
    assert await cluster.children("Job", "llm") == {}
    again = await cluster.job_set("llm", spec(cluster, replicated("w", 1, 2)))
    assert again["metadata"]["uid"] != first["metadata"]["uid"]
    pods = await cluster.runs("llm", 2)
    assert {p["metadata"]["labels"][f"{PREFIX}/jobset-uid"] for p in pods.values()} == {again["metadata"]["uid"]}


async def test_children_of_one_that_is_gone_are_none_of_its_successors(cluster: Cluster) -> None:
    """Its controller knows children by their owner's UID: while the old ones are there, the names are taken."""
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 1)))
    (old,) = (await cluster.runs("llm", 1)).values()
    await cluster.delete("llm", "Orphan")
    await cluster.gone("JobSet", "llm")
    again = await cluster.job_set("llm", spec(cluster, replicated("w", 1, 1)))
    cluster.exit(old, 1)
    await cluster.quiet()
    after = await cluster.get("JobSet", "llm")
    assert not condition(after, "Failed"), "the failure of another one's child is not its own"
    await cluster.call("DELETE", "Job", "llm-w-0", propagationPolicy="Foreground")
    pods = await cluster.runs("llm", 1)
    assert pods["w-0-0"]["metadata"]["labels"][f"{PREFIX}/jobset-uid"] == again["metadata"]["uid"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({"failurePolicy": {"maxRestarts": 9}}, "immutable", id="failurePolicy"),
        pytest.param({"successPolicy": {"operator": "Any"}}, "immutable", id="successPolicy"),
        pytest.param({"network": {"enableDNSHostnames": False}}, "immutable", id="network"),
        pytest.param({"managedBy": "example.com/other"}, "immutable", id="managedBy"),
    ],
)
async def test_what_cannot_be_changed_is_refused(cluster: Cluster, change: dict, told: str) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 1), failurePolicy={"maxRestarts": 1}))
    with pytest.raises(Refused, match=told):
        await cluster.change("llm", change)
