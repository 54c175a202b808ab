"""The Job controller."""

from __future__ import annotations

import pytest

from tests.controllers.cluster import condition
from tests.controllers.made import job

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


def by_index(pods):
    return {p["metadata"]["labels"][INDEX]: p["metadata"]["name"] for p in pods}


async def started(cluster, count, name="j"):
    """Pods of the job that run, once there are so many."""

    async def check():
        running = await cluster.running()
        pods = [p for p in await cluster.living() if p["metadata"]["name"] in running]
        return pods if len(pods) == count else None

    return await cluster.until(check)


async def ended(cluster, type_, reason, name="j"):
    async def check():
        found = condition(await cluster.get("jobs", name), type_)
        return found.get("status") == "True" and found.get("reason")

    await cluster.until(check, reason)


async def test_an_indexed_job_has_a_pod_for_each_index_and_completes(cluster):
    await cluster.nodes(1)
    await cluster.make("jobs", job(cluster, completionMode="Indexed", completions=3, parallelism=3))
    pods = by_index(await started(cluster, 3))
    assert set(pods) == {"0", "1", "2"}
    first = await cluster.get("pods", pods["0"])
    meta = first["metadata"]
    assert meta["annotations"][INDEX] == "0"
    assert FINALIZER in meta["finalizers"]
    assert first["spec"]["hostname"] == "j-0"
    assert meta["name"].startswith("j-0-")
    uid = (await cluster.get("jobs", "j"))["metadata"]["uid"]
    assert {meta["labels"][f"batch.kubernetes.io/{k}"] for k in ("controller-uid", "job-name")} == {uid, "j"}
    for name in pods.values():
        await cluster.exit(name, 0)
    await ended(cluster, "Complete", "CompletionsReached")
    status = await cluster.status("jobs", "j")
    assert (status["succeeded"], status["completedIndexes"]) == (3, "0-2")
    assert not status.get("active") and not status.get("ready") and not status.get("terminating")
    assert condition({"status": status}, "SuccessCriteriaMet")["status"] == "True"
    assert status["completionTime"] >= status["startTime"]
    assert {FINALIZER in (p["metadata"].get("finalizers") or ()) for p in await cluster.pods()} == {False}


async def test_only_so_many_run_at_a_time(cluster):
    await cluster.nodes(1)
    await cluster.make("jobs", job(cluster, completionMode="Indexed", completions=3, parallelism=1))
    for index in ("0", "1", "2"):

        async def there(index=index):
            running = await cluster.running()
            pods = by_index([p for p in await cluster.living() if p["metadata"]["name"] in running])
            return pods[index] if set(pods) == {index} else None

        await cluster.exit(await cluster.until(there), 0)
    await ended(cluster, "Complete", "CompletionsReached")


async def test_a_failed_index_runs_again_under_another_name(cluster):
    await cluster.nodes(1)
    await cluster.make("jobs", job(cluster, completionMode="Indexed", completions=2, parallelism=2))
    before = by_index(await started(cluster, 2))
    await cluster.exit(before["1"], 3)

    async def counted():
        return (await cluster.status("jobs", "j")).get("failed")

    await cluster.until(counted, 1)
    after = by_index(await started(cluster, 2))
    assert set(after) == {"0", "1"}
    assert after["0"] == before["0"]
    assert after["1"] != before["1"]


async def test_beyond_its_backoff_limit_a_job_fails_and_ends_its_other_pods(cluster):
    await cluster.nodes(1)
    await cluster.make("jobs", job(cluster, completionMode="Indexed", completions=2, parallelism=2, backoffLimit=0))
    pods = by_index(await started(cluster, 2))
    await cluster.exit(pods["0"], 1)
    await ended(cluster, "Failed", "BackoffLimitExceeded")
    assert condition(await cluster.get("jobs", "j"), "FailureTarget")["reason"] == "BackoffLimitExceeded"
    assert [p["metadata"]["name"] for p in await cluster.pods()] == [pods["0"]]
    status = await cluster.status("jobs", "j")
    assert status["failed"] == 2
    assert not status.get("active")


async def test_each_index_may_have_a_limit_of_its_own(cluster):
    await cluster.nodes(1)
    spec = {"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 0}
    await cluster.make("jobs", job(cluster, **spec))
    pods = by_index(await started(cluster, 3))
    await cluster.exit(pods["1"], 1)

    async def failed():
        return (await cluster.status("jobs", "j")).get("failedIndexes")

    await cluster.until(failed, "1")
    assert set(by_index(await started(cluster, 2))) == {"0", "2"}
    for index in ("0", "2"):
        await cluster.exit(pods[index], 0)
    await ended(cluster, "Failed", "FailedIndexes")
    assert (await cluster.status("jobs", "j"))["completedIndexes"] == "0,2"


async def test_too_many_failed_indexes_end_the_job(cluster):
    await cluster.nodes(1)
    spec = {"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 0}
    await cluster.make("jobs", job(cluster, **spec, maxFailedIndexes=1))
    pods = by_index(await started(cluster, 3))
    for index in ("0", "1"):
        await cluster.exit(pods[index], 1)
    await ended(cluster, "Failed", "MaxFailedIndexesExceeded")
    assert pods["2"] not in {p["metadata"]["name"] for p in await cluster.pods()}


EXIT = {"onExitCodes": {"operator": "In", "values": [42]}}
DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


async def test_a_rule_may_end_the_job_at_once(cluster):
    await cluster.nodes(1)
    policy = {"rules": [{"action": "FailJob", **EXIT}]}
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "podFailurePolicy": policy}
    await cluster.make("jobs", job(cluster, **spec))
    pods = by_index(await started(cluster, 2))
    await cluster.exit(pods["0"], 42)
    await ended(cluster, "Failed", "PodFailurePolicy")
    assert [p["metadata"]["name"] for p in await cluster.pods()] == [pods["0"]]


async def test_a_rule_may_fail_one_index_whatever_its_limit(cluster):
    await cluster.nodes(1)
    policy = {"rules": [{"action": "FailIndex", **EXIT}]}
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 3}
    await cluster.make("jobs", job(cluster, **spec, podFailurePolicy=policy))
    pods = by_index(await started(cluster, 2))
    await cluster.exit(pods["0"], 42)

    async def failed():
        return (await cluster.status("jobs", "j")).get("failedIndexes")

    await cluster.until(failed, "0")
    await cluster.exit(pods["1"], 0)
    await ended(cluster, "Failed", "FailedIndexes")


async def test_an_eviction_that_a_rule_ignores_costs_no_attempt(cluster):
    await cluster.nodes(1)
    policy = {"rules": [{"action": "Ignore", **DISRUPTED}]}
    await cluster.make("jobs", job(cluster, completions=1, parallelism=1, backoffLimit=0, podFailurePolicy=policy))
    ((first,),) = [[p["metadata"]["name"] for p in await started(cluster, 1)]]
    assert (await cluster.evict(first)).code == 201

    async def replaced():
        names = set(await cluster.running())
        return len(names) == 1 and first not in names

    await cluster.until(replaced)
    status = await cluster.status("jobs", "j")
    assert not status.get("failed")
    assert condition({"status": status}, "Failed") == {}


@pytest.mark.parametrize(
    ("policy", "replaced"),
    [pytest.param("TerminatingOrFailed", True, id="at once"), pytest.param("Failed", False, id="later")],
)
async def test_when_a_pod_that_is_going_is_replaced(cluster, policy, replaced):
    await cluster.nodes(1)
    spec = {"completions": 1, "parallelism": 1, "podReplacementPolicy": policy}
    await cluster.make("jobs", job(cluster, stop_takes="1h", **spec))
    (pod,) = await started(cluster, 1)
    name = pod["metadata"]["name"]
    await cluster.delete("pods", name, gracePeriodSeconds=3600)

    async def others():
        return [p["metadata"]["name"] for p in await cluster.living()]

    if replaced:
        await cluster.until(others)
        return
    await cluster.stays(others, [])

    async def terminating():
        return (await cluster.status("jobs", "j")).get("terminating")

    await cluster.until(terminating, 1)


async def test_a_suspended_job_has_no_pods_and_gets_new_ones_when_resumed(cluster):
    await cluster.nodes(1)
    await cluster.make("jobs", job(cluster, completionMode="Indexed", completions=2, parallelism=2))
    before = by_index(await started(cluster, 2))
    await cluster.patch("jobs", "j", {"spec": {"suspend": True}})

    async def none():
        return not await cluster.pods()

    await cluster.until(none)

    async def reported():
        status = await cluster.status("jobs", "j")
        suspended = condition({"status": status}, "Suspended")
        return suspended.get("status"), suspended.get("reason"), status.get("startTime"), status.get("active", 0)

    await cluster.until(reported, ("True", "JobSuspended", None, 0))
    assert not (await cluster.status("jobs", "j")).get("failed")
    await cluster.patch("jobs", "j", {"spec": {"suspend": False}})
    after = by_index(await started(cluster, 2))
    assert set(after.values()).isdisjoint(before.values())
    assert condition(await cluster.get("jobs", "j"), "Suspended")["reason"] == "JobResumed"


async def test_a_job_made_suspended_starts_no_pod(cluster):
    await cluster.nodes(1)
    await cluster.make("jobs", job(cluster, completions=1, parallelism=1, suspend=True))
    await cluster.stays(cluster.pods, [])


async def test_a_job_has_a_time_limit(cluster):
    await cluster.nodes(1)
    await cluster.make("jobs", job(cluster, completions=1, parallelism=1, activeDeadlineSeconds=3))
    await started(cluster, 1)
    await ended(cluster, "Failed", "DeadlineExceeded")
    assert await cluster.living() == []


async def test_a_job_that_is_over_goes_after_its_time(cluster):
    await cluster.nodes(1)
    await cluster.make("jobs", job(cluster, completions=1, parallelism=1, ttlSecondsAfterFinished=1))
    (pod,) = await started(cluster, 1)
    await cluster.exit(pod["metadata"]["name"], 0)

    async def gone():
        return not await cluster.get("jobs", "j") and not await cluster.pods()

    await cluster.until(gone)


async def test_deleting_a_job_ends_its_pods(cluster):
    await cluster.nodes(1)
    await cluster.make("jobs", job(cluster, completions=2, parallelism=2))
    await started(cluster, 2)
    await cluster.delete("jobs", "j", propagationPolicy="Background")

    async def gone():
        return not await cluster.get("jobs", "j") and not await cluster.pods()

    await cluster.until(gone)


async def test_a_pod_whose_node_is_gone_counts_as_failed_and_runs_elsewhere(cluster):
    first, second = await cluster.nodes(2)
    await cluster.make("jobs", job(cluster, gpus=8, completionMode="Indexed", completions=1, parallelism=1))
    (pod,) = await started(cluster, 1)
    other = second if pod["spec"]["nodeName"] == first else first
    await cluster.patch_node(pod["spec"]["nodeName"], {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})

    async def moved():
        return list((await cluster.running()).values())

    await cluster.until(moved, [other])
    assert (await cluster.status("jobs", "j"))["failed"] == 1
