"""The disruption controller: what the status of a budget says, and what the eviction API takes from it."""

from __future__ import annotations

import pytest

from tests.controllers.made import pod, replicated

SELECTOR = {"matchLabels": {"app": "web"}}
WORDS = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")


async def counts(cluster):
    status = await cluster.status("budgets", "b")
    return [status.get(word, 0) for word in WORDS]


async def budget(cluster, **spec):
    await cluster.make("budgets", {"metadata": {"name": "b"}, "spec": {"selector": SELECTOR, **spec}})


async def replicas(cluster, count):
    await cluster.make("deployments", replicated(cluster, "web", count, stop_takes="1h"))

    async def all_there():
        return len(await cluster.running()) == count

    await cluster.until(all_there)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        pytest.param({"minAvailable": 2}, [3, 3, 2, 1], id="count"),
        pytest.param({"minAvailable": 4}, [3, 3, 4, 0], id="more than there are"),
        pytest.param({"minAvailable": "50%"}, [3, 3, 2, 1], id="percent"),
        pytest.param({"maxUnavailable": 1}, [3, 3, 2, 1], id="max unavailable"),
        pytest.param({"maxUnavailable": "50%"}, [3, 3, 1, 2], id="max unavailable in percent"),
        pytest.param({"maxUnavailable": 0}, [3, 3, 3, 0], id="none"),
    ],
)
async def test_a_budget_counts(cluster, spec, wanted):
    await cluster.nodes(1)
    await replicas(cluster, 3)
    await budget(cluster, **spec)
    await cluster.until(lambda: counts(cluster), wanted)


async def test_pods_without_a_controller_count_for_a_number_only(cluster):
    await cluster.nodes(1)
    await cluster.make("pods", *(pod(cluster, f"p-{k}", labels={"app": "web"}) for k in range(2)))
    await budget(cluster, minAvailable=1)
    await cluster.until(lambda: counts(cluster), [2, 2, 1, 1])


async def test_an_eviction_takes_from_the_budget_until_the_pod_is_replaced(cluster):
    (node,) = await cluster.nodes(1)
    await replicas(cluster, 3)
    await budget(cluster, minAvailable=2)
    await cluster.until(lambda: counts(cluster), [3, 3, 2, 1])
    # Cordoned, so that no replacement runs before the second is asked for.
    await cluster.patch_node(node, {"spec": {"unschedulable": True}})
    await cluster.until(lambda: cluster.taints(node), {("unschedulable", "NoSchedule")})
    first, second, _ = sorted(await cluster.running())
    assert (await cluster.evict(first)).code == 201
    refused = await cluster.evict(second)
    assert refused.code == 429
    assert "disruption budget" in refused.message
    await cluster.patch_node(node, {"spec": {"unschedulable": False}})

    async def replaced():
        return len([name for name in await cluster.running() if name != first]) == 3

    await cluster.until(replaced)

    async def allowed():
        return (await cluster.evict(second)).code

    await cluster.until(allowed, 201)


async def test_a_pod_on_a_silent_node_is_not_healthy(cluster):
    lost, *_ = await cluster.nodes(2)
    place = {"nodeSelector": {"kubernetes.io/hostname": lost}}
    await cluster.make("pods", pod(cluster, "p-0", labels={"app": "web"}, **place))
    await cluster.until(cluster.running, {"p-0": lost})
    await budget(cluster, minAvailable=1)
    await cluster.until(lambda: counts(cluster), [1, 1, 1, 0])
    cluster.machines[lost].go_down()
    await cluster.until(lambda: counts(cluster), [1, 0, 1, 0])


async def test_a_pod_that_is_not_healthy_may_go_where_the_others_suffice(cluster):
    await cluster.nodes(1)
    await cluster.make("pods", pod(cluster, "well", labels={"app": "web"}))
    await cluster.make("pods", pod(cluster, "waits", labels={"app": "web"}, gpus=9))
    await budget(cluster, minAvailable=1)
    await cluster.until(lambda: counts(cluster), [2, 1, 1, 0])
    assert (await cluster.evict("waits")).code == 201
    assert (await cluster.evict("well")).code == 429
