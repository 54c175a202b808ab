"""The status endpoint and the main one keep out of each other's fields."""

from __future__ import annotations

from tests.conformance.server import Server

READY = {"type": "Ready", "status": "True"}


async def test_the_main_endpoint_leaves_status_alone(server: Server) -> None:
    path = await server.node(status={"phase": "Running"})
    answer = await server.patch("merge", path, {"status": {"phase": "Pending"}, "spec": {"unschedulable": True}})
    assert answer.body["status"]["phase"] == "Running"
    assert answer.body["spec"]["unschedulable"] is True


async def test_the_status_endpoint_leaves_spec_alone(server: Server) -> None:
    path = await server.node()
    body = {"status": {"phase": "Running"}, "spec": {"unschedulable": True}}
    answer = await server.patch("merge", f"{path}/status", body)
    assert answer.body["status"]["phase"] == "Running"
    assert "unschedulable" not in answer.body["spec"]


async def test_the_status_endpoint_of_a_node_takes_labels_and_annotations(server: Server) -> None:
    path = await server.node()
    body = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    answer = await server.patch("merge", f"{path}/status", body)
    assert answer.body["metadata"]["labels"] == {"a": "b"}
    assert answer.body["metadata"]["annotations"] == {"c": "d"}


async def test_the_status_endpoint_of_a_pod_takes_labels_but_no_owners(server: Server) -> None:
    namespace = await server.namespace()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}
    await server.made(pods, {"metadata": {"name": "p"}, "spec": spec})
    owner = {"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "y"}
    body = {"metadata": {"labels": {"a": "b"}, "ownerReferences": [owner]}, "spec": {"nodeName": "n"}}
    answer = await server.patch("strategic", f"{pods}/p/status", body | {"status": {"conditions": [READY]}})
    assert answer.body["metadata"]["labels"] == {"a": "b"}
    assert "ownerReferences" not in answer.body["metadata"]
    assert "nodeName" not in answer.body["spec"]
    assert [entry["type"] for entry in answer.body["status"]["conditions"]] == ["Ready"]


async def test_status_can_be_read_alone(server: Server) -> None:
    path = await server.node(status={"phase": "Running"})
    answer = await server.get(f"{path}/status")
    assert (answer.code, answer.body["kind"], answer.body["status"]["phase"]) == (200, "Node", "Running")
