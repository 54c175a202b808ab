"""PUT, and what all updates have in common: versions, what may not change, writes that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.server import NODES, Server


async def test_a_stale_version_is_a_conflict(server: Server) -> None:
    path = await server.node()
    name = path.rpartition("/")[2]
    stale = (await server.get(path)).body
    await server.patch("merge", path, {"metadata": {"labels": {"a": "b"}}})
    answer = await server.put(path, stale)
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message == (
        f'Operation cannot be fulfilled on nodes "{name}": the object has been modified; please apply your changes to'
        " the latest version and try again"
    )
    assert (await server.get(path)).body["metadata"]["labels"] == {"a": "b"}


async def test_a_node_without_a_version_is_replaced(server: Server) -> None:
    path = await server.node()
    name = path.rpartition("/")[2]
    answer = await server.put(path, {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": {"unschedulable": True}})
    assert (answer.code, answer.body["spec"]["unschedulable"]) == (200, True)
    assert answer.body["metadata"]["labels"] == {"a": "b"}


async def test_a_lease_without_a_version_is_not_replaced_but_may_be_created(server: Server) -> None:
    namespace = await server.namespace()
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/l"
    created = await server.put(path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    assert (created.code, created.body["spec"]["holderIdentity"]) == (201, "a")
    refused = await server.put(path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}})
    assert (refused.code, {cause[1] for cause in refused.causes}) == (422, {"metadata.resourceVersion"})
    body = created.body | {"spec": {"holderIdentity": "c"}}
    assert (await server.put(path, body)).code == 200


async def test_a_node_is_not_created_by_put(server: Server) -> None:
    name = server.unique("node")
    assert (await server.put(f"{NODES}/{name}", {"metadata": {"name": name}})).code == 404


async def test_the_name_must_be_that_of_the_path(server: Server) -> None:
    path = await server.node()
    name = path.rpartition("/")[2]
    answer = await server.put(path, {"metadata": {"name": "other"}})
    assert answer.code == 400
    assert answer.message == f"the name of the object (other) does not match the name on the URL ({name})"


async def test_another_uid_is_a_conflict(server: Server) -> None:
    path = await server.node()
    name = path.rpartition("/")[2]
    answer = await server.put(path, {"metadata": {"name": name, "uid": "another"}})
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: another" in answer.message


async def test_a_write_that_changes_nothing_makes_no_version(server: Server) -> None:
    path = await server.node(spec={"unschedulable": True})
    before = (await server.get(path)).body
    for answer in (
        await server.put(path, before),
        await server.patch("merge", path, {"spec": {"unschedulable": True}}),
        await server.patch("json", path, [{"op": "replace", "path": "/spec/unschedulable", "value": True}]),
    ):
        assert answer.code == 200
        assert answer.body["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("uid", "other"), ("deletionTimestamp", "2001-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 5)],
)
async def test_what_the_server_set_cannot_be_changed(server: Server, field: str, value: Any) -> None:
    path = await server.node()
    answer = await server.patch("merge", path, {"metadata": {field: value}})
    assert answer.code == 422
    assert {(cause[0], cause[1]) for cause in answer.causes} == {("FieldValueInvalid", f"metadata.{field}")}


async def test_another_creation_time_is_ignored(server: Server) -> None:
    path = await server.node()
    before = (await server.get(path)).body["metadata"]["creationTimestamp"]
    answer = await server.patch("merge", path, {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})
    assert (answer.code, answer.body["metadata"]["creationTimestamp"]) == (200, before)


async def test_provider_id_is_set_once(server: Server) -> None:
    path = await server.node()
    assert (await server.patch("merge", path, {"spec": {"providerID": "x://1"}})).code == 200
    answer = await server.patch("merge", path, {"spec": {"providerID": "x://2"}})
    assert answer.code == 422
    assert {cause[1] for cause in answer.causes} == {"spec.providerID"}


async def test_generation_counts_changes_of_the_spec(server: Server) -> None:
    namespace = await server.namespace()
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    made = await server.made(path, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}})
    assert made["metadata"]["generation"] == 1
    labelled = await server.patch("merge", f"{path}/b", {"metadata": {"labels": {"a": "b"}}})
    changed = await server.patch("merge", f"{path}/b", {"spec": {"minAvailable": 2}})
    status = await server.patch("merge", f"{path}/b/status", {"status": {"disruptionsAllowed": 3}})
    generations = [answer.body["metadata"]["generation"] for answer in (labelled, changed, status)]
    assert generations == [1, 2, 2]


async def test_a_bound_pod_stays_where_it_is(server: Server) -> None:
    namespace = await server.namespace()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"nodeName": "n1", "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}
    await server.made(pods, {"metadata": {"name": "p"}, "spec": spec})
    for change in ({"nodeName": "n2"}, {"terminationGracePeriodSeconds": 5}, {"priority": 7}):
        answer = await server.patch("merge", f"{pods}/p", {"spec": change})
        assert (answer.code, {cause[1] for cause in answer.causes}) == (422, {"spec"}), change
    image = await server.patch("strategic", f"{pods}/p", {"spec": {"containers": [{"name": "c", "image": "j"}]}})
    assert image.body["spec"]["containers"][0]["image"] == "j"


@pytest.mark.parametrize(
    ("taints", "reason", "field"),
    [
        pytest.param([{"key": "a"}], "FieldValueRequired", "metadata.taints[0].effect", id="no effect"),
        pytest.param([{"key": "a", "effect": "X"}], "FieldValueNotSupported", "metadata.taints[0].effect", id="effect"),
        pytest.param([{"effect": "NoSchedule"}], "FieldValueInvalid", "metadata.taints[0].key", id="no key"),
        pytest.param([{"key": "a b", "effect": "NoSchedule"}], "FieldValueInvalid", "metadata.taints[0].key", id="key"),
        pytest.param(
            [{"key": "a", "value": "-", "effect": "NoSchedule"}],
            "FieldValueInvalid",
            "metadata.taints[0].value",
            id="value",
        ),
        pytest.param(
            [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "x"}],
            "FieldValueDuplicate",
            "metadata.taints[1]",
            id="twice the same",
        ),
    ],
)
async def test_taints_are_checked(server: Server, taints: list[dict[str, str]], reason: str, field: str) -> None:
    path = await server.node()
    answer = await server.patch("merge", path, {"spec": {"taints": taints}})
    assert (answer.code, {cause[:2] for cause in answer.causes}) == (422, {(reason, field)})


async def test_scale_is_the_number_of_replicas(server: Server) -> None:
    namespace = await server.namespace()
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await server.made(path, {"metadata": {"name": "d"}, "spec": spec})
    scale = (await server.get(f"{path}/d/scale")).body
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 0, "selector": "a=b"})
    scale["spec"]["replicas"] = 4
    assert (await server.put(f"{path}/d/scale", scale)).body["spec"] == {"replicas": 4}
    assert (await server.put(f"{path}/d/scale", scale | {"spec": {"replicas": 5}})).code == 409
    merged = await server.patch("merge", f"{path}/d/scale", {"spec": {"replicas": 2}})
    assert merged.body["spec"] == {"replicas": 2}
    refused = await server.patch("merge", f"{path}/d/scale", {"spec": {"replicas": -1}})
    assert (refused.code, {cause[1] for cause in refused.causes}) == (422, {"spec.replicas"})
    assert (await server.get(f"{path}/d")).body["spec"]["replicas"] == 2
    assert (await server.get(f"{path}/nobody/scale")).code == 404
