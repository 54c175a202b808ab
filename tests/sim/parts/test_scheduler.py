"""Gangs, and what a pod that fits nowhere is told. What the real scheduler does too is in tests/controllers."""

from __future__ import annotations

import pytest

from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import JOBS, NODES, PODS, condition_of
from tests.support.simworld import places, pod, running_world

TRAIN = PoolSpec("train", nodes=3, gpus=8, rack=1)
PRIORITIES = "priorityclasses.scheduling.k8s.io"
COSCHEDULING = "scheduling.x-k8s.io/pod-group"
CRD = "customresourcedefinitions.apiextensions.k8s.io"


def creating(*manifests, resource=PODS):
    def prepare(world):
        for manifest in manifests:
            world.person("admin").create(resource, manifest, "default")

    return prepare


def rank(index, gang="g", gpus=8, size="4", **spec):
    labels = {COSCHEDULING: gang, "pod-group.scheduling.sigs.k8s.io/min-available": size}
    return pod(f"{gang}-{index}", gpus=gpus, labels=labels, **spec)


def why(world, name):
    return condition_of(world.store.get(PODS, name, "default"), "PodScheduled")["message"]


async def test_a_gang_that_does_not_fit_as_a_whole_takes_no_node_at_all():
    async with running_world(TRAIN, prepare=creating(*map(rank, range(4)), pod("single", gpus=8))) as world:
        assert set(places(world)) == {"single"}
        assert 'pod group "g" of 4 finds no place as a whole' in why(world, "g-0")
        world.add_nodes("train", 1)
        await world.clock.sleep(5)
        assert set(places(world)) == {"single"}
        world.person("admin").delete(PODS, "single", "default")
        await world.clock.sleep(40)
        assert set(places(world)) == {"g-0", "g-1", "g-2", "g-3"}


async def test_members_wait_until_enough_of_them_exist():
    async with running_world(TRAIN, prepare=creating(rank(0, size="2"))) as world:
        await world.clock.sleep(5)
        assert places(world) == {}
        assert "current pods number: 1, minMember of group: 2" in why(world, "g-0")
        world.person("admin").create(PODS, rank(1, size="2"), "default")
        await world.clock.sleep(1)
        assert set(places(world)) == {"g-0", "g-1"}


async def test_two_gangs_that_want_the_same_nodes_never_hold_half_each():
    mixed = [rank(index, gang, size="3") for index in range(3) for gang in ("a", "b")]
    async with running_world(TRAIN, prepare=creating(*mixed)) as world:
        await world.clock.sleep(5)
        assert {name[0] for name in places(world)} == {"a"}
        for index in range(3):
            world.person("admin").delete(PODS, f"a-{index}", "default")
        await world.clock.sleep(40)
        assert {name[0] for name in places(world)} == {"b"}


async def test_a_member_lost_later_is_replaced_alone():
    async with running_world(TRAIN, prepare=creating(*(rank(i, size="2") for i in range(2)))) as world:
        await world.clock.sleep(5)
        world.person("admin").delete(PODS, "g-0", "default")
        await world.clock.sleep(40)
        world.person("admin").create(PODS, rank(7, size="2"), "default")
        await world.clock.sleep(1)
        assert set(places(world)) == {"g-1", "g-7"}


@pytest.mark.parametrize(
    "mark",
    [
        pytest.param({"labels": {COSCHEDULING: "g"}}, id="coscheduling"),
        pytest.param({"annotations": {"scheduling.k8s.io/group-name": "g"}, "schedulerName": "volcano"}, id="volcano"),
        pytest.param({"schedulingGroup": {"podGroupName": "g"}}, id="kubernetes"),
    ],
)
async def test_the_size_of_a_gang_of_a_job_is_its_parallelism(mark):
    spec = dict(mark)
    marks = {key: spec.pop(key) for key in ("labels", "annotations") if key in spec}
    template = {**pod("ignored", gpus=8, **spec), "metadata": marks}
    job = {"metadata": {"name": "j"}, "spec": {"parallelism": 4, "completions": 4, "template": template}}
    async with running_world(TRAIN, prepare=creating(job, resource=JOBS)) as world:
        await world.clock.sleep(5)
        assert places(world) == {}
        world.add_nodes("train", 1)
        await world.clock.sleep(5)
        assert sorted(places(world).values()) == ["train-0", "train-1", "train-2", "train-3"]


async def test_a_gang_of_higher_priority_preempts_only_when_that_makes_room_for_all_of_it():
    high = {"metadata": {"name": "high"}, "value": 1000}

    def prepare(world):
        world.person("admin").create(PRIORITIES, high)
        creating(*(pod(f"low-{i}", gpus=8) for i in range(3)))(world)

    async with running_world(TRAIN, prepare=prepare) as world:
        await world.clock.sleep(5)
        creating(*(rank(i, priorityClassName="high") for i in range(4)))(world)
        await world.clock.sleep(5)
        assert set(places(world)) == {"low-0", "low-1", "low-2"}
        world.add_nodes("train", 1)
        await world.clock.sleep(40)
        assert set(places(world)) == {"g-0", "g-1", "g-2", "g-3"}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"gpus": 9}, "3 Insufficient nvidia.com/gpu.", id="resources"),
        pytest.param(
            {"nodeSelector": {"a": "b"}}, "3 node(s) didn't match Pod's node affinity/selector.", id="selector"
        ),
    ],
)
async def test_a_pod_that_fits_nowhere_is_told_what_every_node_lacks(spec, reason):
    async with running_world(TRAIN, prepare=creating(pod("p", **spec))) as world:
        assert why(world, "p").startswith(f"0/3 nodes are available: {reason}")
        assert why(world, "p").endswith("3 Preemption is not helpful for scheduling.")


async def test_each_reason_is_counted_over_the_nodes_it_holds_on():
    def prepare(world):
        admin = world.person("admin")
        admin.merge(NODES, "train-0", {"spec": {"unschedulable": True}})
        admin.merge(NODES, "train-1", {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})
        creating(pod("big", node="train-2", gpus=8), pod("p", gpus=1))(world)

    async with running_world(TRAIN, prepare=prepare) as world:
        assert why(world, "p").startswith(
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s),"
            " 1 node(s) were unschedulable."
        )


async def test_spread_counts_only_pods_of_its_selector_in_its_namespace():
    constraint = {
        "maxSkew": 1,
        "topologyKey": "sickbay.dev/rack",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = [pod(f"web-{i}", labels={"app": "web"}, topologySpreadConstraints=[constraint]) for i in range(4)]
    other = [pod(f"other-{i}", node="train-0", labels={"app": "other"}) for i in range(3)]
    async with running_world(TRAIN, prepare=creating(*other, *web)) as world:
        nodes = sorted(node for name, node in places(world).items() if name.startswith("web"))
        assert sorted(nodes.count(f"train-{k}") for k in range(3)) == [1, 1, 2]
