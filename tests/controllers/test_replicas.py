"""DaemonSets, Deployments, ReplicaSets and StatefulSets."""

from __future__ import annotations

import pytest

from tests.controllers.made import replicated

EVERYTHING = [{"operator": "Exists"}]


async def covered(cluster):
    return sorted((await cluster.running()).values())


async def test_a_daemon_set_is_everywhere_cordoned_nodes_included(cluster):
    first, second = await cluster.nodes(2)
    await cluster.patch_node(first, {"spec": {"unschedulable": True}})
    await cluster.make("daemonsets", replicated(cluster, "d"))
    await cluster.until(lambda: covered(cluster), sorted([first, second]))
    (late,) = await cluster.nodes(1)
    await cluster.until(lambda: covered(cluster), sorted([first, second, late]))

    async def counted():
        status = await cluster.status("daemonsets", "d")
        words = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable")
        return [status.get(word, 0) for word in (*words, "numberUnavailable", "numberMisscheduled")]

    await cluster.until(counted, [3, 3, 3, 3, 0, 0])


async def test_a_pod_of_a_daemon_set_comes_back_to_its_node(cluster):
    (node,) = await cluster.nodes(1)
    await cluster.patch_node(node, {"spec": {"unschedulable": True}})
    await cluster.make("daemonsets", replicated(cluster, "d"))
    (name,) = await cluster.until(cluster.running)
    assert (await cluster.evict(name)).code == 201

    async def another():
        names = set(await cluster.running())
        return len(names) == 1 and name not in names

    await cluster.until(another)
    assert await covered(cluster) == [node]


@pytest.mark.parametrize(
    ("tolerations", "there"), [pytest.param([], False, id="not"), pytest.param(EVERYTHING, True, id="tolerated")]
)
async def test_a_taint_keeps_a_daemon_set_away_unless_it_tolerates_it(cluster, tolerations, there):
    (tainted,) = await cluster.nodes(1, taints=({"key": "x", "effect": "NoSchedule"},))
    (free,) = await cluster.nodes(1)
    await cluster.make("daemonsets", replicated(cluster, "d", pod={"tolerations": tolerations}))
    await cluster.until(lambda: covered(cluster), sorted([tainted, free]) if there else [free])
    await cluster.stays(lambda: covered(cluster), sorted([tainted, free]) if there else [free])


async def test_a_no_execute_taint_ends_a_daemon_set_s_pod_and_keeps_it_away(cluster):
    (node,) = await cluster.nodes(1)
    await cluster.make("daemonsets", replicated(cluster, "d"))
    await cluster.until(lambda: covered(cluster), [node])
    await cluster.patch_node(node, {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})
    await cluster.until(cluster.pods, [])
    await cluster.patch_node(node, {"spec": {"taints": None}})
    await cluster.until(lambda: covered(cluster), [node])


async def test_a_daemon_set_stays_on_a_node_that_is_not_ready(cluster):
    (node,) = await cluster.nodes(1)
    await cluster.make("daemonsets", replicated(cluster, "d"))
    await cluster.until(lambda: covered(cluster), [node])
    cluster.machines[node].set_service("containerd", "hung")
    await cluster.until(lambda: cluster.taints(node))
    await cluster.stays(lambda: covered(cluster), [node])


async def test_an_evicted_replica_is_replaced_elsewhere(cluster):
    first, second = await cluster.nodes(2)
    await cluster.make("deployments", replicated(cluster, "web", 2))

    async def both():
        return len(await cluster.running()) == 2

    await cluster.until(both)
    await cluster.patch_node(first, {"spec": {"unschedulable": True}})
    for name, node in (await cluster.running()).items():
        if node == first:
            assert (await cluster.evict(name)).code == 201
    await cluster.until(lambda: covered(cluster), [second, second])

    async def counted():
        status = await cluster.status("deployments", "web")
        return [status.get(word, 0) for word in ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas")]

    await cluster.until(counted, [2, 2, 2, 2])


@pytest.mark.parametrize(
    ("kind", "count"), [("replicasets", 3), ("replicasets", 1), ("deployments", 3), ("deployments", 0)]
)
async def test_the_number_of_replicas_can_be_changed(cluster, kind, count):
    await cluster.nodes(1)
    await cluster.make(kind, replicated(cluster, "web", 2))

    async def number():
        return len(await cluster.running()), len(await cluster.pods())

    await cluster.until(number, (2, 2))
    await cluster.patch(kind, "web", {"spec": {"replicas": count}})
    await cluster.until(number, (count, count))


async def test_a_failed_replica_is_replaced(cluster):
    """A node that kills it, for want of memory say, leaves a pod that has failed."""
    await cluster.nodes(1)
    await cluster.make("replicasets", replicated(cluster, "web", 1))
    (name,) = await cluster.until(cluster.running)
    (pod,) = await cluster.pods()
    path = f"{cluster.path('pods', pod['metadata']['name'])}/status"
    assert (await cluster.server.patch("merge", path, {"status": {"phase": "Failed"}})).code == 200

    async def another():
        return name not in await cluster.running() and len(await cluster.running()) == 1

    await cluster.until(another)


async def test_a_changed_template_replaces_the_pods_one_after_the_other(cluster):
    await cluster.nodes(1)
    await cluster.make("deployments", replicated(cluster, "web", 2))

    async def versions():
        pods = [p for p in await cluster.living() if p["status"].get("phase") == "Running"]
        return sorted(p["metadata"]["labels"].get("version", "1") for p in pods)

    await cluster.until(versions, ["1", "1"])
    await cluster.patch("deployments", "web", {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})
    await cluster.until(versions, ["2", "2"])

    async def sets():
        answer = await cluster.server.get(cluster.path("replicasets"))
        return sorted(item["spec"]["replicas"] for item in answer.body["items"])

    await cluster.until(sets, [0, 2])


async def test_a_stateful_set_starts_in_order_and_replaces_by_name(cluster):
    await cluster.nodes(1)
    await cluster.make("statefulsets", replicated(cluster, "db", 2, serviceName="db"))

    async def names():
        return sorted(await cluster.running())

    await cluster.until(names, ["db-0", "db-1"])
    first, second = [(await cluster.get("pods", f"db-{k}"))["metadata"] for k in (0, 1)]
    assert first["creationTimestamp"] <= second["creationTimestamp"]
    assert first["labels"]["apps.kubernetes.io/pod-index"] == "0"
    assert first["labels"]["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert (await cluster.evict("db-0")).code == 201

    async def another():
        found = await cluster.get("pods", "db-0")
        return bool(found) and found["metadata"]["uid"] != first["uid"] and "db-0" in await cluster.running()

    await cluster.until(another)
