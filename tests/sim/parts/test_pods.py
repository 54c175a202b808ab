"""Hollow pods and the scheduler."""

from __future__ import annotations

import pytest

from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import NODES, PODS, condition_of
from tests.support.simworld import phases, places, pod, running_world

TRAIN = PoolSpec("train", nodes=2, gpus=8)


def having(*pods, namespace="default"):
    def prepare(world):
        for manifest in pods:
            world.person("admin").create(PODS, manifest, namespace)

    return prepare


def get(world, name):
    return world.store.find(PODS, name, "default")


async def test_a_pod_is_bound_at_once_and_runs_a_second_later():
    async with running_world(TRAIN, prepare=having(pod("p", "train-1", gpus=8))) as world:
        assert places(world) == {"p": "train-1"}
        assert phases(world) == {"p": "Pending"}
        await world.clock.sleep(1.5)
        assert phases(world) == {"p": "Running"}
        assert condition_of(get(world, "p"), "Ready")["status"] == "True"


async def test_a_pod_runs_for_as_long_as_its_annotation_says():
    annotations = {"sim.sickbay.dev/run-for": "90s"}
    async with running_world(TRAIN, prepare=having(pod("p", annotations=annotations))) as world:
        await world.clock.sleep(90)
        assert phases(world) == {"p": "Running"}
        await world.clock.sleep(2)
        assert phases(world) == {"p": "Succeeded"}


@pytest.mark.parametrize(
    ("policy", "code", "phase", "restarts"),
    [
        pytest.param("Never", 0, "Succeeded", 0, id="never-0"),
        pytest.param("Never", 3, "Failed", 0, id="never-3"),
        pytest.param("OnFailure", 0, "Succeeded", 0, id="onfailure-0"),
        pytest.param("OnFailure", 3, "Running", 1, id="onfailure-3"),
        pytest.param("Always", 0, "Running", 1, id="always-0"),
    ],
)
async def test_what_an_exit_does_depends_on_the_restart_policy(policy, code, phase, restarts):
    async with running_world(TRAIN, prepare=having(pod("p", restartPolicy=policy))) as world:
        await world.clock.sleep(5)
        world.kubelet.exit_pod(get(world, "p"), code, log="boom")
        await world.clock.sleep(15)
        assert phases(world) == {"p": phase}
        assert get(world, "p")["status"]["containerStatuses"][0]["restartCount"] == restarts


async def test_an_exit_leaves_code_signal_reason_and_log_in_the_status():
    async with running_world(TRAIN, prepare=having(pod("p"))) as world:
        await world.clock.sleep(5)
        world.kubelet.exit_pod(get(world, "p"), 139, signal=11, reason="OOMKilled", log="NCCL error")
        ended = get(world, "p")["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["signal"], ended["reason"]) == (139, 11, "OOMKilled")
        assert ended["message"] == "NCCL error"


@pytest.mark.parametrize(
    ("takes", "grace", "seconds"),
    [
        pytest.param(None, 30, 1, id="quick"),
        pytest.param("20s", 30, 20, id="slow"),
        pytest.param("1h", 30, 30, id="killed when the grace is over"),
    ],
)
async def test_a_deleted_pod_goes_when_it_has_stopped_or_its_grace_is_over(takes, grace, seconds):
    annotations = {"sim.sickbay.dev/stop-takes": takes} if takes else {}
    manifest = pod("p", annotations=annotations, terminationGracePeriodSeconds=grace)
    async with running_world(TRAIN, prepare=having(manifest)) as world:
        await world.clock.sleep(5)
        world.person("admin").delete(PODS, "p", "default")
        await world.clock.sleep(seconds - 0.5)
        assert "deletionTimestamp" in get(world, "p")["metadata"]
        await world.clock.sleep(1)
        assert get(world, "p") is None


async def test_a_pod_on_a_node_that_is_down_is_deleted_only_when_its_kubelet_is_back():
    async with running_world(TRAIN, prepare=having(pod("p", "train-0"))) as world:
        await world.clock.sleep(5)
        world.machine("train-0").reboot()
        world.person("admin").delete(PODS, "p", "default")
        await world.clock.sleep(170)
        assert get(world, "p") is not None
        await world.clock.sleep(15)
        assert get(world, "p") is None


async def test_a_boot_fails_pods_that_may_not_restart_and_restarts_the_others():
    pods = pod("never", "train-0"), pod("always", "train-0", restartPolicy="Always")
    async with running_world(TRAIN, prepare=having(*pods)) as world:
        await world.clock.sleep(5)
        world.machine("train-0").reboot()
        await world.clock.sleep(200)
        assert phases(world) == {"never": "Failed", "always": "Running"}


async def test_the_scheduler_spreads_by_free_gpus_and_says_why_nothing_fits():
    pods = [pod(f"p{k}", gpus=8) for k in range(3)]
    async with running_world(TRAIN, prepare=having(*pods)) as world:
        await world.clock.sleep(2)
        assert sorted(places(world).values()) == ["train-0", "train-1"]
        (waiting,) = {"p0", "p1", "p2"} - places(world).keys()
        condition = condition_of(get(world, waiting), "PodScheduled")
        assert condition["reason"] == "Unschedulable"
        assert "2 Insufficient nvidia.com/gpu" in condition["message"]


async def test_a_waiting_pod_is_bound_when_room_becomes_free():
    pods = [pod(f"p{k}", gpus=8) for k in range(3)]
    async with running_world(TRAIN, prepare=having(*pods)) as world:
        await world.clock.sleep(5)
        (waiting,) = {"p0", "p1", "p2"} - places(world).keys()
        leaving = next(name for name, node in places(world).items() if node == "train-1")
        world.person("admin").delete(PODS, leaving, "default")
        await world.clock.sleep(2)
        assert places(world)[waiting] == "train-1"


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"spec": {"unschedulable": True}}, id="cordon"),
        pytest.param({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, id="taint"),
    ],
)
async def test_nothing_new_lands_on_a_node_that_is_closed(patch):
    async with running_world(TRAIN) as world:
        world.person("admin").merge(NODES, "train-0", patch)
        for k in range(4):
            world.person("admin").create(PODS, pod(f"p{k}", gpus=1), "default")
        await world.clock.sleep(2)
        assert set(places(world).values()) == {"train-1"}


async def test_a_node_to_be_avoided_is_used_only_when_nothing_else_fits():
    avoid = [{"key": "k", "effect": "PreferNoSchedule"}]
    async with running_world(TRAIN) as world:
        world.person("admin").merge(NODES, "train-0", {"spec": {"taints": avoid}})
        for k in range(3):
            world.person("admin").create(PODS, pod(f"p{k}", gpus=4), "default")
        await world.clock.sleep(2)
        assert sorted(places(world).values()) == ["train-0", "train-1", "train-1"]


AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["train-0"]}]}
            ]
        }
    }
}


async def test_required_node_affinity_is_obeyed():
    pods = [pod(f"p{k}", affinity=AFFINITY) for k in range(3)]
    async with running_world(TRAIN, prepare=having(*pods)) as world:
        await world.clock.sleep(2)
        assert set(places(world).values()) == {"train-1"}
