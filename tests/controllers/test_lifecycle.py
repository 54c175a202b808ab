"""Nodes that fall silent, taints, and what happens to the pods there."""

from __future__ import annotations

import pytest

from tests.controllers.cluster import condition
from tests.controllers.made import pod

UNREACHABLE = {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
NOT_READY = {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}


def bears(seconds=None):
    """Tolerations of a pod that stays so long on a node that is gone; None = for ever."""
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return [{"key": key, "operator": "Exists", "effect": "NoExecute", **limit} for key in keys]


async def leaving(cluster, name):
    found = await cluster.get("pods", name)
    return not found or bool(found["metadata"].get("deletionTimestamp"))


async def test_a_silent_node_turns_unknown_and_its_pods_leave_as_they_tolerate(cluster):
    (node,) = await cluster.nodes(1)
    await cluster.nodes(1)  # where no node is ready none is given up
    place = {"nodeSelector": {"kubernetes.io/hostname": node}}
    await cluster.make("pods", pod(cluster, "leaves", tolerations=bears(1), **place))
    await cluster.make("pods", pod(cluster, "stays", tolerations=bears(), **place))
    await cluster.until(cluster.running, {"leaves": node, "stays": node})
    cluster.machines[node].go_down()

    async def word():
        ready = await cluster.condition_of_node(node)
        return ready["status"], ready["reason"], ready["message"]

    await cluster.until(word, ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."))
    assert (await cluster.condition_of_node(node, "DiskPressure"))["status"] == "Unknown"
    await cluster.until(lambda: cluster.taints(node), UNREACHABLE)

    async def ready_of_pod():
        return condition(await cluster.get("pods", "stays"), "Ready").get("status")

    await cluster.until(ready_of_pod, "False")
    await cluster.until(lambda: leaving(cluster, "leaves"))
    gone = await cluster.get("pods", "leaves")
    assert condition(gone, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    assert gone["status"]["phase"] == "Running"  # nobody there who could say otherwise
    assert not await leaving(cluster, "stays")
    cluster.machines[node].reboot()
    await cluster.until(lambda: cluster.taints(node), set())
    assert (await cluster.condition_of_node(node))["status"] == "True"

    async def only_one_left():
        return {p["metadata"]["name"] for p in await cluster.pods()}

    await cluster.until(only_one_left, {"stays"})


async def test_a_kubelet_that_says_not_ready_gets_other_taints_at_once(cluster):
    node, _ = await cluster.nodes(2)
    cluster.machines[node].set_service("containerd", "hung")
    await cluster.until(lambda: cluster.taints(node), NOT_READY)
    assert (await cluster.condition_of_node(node))["status"] == "False"
    cluster.machines[node].set_service("containerd", "active")
    await cluster.until(lambda: cluster.taints(node), set())


async def test_where_no_node_is_ready_none_is_given_up(cluster):
    """Then it is more likely that the controller cannot see."""
    nodes = await cluster.nodes(2)
    for node in nodes:
        cluster.machines[node].go_down()
    for node in nodes:
        await cluster.until(lambda node=node: _unknown(cluster, node))

    async def given_up():
        return [effect for node in nodes for _, effect in await cluster.taints(node) if effect == "NoExecute"]

    # Between the first and the last to fall silent some are given up; that is taken back.
    await cluster.clock.sleep(2 * cluster.calm)
    await cluster.until(lambda: _nobody(given_up))
    await cluster.stays(given_up, [])


async def _unknown(cluster, node):
    return (await cluster.condition_of_node(node))["status"] == "Unknown"


async def _nobody(given_up):
    return await given_up() == []


async def test_a_pod_gets_five_minutes_on_a_node_that_is_gone(cluster):
    await cluster.nodes(1)
    await cluster.make("pods", pod(cluster, "p"))
    tolerations = (await cluster.get("pods", "p"))["spec"]["tolerations"]
    assert [t["tolerationSeconds"] for t in tolerations] == [300, 300]


async def test_a_cordon_is_a_taint_too(cluster):
    (node,) = await cluster.nodes(1)
    await cluster.patch_node(node, {"spec": {"unschedulable": True}})
    await cluster.until(lambda: cluster.taints(node), {("unschedulable", "NoSchedule")})
    await cluster.patch_node(node, {"spec": {"unschedulable": False}})
    await cluster.until(lambda: cluster.taints(node), set())


async def test_the_taints_of_others_are_left_alone(cluster):
    (node,) = await cluster.nodes(1, taints=({"key": "theirs", "effect": "NoSchedule"},))
    await cluster.nodes(1)
    cluster.machines[node].set_service("containerd", "hung")
    await cluster.until(lambda: cluster.taints(node), {("theirs", "NoSchedule"), *NOT_READY})
    cluster.machines[node].set_service("containerd", "active")
    await cluster.until(lambda: cluster.taints(node), {("theirs", "NoSchedule")})


@pytest.mark.parametrize(
    ("tolerations", "stays"),
    [
        pytest.param([], False, id="none"),
        pytest.param([{"key": "x", "operator": "Exists"}], True, id="tolerated"),
        pytest.param(
            [{"key": "x", "operator": "Exists", "tolerationSeconds": 1, "effect": "NoExecute"}], False, id="a while"
        ),
        pytest.param([{"key": "x", "operator": "Exists", "effect": "NoSchedule"}], False, id="another effect"),
    ],
)
async def test_a_no_execute_taint_ends_pods_that_do_not_tolerate_it(cluster, tolerations, stays):
    (node,) = await cluster.nodes(1)
    await cluster.make("pods", pod(cluster, "p", tolerations=tolerations))
    await cluster.until(cluster.running, {"p": node})
    await cluster.patch_node(node, {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})
    if stays:
        await cluster.stays(cluster.running, {"p": node})
    else:
        await cluster.until(lambda: leaving(cluster, "p"))


async def test_a_no_schedule_taint_ends_nobody(cluster):
    (node,) = await cluster.nodes(1)
    await cluster.make("pods", pod(cluster, "p"))
    await cluster.until(cluster.running, {"p": node})
    await cluster.patch_node(node, {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})
    await cluster.stays(cluster.running, {"p": node})


async def test_a_taint_that_goes_in_time_ends_nobody(cluster):
    (node,) = await cluster.nodes(1)
    once = {"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
    await cluster.make("pods", pod(cluster, "p", tolerations=[once]))
    await cluster.until(cluster.running, {"p": node})
    await cluster.patch_node(node, {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})
    await cluster.until(lambda: cluster.taints(node), {("x", "NoExecute")})
    await cluster.patch_node(node, {"spec": {"taints": None}})
    await cluster.until(lambda: cluster.taints(node), set())
    await cluster.clock.sleep(2)
    assert not await leaving(cluster, "p")
