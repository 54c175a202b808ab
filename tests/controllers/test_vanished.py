"""Garbage collection: of objects whose owners go, of pods whose node is gone or out of service."""

from __future__ import annotations

import pytest

from tests.controllers.cluster import STRANDED
from tests.controllers.made import pod, replicated


async def replica_set(cluster, stop_takes=""):
    await cluster.nodes(1)
    await cluster.make("replicasets", replicated(cluster, "web", 2, stop_takes=stop_takes))

    async def both():
        return len(await cluster.running()) == 2

    await cluster.until(both)


async def test_in_the_background_the_owner_goes_first(cluster):
    await replica_set(cluster, "2s")
    await cluster.delete("replicasets", "web", propagationPolicy="Background")
    assert await cluster.get("replicasets", "web") == {}
    await cluster.until(cluster.pods, [])


async def test_in_the_foreground_the_owner_waits_for_what_it_owns(cluster):
    await replica_set(cluster, "2s")
    await cluster.delete("replicasets", "web", propagationPolicy="Foreground")

    async def stops():
        return await cluster.living() == []

    await cluster.until(stops)
    owner = await cluster.get("replicasets", "web")
    assert owner["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert len(await cluster.pods()) == 2

    async def gone():
        return not await cluster.pods() and not await cluster.get("replicasets", "web")

    await cluster.until(gone)


async def test_as_orphans_they_are_cut_loose_and_stay(cluster):
    await replica_set(cluster)
    await cluster.delete("replicasets", "web", propagationPolicy="Orphan")

    async def gone():
        return not await cluster.get("replicasets", "web")

    await cluster.until(gone)
    assert len(await cluster.running()) == 2
    assert [p["metadata"].get("ownerReferences") for p in await cluster.pods()] == [None, None]


@pytest.mark.parametrize(
    ("owners", "stays"),
    [
        pytest.param(["gone"], False, id="the only one is gone"),
        pytest.param(["gone", "there"], True, id="one is still there"),
    ],
)
async def test_an_object_goes_when_the_last_of_its_owners_is_gone(cluster, owners, stays):
    await cluster.make("configmaps", *({"metadata": {"name": name}} for name in ("gone", "there")))
    uids = {name: (await cluster.get("configmaps", name))["metadata"]["uid"] for name in ("gone", "there")}
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uids[name]} for name in owners]
    await cluster.make("configmaps", {"metadata": {"name": "mine", "ownerReferences": references}})
    await cluster.delete("configmaps", "gone")

    async def there():
        return bool(await cluster.get("configmaps", "mine"))

    if stays:
        await cluster.stays(there)
    else:

        async def gone():
            return not await there()

        await cluster.until(gone)


async def test_a_terminating_pod_of_a_node_out_of_service_is_removed(cluster):
    (node,) = await cluster.nodes(1)
    bears = [{"operator": "Exists"}]
    await cluster.make("pods", pod(cluster, "p", tolerations=bears), pod(cluster, "q", tolerations=bears))
    await cluster.until(cluster.running, {"p": node, "q": node})
    cluster.machines[node].go_down()
    await cluster.until(lambda: cluster.taints(node))
    await cluster.delete("pods", "p")
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    answer = await cluster.server.patch(
        "json", f"/api/v1/nodes/{node}", [{"op": "add", "path": "/spec/taints/-", "value": taint}]
    )
    assert answer.code == 200

    async def left():
        return [p["metadata"]["name"] for p in await cluster.pods()]

    await cluster.until(left, ["q"])


async def test_a_pod_of_a_node_that_is_no_more_is_removed(cluster):
    namespace, name = STRANDED
    cluster.patience *= 3

    async def gone():
        return (await cluster.server.get(f"/api/v1/namespaces/{namespace}/pods/{name}")).code

    await cluster.until(gone, 404)
