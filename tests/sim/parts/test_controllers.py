"""Job, DaemonSet, replicas, disruption and garbage collection."""

from __future__ import annotations

import pytest

from sickbay.apiserver.errors import StatusError
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import BUDGETS, DAEMON_SETS, DEPLOYMENTS, JOBS, NODES, PODS, STATEFUL_SETS, condition_of
from tests.support.simworld import phases, places, pod, running_world

TRAIN = PoolSpec("train", nodes=3, gpus=8)


def job(name="j", gpus=8, annotations=None, **spec):
    template = pod("ignored", gpus=gpus)
    if annotations:
        template["metadata"] = {"annotations": annotations}
    return {"metadata": {"name": name}, "spec": {**spec, "template": template}}


def template(**labels):
    made = pod("ignored", restartPolicy="Always")
    return {"metadata": {"labels": labels}, "spec": made["spec"]}


def replicated(name, replicas=2, **labels):
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template(**labels)}
    return {"metadata": {"name": name}, "spec": spec}


def budget(name="b", **spec):
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}


def creating(*things):
    def prepare(world):
        for resource, manifest in things:
            world.person("admin").create(resource, manifest, "default")

    return prepare


def status(world, resource, name):
    return world.store.get(resource, name, "default").get("status") or {}


# --- jobs


async def test_an_indexed_job_runs_one_pod_per_index_with_the_labels_of_real_ones_and_completes():
    manifest = job(
        annotations={"sim.sickbay.dev/run-for": "60s"}, completionMode="Indexed", completions=3, parallelism=3
    )
    async with running_world(TRAIN, prepare=creating((JOBS, manifest))) as world:
        await world.clock.sleep(5)
        pods = world.store.list(PODS, "default", labels="batch.kubernetes.io/job-name=j")
        indexes = [p["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for p in pods]
        assert indexes == ["0", "1", "2"]
        assert sorted(places(world).values()) == ["train-0", "train-1", "train-2"]
        assert status(world, JOBS, "j")["active"] == 3
        await world.clock.sleep(60)
        done = status(world, JOBS, "j")
        assert (done["succeeded"], done["completedIndexes"]) == (3, "0-2")
        assert condition_of({"status": done}, "Complete")["status"] == "True"


async def test_a_failed_pod_is_replaced_after_a_growing_delay():
    async with running_world(TRAIN, prepare=creating((JOBS, job(completions=1, parallelism=1)))) as world:
        gaps = []
        for _ in range(3):
            await world.clock.sleep(100)
            (running,) = [p for p in world.store.list(PODS) if p["status"]["phase"] == "Running"]
            world.kubelet.exit_pod(running, 1)
            failed_at = world.loop.time()
            while not any(p["status"]["phase"] == "Pending" for p in world.store.list(PODS)):
                await world.clock.sleep(1)
            gaps.append(round(world.loop.time() - failed_at))
        assert gaps == [10, 20, 40]


async def test_a_job_gives_up_beyond_its_backoff_limit():
    manifest = job(completions=1, parallelism=1, backoffLimit=0)
    async with running_world(TRAIN, prepare=creating((JOBS, manifest))) as world:
        await world.clock.sleep(5)
        world.kubelet.exit_pod(world.store.list(PODS)[0], 1)
        await world.clock.sleep(60)
        assert condition_of({"status": status(world, JOBS, "j")}, "Failed")["reason"] == "BackoffLimitExceeded"
        assert list(phases(world).values()) == ["Failed"]


async def test_a_disruption_can_be_ignored_by_policy():
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
    manifest = job(completions=1, parallelism=1, backoffLimit=0, podFailurePolicy=policy)
    async with running_world(TRAIN, prepare=creating((JOBS, manifest))) as world:
        await world.clock.sleep(5)
        first = world.store.list(PODS)[0]["metadata"]["name"]
        world.person("admin").evict(first, "default")
        await world.clock.sleep(60)
        assert list(phases(world).values()) == ["Running"]
        assert first not in phases(world)
        assert status(world, JOBS, "j").get("failed", 0) == 0


@pytest.mark.parametrize(
    ("policy", "pods"),
    [pytest.param("TerminatingOrFailed", 2, id="at once"), pytest.param("Failed", 1, id="when it has failed")],
)
async def test_when_a_pod_that_is_going_is_replaced_depends_on_the_policy(policy, pods):
    manifest = job(gpus=1, completions=1, parallelism=1, podReplacementPolicy=policy)
    async with running_world(TRAIN, prepare=creating((JOBS, manifest))) as world:
        await world.clock.sleep(5)
        (name,) = phases(world)
        node = places(world)[name]
        world.machine(node).power_off()
        world.person("admin").delete(PODS, name, "default")
        await world.clock.sleep(20)
        assert len(phases(world)) == pods


async def test_a_suspended_job_loses_its_pods_and_gets_them_back():
    async with running_world(TRAIN, prepare=creating((JOBS, job(completions=2, parallelism=2)))) as world:
        await world.clock.sleep(5)
        world.person("admin").merge(JOBS, "j", {"spec": {"suspend": True}}, "default")
        await world.clock.sleep(40)
        assert phases(world) == {}
        world.person("admin").merge(JOBS, "j", {"spec": {"suspend": False}}, "default")
        await world.clock.sleep(40)
        assert list(phases(world).values()) == ["Running", "Running"]


async def test_deleting_a_job_takes_its_pods_along():
    async with running_world(TRAIN, prepare=creating((JOBS, job(completions=2, parallelism=2)))) as world:
        await world.clock.sleep(5)
        world.person("admin").delete(JOBS, "j", "default")
        await world.clock.sleep(40)
        assert phases(world) == {}


# --- daemon sets and replicas


async def test_a_daemon_set_has_a_pod_on_every_node_cordoned_ones_included():
    manifest = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template(app="d")},
    }
    async with running_world(TRAIN, prepare=creating((DAEMON_SETS, manifest))) as world:
        world.person("admin").merge(NODES, "train-0", {"spec": {"unschedulable": True}})
        await world.clock.sleep(5)
        assert sorted(places(world).values()) == ["train-0", "train-1", "train-2"]
        on_first = next(name for name, node in places(world).items() if node == "train-0")
        world.person("admin").delete(PODS, on_first, "default")
        await world.clock.sleep(5)
        assert sorted(places(world).values()) == ["train-0", "train-1", "train-2"]
        assert on_first not in places(world)
        assert status(world, DAEMON_SETS, "d")["numberReady"] == 3


async def test_a_deployment_replaces_an_evicted_pod_elsewhere():
    async with running_world(TRAIN, prepare=creating((DEPLOYMENTS, replicated("web", 3, app="web")))) as world:
        await world.clock.sleep(5)
        name, node = next(iter(places(world).items()))
        world.person("admin").merge(NODES, node, {"spec": {"unschedulable": True}})
        world.person("admin").evict(name, "default")
        await world.clock.sleep(5)
        assert len(phases(world)) == 3
        assert name not in phases(world)
        assert status(world, DEPLOYMENTS, "web")["readyReplicas"] == 3


async def test_a_stateful_set_never_runs_the_same_name_twice():
    async with running_world(TRAIN, prepare=creating((STATEFUL_SETS, replicated("db", 2, app="db")))) as world:
        await world.clock.sleep(10)
        assert phases(world) == {"db-0": "Running", "db-1": "Running"}
        node = places(world)["db-1"]
        world.machine(node).power_off()
        world.person("admin").delete(PODS, "db-1", "default")
        await world.clock.sleep(120)
        assert places(world)["db-1"] == node  # it may still run there: nothing takes its name
        world.person("admin").delete(PODS, "db-1", "default", grace=0)
        await world.clock.sleep(10)
        assert places(world)["db-1"] != node


# --- budgets


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        pytest.param({"minAvailable": 2}, 1, id="count"),
        pytest.param({"minAvailable": 3}, 0, id="all"),
        pytest.param({"minAvailable": "50%"}, 1, id="percent is rounded up"),
        pytest.param({"maxUnavailable": 1}, 1, id="max unavailable"),
        pytest.param({"maxUnavailable": 0}, 0, id="none unavailable"),
    ],
)
async def test_a_budget_says_how_many_may_go(spec, allowed):
    things = (DEPLOYMENTS, replicated("web", 3, app="web")), (BUDGETS, budget(**spec))
    async with running_world(TRAIN, prepare=creating(*things)) as world:
        await world.clock.sleep(5)
        assert status(world, BUDGETS, "b")["disruptionsAllowed"] == allowed


async def test_a_budget_refuses_a_second_eviction_until_the_first_is_replaced():
    things = (DEPLOYMENTS, replicated("web", 3, app="web")), (BUDGETS, budget(minAvailable=2))
    async with running_world(TRAIN, prepare=creating(*things)) as world:
        await world.clock.sleep(5)
        first, second, _ = sorted(phases(world))
        world.person("admin").evict(first, "default")
        with pytest.raises(StatusError, match="disruption budget"):
            world.person("admin").evict(second, "default")
        await world.clock.sleep(10)
        world.person("admin").evict(second, "default")
        await world.clock.sleep(10)
        assert {first, second}.isdisjoint(phases(world))


async def test_a_pod_on_a_silent_node_no_longer_counts_as_healthy():
    things = (DEPLOYMENTS, replicated("web", 3, app="web")), (BUDGETS, budget(minAvailable=2))
    async with running_world(TRAIN, prepare=creating(*things)) as world:
        await world.clock.sleep(5)
        world.machine("train-0").set_heartbeat(False)
        await world.clock.sleep(60)
        assert status(world, BUDGETS, "b")["disruptionsAllowed"] == 0
