"""Suspended and resumed: how a JobSet is held, and what of it may be changed meanwhile."""

from __future__ import annotations

from copy import deepcopy

import pytest

from tests.jobsets.cluster import PREFIX, Cluster, Refused, condition
from tests.jobsets.manifests import replicated, spec

AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["n"]}]}
            ]
        }
    }
}


async def held(cluster: Cluster, ranks: int) -> dict:
    """A JobSet that ran and is suspended now; returns it once none of its pods is left."""
    await cluster.runs("llm", ranks)
    await cluster.change("llm", {"suspend": True})

    async def empty() -> bool:
        return not await cluster.ranks("llm")

    await cluster.until(empty, "its pods are gone")
    return await cluster.condition("llm", "Suspended")


def changed(job_set: dict, **pod: object) -> dict:
    """A patch of the first template; `labels` and `annotations` are its metadata's, the rest its spec's."""
    jobs = deepcopy(job_set["spec"]["replicatedJobs"])
    template = jobs[0]["template"]["spec"]["template"]
    for key, value in pod.items():
        (template.setdefault("metadata", {}) if key in ("labels", "annotations") else template["spec"])[key] = value
    return {"replicatedJobs": jobs}


async def test_suspension_takes_the_pods_down_and_leaves_the_jobs(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 2, 2)))
    before = await held(cluster, 4)
    jobs = await cluster.children("Job", "llm")
    assert {name: job["spec"]["suspend"] for name, job in jobs.items()} == {"llm-w-0": True, "llm-w-1": True}
    assert condition(before, "Suspended")["reason"] == "SuspendedJobs"
    assert before["status"].get("restarts", 0) == 0


async def test_resumed_it_runs_again_in_the_same_jobs(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 2, 2)))
    await held(cluster, 4)
    jobs = await cluster.children("Job", "llm")
    await cluster.change("llm", {"suspend": False})
    pods = await cluster.runs("llm", 4)
    after = await cluster.condition("llm", "Suspended", "False")
    assert condition(after, "Suspended")["reason"] == "ResumeJobs"
    assert {p["metadata"]["ownerReferences"][0]["uid"] for p in pods.values()} == {
        j["metadata"]["uid"] for j in jobs.values()
    }
    assert {p["metadata"]["labels"][f"{PREFIX}/restart-attempt"] for p in pods.values()} == {"0"}


async def test_made_suspended_it_makes_jobs_and_no_pods(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 2), suspend=True))
    await cluster.condition("llm", "Suspended")
    assert [job["spec"]["suspend"] for job in (await cluster.children("Job", "llm")).values()] == [True]
    await cluster.quiet()
    assert await cluster.ranks("llm") == {}


async def test_what_a_suspended_one_lets_be_changed_reaches_its_pods(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 2)))
    found = await held(cluster, 2)
    more = {"key": "example.com/spare", "operator": "Exists", "effect": "NoSchedule"}
    await cluster.change(
        "llm",
        changed(found, labels={"attempt": "2"}, annotations={"note": "x"}, tolerations=[more]) | {"suspend": False},
    )
    for pod in (await cluster.runs("llm", 2)).values():
        assert pod["metadata"]["labels"]["attempt"] == "2"
        assert pod["metadata"]["annotations"]["note"] == "x"
        assert more in pod["spec"]["tolerations"]


@pytest.mark.parametrize(
    "pod", [{"affinity": AFFINITY}, {"restartPolicy": "OnFailure"}], ids=["affinity", "restartPolicy"]
)
@pytest.mark.parametrize("suspended", [True, False], ids=["suspended", "running"])
async def test_a_template_can_be_changed_in_nothing_else(cluster: Cluster, suspended: bool, pod: dict) -> None:
    made = await cluster.job_set("llm", spec(cluster, replicated("w", 1, 1), suspend=suspended))
    with pytest.raises(Refused, match="immutable"):
        await cluster.change("llm", changed(made, **pod))


async def test_a_running_one_does_not_let_its_labels_be_changed(cluster: Cluster) -> None:
    made = await cluster.job_set("llm", spec(cluster, replicated("w", 1, 1)))
    with pytest.raises(Refused, match="immutable"):
        await cluster.change("llm", changed(made, labels={"attempt": "2"}))


async def test_a_failure_and_a_suspension_at_once_leave_children_that_wait(cluster: Cluster) -> None:
    """It restarts though it is suspended; what it makes anew is suspended, and runs when it is resumed."""
    await cluster.job_set("llm", spec(cluster, replicated("w", 2, 1), failurePolicy={"maxRestarts": 3}))
    pods = await cluster.runs("llm", 2)
    before = {job["metadata"]["uid"] for job in (await cluster.children("Job", "llm")).values()}
    cluster.exit(pods["w-0-0"], 1)
    await cluster.change("llm", {"suspend": True})

    async def waits() -> bool:
        jobs = (await cluster.children("Job", "llm")).values()
        anew = len(jobs) == 2 and not before & {job["metadata"]["uid"] for job in jobs}
        return anew and all(job["spec"]["suspend"] for job in jobs)

    await cluster.until(waits, "both children are new and suspended")
    assert (await cluster.get("JobSet", "llm"))["status"]["restarts"] == 1
    assert await cluster.ranks("llm") == {}
    await cluster.change("llm", {"suspend": False})
    again = await cluster.runs("llm", 2)
    assert {p["metadata"]["labels"][f"{PREFIX}/restart-attempt"] for p in again.values()} == {"1"}
