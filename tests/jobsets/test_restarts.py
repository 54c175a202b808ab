"""Failures of children: what the failure policy makes of them."""

from __future__ import annotations

import pytest

from tests.jobsets.cluster import PREFIX, Cluster, condition
from tests.jobsets.manifests import replicated, spec

RESTART = f"{PREFIX}/restart-attempt"


async def fail_first_rank(cluster: Cluster, job_set: str, ranks: int) -> dict[str, str]:
    """One rank ends with an error; returns the UIDs of the child Jobs as they were."""
    running = await cluster.runs(job_set, ranks)
    before = await cluster.children("Job", job_set)
    cluster.exit(running["w-0-0"], 1)
    return {name: job["metadata"]["uid"] for name, job in before.items()}


async def restarted(cluster: Cluster, job_set: str, before: dict[str, str]) -> dict[str, dict]:
    """Wait for children under the same names, none of which is of before."""

    async def anew() -> dict:
        jobs = await cluster.children("Job", job_set)
        uids = {name: job["metadata"]["uid"] for name, job in jobs.items()}
        return jobs if uids.keys() == before.keys() and not set(uids.values()) & set(before.values()) else {}

    return await cluster.until(anew, "all children are made again")


async def test_without_a_failure_policy_one_failed_child_is_the_end(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 2, 2)))
    await fail_first_rank(cluster, "llm", 4)
    over = await cluster.condition("llm", "Failed")
    assert condition(over, "Failed")["reason"] == "FailedJobs"
    assert "llm-w-0" in condition(over, "Failed")["message"]
    assert over["status"]["terminalState"] == "Failed"
    assert over["status"].get("restarts", 0) == 0


async def test_children_that_still_run_go_when_the_jobset_has_failed(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 2, 2)))
    await fail_first_rank(cluster, "llm", 4)
    await cluster.condition("llm", "Failed")
    await cluster.gone("Job", "llm-w-1")
    assert list(await cluster.children("Job", "llm")) == ["llm-w-0"], "the failed one is kept as evidence"


async def test_a_restart_makes_every_child_again_under_its_name(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 2, 2), failurePolicy={"maxRestarts": 3}))
    before = await fail_first_rank(cluster, "llm", 4)
    jobs = await restarted(cluster, "llm", before)
    assert {job["metadata"]["labels"][RESTART] for job in jobs.values()} == {"1"}
    pods = await cluster.runs("llm", 4)
    assert sorted(pods) == ["w-0-0", "w-0-1", "w-1-0", "w-1-1"]
    assert {pod["metadata"]["labels"][RESTART] for pod in pods.values()} == {"1"}
    status = (await cluster.get("JobSet", "llm"))["status"]
    assert (status["restarts"], status["restartsCountTowardsMax"]) == (1, 1)


async def test_restarts_come_to_an_end(cluster: Cluster) -> None:
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 2), failurePolicy={"maxRestarts": 1}))
    await restarted(cluster, "llm", await fail_first_rank(cluster, "llm", 2))
    await fail_first_rank(cluster, "llm", 2)
    over = await cluster.condition("llm", "Failed")
    assert condition(over, "Failed")["reason"] == "ReachedMaxRestarts"
    assert over["status"]["restarts"] == 1


@pytest.mark.parametrize(
    ("rule", "reason", "restarts"),
    [
        pytest.param({"action": "FailJobSet"}, "FailJobSetFailurePolicyAction", 0, id="fail"),
        pytest.param(
            {"action": "FailJobSet", "onJobFailureReasons": ["BackoffLimitExceeded"]},
            "FailJobSetFailurePolicyAction", 0, id="fail-for-this-reason",
        ),
        pytest.param(
            {"action": "FailJobSet", "targetReplicatedJobs": ["w"]}, "FailJobSetFailurePolicyAction", 0, id="fail-here"
        ),
        pytest.param(
            {"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}, "", 1, id="another-reason"
        ),
        pytest.param({"action": "FailJobSet", "targetReplicatedJobs": ["driver"]}, "", 1, id="another-job"),
        pytest.param({"action": "RestartJobSet"}, "", 1, id="restart"),
    ],
)  # fmt: skip
async def test_the_first_rule_that_fits_says_what_is_done(
    cluster: Cluster, rule: dict, reason: str, restarts: int
) -> None:
    policy = {"maxRestarts": 2, "rules": [{"name": "mine", **rule}]}
    jobs = [replicated("w", 1, 2), replicated("driver", 1, 1)]
    await cluster.job_set("llm", spec(cluster, *jobs, failurePolicy=policy))
    before = await fail_first_rank(cluster, "llm", 3)
    if reason:
        over = await cluster.condition("llm", "Failed")
        assert condition(over, "Failed")["reason"] == reason
    else:
        await restarted(cluster, "llm", before)
    assert (await cluster.get("JobSet", "llm"))["status"].get("restarts", 0) == restarts


async def test_a_restart_that_is_to_be_ignored_is_none_of_the_allowed_ones(cluster: Cluster) -> None:
    policy = {"maxRestarts": 0, "rules": [{"name": "free", "action": "RestartJobSetAndIgnoreMaxRestarts"}]}
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 2), failurePolicy=policy))
    await restarted(cluster, "llm", await fail_first_rank(cluster, "llm", 2))
    status = (await cluster.get("JobSet", "llm"))["status"]
    assert (status["restarts"], status.get("restartsCountTowardsMax", 0)) == (1, 0)


async def test_blocking_recreate_makes_nothing_before_the_last_old_child_is_gone(cluster: Cluster) -> None:
    policy = {"maxRestarts": 1, "restartStrategy": "BlockingRecreate"}
    slow = replicated("w", 2, 1, annotations={"sim.sickbay.dev/stop-takes": "4s"})
    await cluster.job_set("llm", spec(cluster, slow, failurePolicy=policy))
    before = await fail_first_rank(cluster, "llm", 2)
    seen: list[set[str]] = []

    async def anew() -> bool:
        jobs = await cluster.children("Job", "llm")
        uids = {job["metadata"]["uid"] for job in jobs.values()}
        seen.append(uids)
        return len(uids) == 2 and not uids & set(before.values())

    await cluster.until(anew, "both children are made again")
    old = set(before.values())
    assert not [uids for uids in seen if uids & old and uids - old], "old and new children side by side"


async def test_recreate_makes_each_child_as_soon_as_its_old_one_is_gone(cluster: Cluster) -> None:
    """The other strategy, for the difference: `w-0`, whose pods are gone at once, does not wait for `v-0`."""
    slow = replicated("v", 1, 1, annotations={"sim.sickbay.dev/stop-takes": "5s"})
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 1), slow, failurePolicy={"maxRestarts": 1}))
    before = await fail_first_rank(cluster, "llm", 2)

    async def side_by_side() -> bool:
        jobs = await cluster.children("Job", "llm")
        uids = {name: job["metadata"]["uid"] for name, job in jobs.items()}
        return uids.get("llm-v-0") == before["llm-v-0"] and uids.get("llm-w-0", "") not in ("", before["llm-w-0"])

    await cluster.until(side_by_side, "w-0 is new while v-0 is still the old one")


async def test_a_pod_that_is_deleted_is_no_failure_of_the_jobset(cluster: Cluster) -> None:
    """Its child Job counts it, and with failures to spare makes another one."""
    await cluster.job_set("llm", spec(cluster, replicated("w", 1, 2, backoffLimit=6)))
    pod = (await cluster.runs("llm", 2))["w-0-1"]
    await cluster.call("DELETE", "Pod", pod["metadata"]["name"])

    async def replaced() -> bool:
        now = await cluster.ranks("llm")
        return "w-0-1" in now and now["w-0-1"]["metadata"]["uid"] != pod["metadata"]["uid"]

    await cluster.until(replaced, "the rank is there again")
    status = (await cluster.get("JobSet", "llm"))["status"]
    assert status.get("restarts", 0) == 0
    assert not condition({"status": status}, "Failed")
