"""Tables, as kubectl prints them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.server import PARTIAL, TABLE, Server

POD_SPEC: dict[str, Any] = {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"nodeSelector": {"q": "r"}, "containers": [{"name": "c", "image": "i"}]},
}
WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
INFO = {
    "kubeletVersion": "v1.36.3",
    "osImage": "os",
    "kernelVersion": "6.1",
    "containerRuntimeVersion": "containerd://2",
}


async def cells(server: Server, path: str) -> dict[str, Any]:
    """The one row of a table by column, ages left out."""
    table = (await server.get(path, accept=TABLE)).body
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    [row] = table["rows"]
    names = [column["name"] for column in table["columnDefinitions"]]
    return {name: cell for name, cell in zip(names, row["cells"], strict=True) if name not in ("Age", "Created At")}


@pytest.mark.parametrize(
    ("ready", "unschedulable", "expected"),
    [
        ("True", False, "Ready"),
        ("True", True, "Ready,SchedulingDisabled"),
        ("False", False, "NotReady"),
        ("Unknown", True, "NotReady,SchedulingDisabled"),
        ("", False, "Unknown"),
    ],
)
async def test_nodes_show_what_they_are_worth(server: Server, ready: str, unschedulable: bool, expected: str) -> None:
    status: dict[str, Any] = {"nodeInfo": INFO, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}
    if ready:
        status["conditions"] = [{"type": "Ready", "status": ready}]
    labels = {"node-role.kubernetes.io/gpu": "", "node-role.kubernetes.io/big": ""}
    path = await server.node(status=status, labels=labels, spec={"unschedulable": True} if unschedulable else None)
    assert await cells(server, path) == {
        "Name": path.rpartition("/")[2],
        "Status": expected,
        "Roles": "big,gpu",
        "Version": "v1.36.3",
        "Internal-IP": "10.0.0.1",
        "External-IP": "<none>",
        "OS-Image": "os",
        "Kernel-Version": "6.1",
        "Container-Runtime": "containerd://2",
    }


def container(ready: bool, state: dict[str, Any], restarts: int = 0) -> dict[str, Any]:
    return {"name": "c", "ready": ready, "restartCount": restarts, "image": "i", "imageID": "", "state": state}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Running", "containerStatuses": [container(True, {"running": {}}, 0)]}, ("1/1", "Running", "0")),
        (
            {"phase": "Running", "containerStatuses": [container(False, {"waiting": {"reason": "CrashLoopBackOff"}})]},
            ("0/1", "CrashLoopBackOff", "0"),
        ),
        (
            {"phase": "Failed", "containerStatuses": [container(False, {"terminated": {"exitCode": 3}})]},
            ("0/1", "ExitCode:3", "0"),
        ),
        (
            {"phase": "Failed", "containerStatuses": [container(False, {"terminated": {"reason": "OOMKilled"}})]},
            ("0/1", "OOMKilled", "0"),
        ),
        ({"phase": "Failed", "reason": "Evicted"}, ("0/1", "Evicted", "0")),
    ],
)
async def test_pods_show_what_became_of_them(
    server: Server, status: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    path = f"/api/v1/namespaces/{await server.namespace()}/pods"
    await server.made(path, {"metadata": {"name": "p"}, "spec": POD_SPEC | {"nodeName": "n1"}})
    await server.patch("strategic", f"{path}/p/status", {"status": status})
    found = await cells(server, f"{path}/p")
    assert (found["Ready"], found["Status"], found["Restarts"]) == expected
    assert (found["Node"], found["IP"], found["Nominated Node"], found["Readiness Gates"]) == (
        "n1",
        "<none>",
        "<none>",
        "<none>",
    )


async def test_a_pod_on_its_way_out_is_terminating(server: Server) -> None:
    path = f"/api/v1/namespaces/{await server.namespace()}/pods"
    await server.made(path, {"metadata": {"name": "p"}, "spec": POD_SPEC | {"nodeName": "n1"}})
    await server.delete(f"{path}/p")
    assert (await cells(server, f"{path}/p"))["Status"] == "Terminating"


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        pytest.param(
            "/apis/apps/v1/namespaces/{}/daemonsets",
            {"spec": WORKLOAD},
            {
                **dict.fromkeys(("Desired", "Current", "Ready", "Up-to-date", "Available"), 0),
                "Node Selector": "q=r",
                "Containers": "c",
                "Images": "i",
                "Selector": "a=b",
            },
            id="daemonset",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/{}/deployments",
            {"spec": WORKLOAD},
            {"Ready": "0/1", "Up-to-date": 0, "Available": 0, "Containers": "c", "Images": "i", "Selector": "a=b"},
            id="deployment",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/{}/replicasets",
            {"spec": WORKLOAD},
            {"Desired": 1, "Current": 0, "Ready": 0, "Containers": "c", "Images": "i", "Selector": "a=b"},
            id="replicaset",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/{}/statefulsets",
            {"spec": WORKLOAD | {"serviceName": "x"}},
            {"Ready": "0/1", "Containers": "c", "Images": "i"},
            id="statefulset",
        ),
        pytest.param(
            "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
            {"spec": {"minAvailable": "50%", "selector": {}}},
            {"Min Available": "50%", "Max Unavailable": "N/A", "Allowed Disruptions": 0},
            id="budget",
        ),
        pytest.param(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            {"spec": {"holderIdentity": "me"}},
            {"Holder": "me"},
            id="lease",
        ),
        pytest.param("/api/v1/namespaces/{}/configmaps", {"data": {"a": "1", "b": "2"}}, {"Data": 2}, id="config map"),
        pytest.param(
            "/api/v1/namespaces/{}/secrets", {"stringData": {"a": "1"}}, {"Type": "Opaque", "Data": 1}, id="secret"
        ),
        pytest.param("/api/v1/namespaces/{}/serviceaccounts", {}, {}, id="service account"),
        pytest.param("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles", {"rules": []}, {}, id="role"),
        pytest.param(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
            {
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                ],
            },
            {"Role": "ClusterRole/view", "Users": "u", "Groups": "", "ServiceAccounts": "n/s"},
            id="binding",
        ),
    ],
)
async def test_columns(server: Server, path: str, body: dict[str, Any], expected: dict[str, Any]) -> None:
    path = path.format(await server.namespace())
    await server.made(path, {"metadata": {"name": "x"}} | body)
    assert await cells(server, f"{path}/x") == {"Name": "x"} | expected


async def test_a_job_shows_how_far_it_is(server: Server) -> None:
    path = f"/apis/batch/v1/namespaces/{await server.namespace()}/jobs"
    spec = {"completions": 4, "parallelism": 2, "template": {"spec": POD_SPEC | {"restartPolicy": "Never"}}}
    made = await server.made(path, {"metadata": {"name": "j"}, "spec": spec})
    expected = {"Name": "j", "Status": "Running", "Completions": "0/4", "Duration": ""}
    selector = f"batch.kubernetes.io/controller-uid={made['metadata']['uid']}"
    assert await cells(server, f"{path}/j") == expected | {"Containers": "c", "Images": "i", "Selector": selector}


async def test_an_event_shows_its_story(server: Server) -> None:
    namespace = await server.namespace()
    path = f"/api/v1/namespaces/{namespace}/events"
    about = {"kind": "Pod", "name": "p", "namespace": namespace, "fieldPath": "spec.containers{c}"}
    text = {"reason": "Why", "message": "said\n", "type": "Warning", "count": 3, "source": {"component": "x"}}
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}
    await server.made(path, {"metadata": {"name": "e"}, "involvedObject": about} | text | times)
    found = await cells(server, f"{path}/e")
    ages = found.pop("Last Seen"), found.pop("First Seen")
    assert all(age.endswith(("d", "y")) or age == "<invalid>" for age in ages)
    assert found == {
        "Type": "Warning",
        "Reason": "Why",
        "Object": "pod/p",
        "Subobject": "spec.containers{c}",
        "Source": "x",
        "Message": "said",
        "Count": 3,
        "Name": "e",
    }


@pytest.mark.parametrize(
    ("query", "kind"),
    [("", "PartialObjectMetadata"), ("includeObject=Object", "ConfigMap"), ("includeObject=None", None)],
)
async def test_rows_carry_as_much_of_the_object_as_asked(server: Server, query: str, kind: str | None) -> None:
    path = f"/api/v1/namespaces/{await server.namespace()}/configmaps"
    await server.made(path, {"metadata": {"name": "x"}})
    [row] = (await server.get(f"{path}/x?{query}", accept=TABLE)).body["rows"]
    assert (row.get("object") or {}).get("kind") == kind


async def test_metadata_alone(server: Server) -> None:
    path = f"/api/v1/namespaces/{await server.namespace()}/configmaps"
    await server.made(path, {"metadata": {"name": "x"}, "data": {"a": "b"}})
    one = (await server.get(f"{path}/x", accept=PARTIAL)).body
    assert (one["kind"], one["metadata"]["name"], "data" in one) == ("PartialObjectMetadata", "x", False)
    listed = (await server.get(path, accept=PARTIAL.replace("Metadata;", "MetadataList;"))).body
    assert (listed["kind"], listed["items"][0]["kind"]) == ("PartialObjectMetadataList", "PartialObjectMetadata")


async def test_what_nobody_speaks_is_not_acceptable(server: Server) -> None:
    answer = await server.get("/api/v1/nodes", accept="application/xml")
    assert (answer.code, answer.reason) == (406, "NotAcceptable")
