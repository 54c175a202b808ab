"""Discovery and OpenAPI: what clients learn before they ask for objects."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.apiserver.builtin import register_builtin
from sickbay.apiserver.openapi import record
from sickbay.apiserver.openapi.schemas import definitions
from sickbay.apiserver.resources import Registry
from tests.conformance.server import Server
from tests.support.controlplane import ControlPlane

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def described(resource: dict[str, Any]) -> dict[str, Any]:
    """What of a discovery entry clients go by."""
    keys = ("name", "namespaced", "kind", "singularName", "shortNames", "group", "version")
    return {key: resource[key] for key in keys if resource.get(key) not in (None, [], "")}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("api/v1", {"nodes", "nodes/status", "pods", "pods/status", "pods/eviction", "pods/binding", "namespaces"}),
        ("api/v1", {"configmaps", "secrets", "events", "serviceaccounts", "podtemplates"}),
        ("apis/apps/v1", {"daemonsets", "daemonsets/status", "deployments", "replicasets", "statefulsets"}),
        ("apis/batch/v1", {"jobs", "jobs/status"}),
        ("apis/policy/v1", {"poddisruptionbudgets", "poddisruptionbudgets/status"}),
        ("apis/coordination.k8s.io/v1", {"leases"}),
        ("apis/events.k8s.io/v1", {"events"}),
        ("apis/apiextensions.k8s.io/v1", {"customresourcedefinitions"}),
        ("apis/authorization.k8s.io/v1", {"selfsubjectaccessreviews", "selfsubjectrulesreviews"}),
    ],
)
async def test_resources_are_described_alike(server: Server, path: str, names: set[str]) -> None:
    body = (await server.get(f"/{path}")).body
    assert (body["kind"], body["groupVersion"]) == ("APIResourceList", path.partition("/")[2])
    found = {entry["name"]: described(entry) for entry in body["resources"] if entry["name"] in names}
    assert found.keys() == names
    assert found == {name: EXPECTED[path][name] for name in names}


def _entry(name: str, kind: str, short: str = "", *, cluster: bool = False, **more: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "namespaced": not cluster, "kind": kind}
    if "/" not in name:
        entry["singularName"] = kind.lower()
    if short:
        entry["shortNames"] = short.split()
    return entry | more


EXPECTED: dict[str, dict[str, dict[str, Any]]] = {
    path: {entry["name"]: entry for entry in entries}
    for path, entries in {
        "api/v1": [
            _entry("nodes", "Node", "no", cluster=True),
            _entry("nodes/status", "Node", cluster=True),
            _entry("pods", "Pod", "po"),
            _entry("pods/status", "Pod"),
            _entry("pods/eviction", "Eviction", group="policy", version="v1"),
            _entry("pods/binding", "Binding"),
            _entry("namespaces", "Namespace", "ns", cluster=True),
            _entry("configmaps", "ConfigMap", "cm"),
            _entry("secrets", "Secret"),
            _entry("events", "Event", "ev"),
            _entry("serviceaccounts", "ServiceAccount", "sa"),
            _entry("podtemplates", "PodTemplate"),
        ],
        "apis/apps/v1": [
            _entry("daemonsets", "DaemonSet", "ds"),
            _entry("daemonsets/status", "DaemonSet"),
            _entry("deployments", "Deployment", "deploy"),
            _entry("replicasets", "ReplicaSet", "rs"),
            _entry("statefulsets", "StatefulSet", "sts"),
        ],
        "apis/batch/v1": [_entry("jobs", "Job"), _entry("jobs/status", "Job")],
        "apis/policy/v1": [
            _entry("poddisruptionbudgets", "PodDisruptionBudget", "pdb"),
            _entry("poddisruptionbudgets/status", "PodDisruptionBudget"),
        ],
        "apis/coordination.k8s.io/v1": [_entry("leases", "Lease")],
        "apis/events.k8s.io/v1": [_entry("events", "Event", "ev")],
        "apis/apiextensions.k8s.io/v1": [
            _entry("customresourcedefinitions", "CustomResourceDefinition", "crd crds", cluster=True)
        ],
        "apis/authorization.k8s.io/v1": [
            _entry("selfsubjectaccessreviews", "SelfSubjectAccessReview", cluster=True),
            _entry("selfsubjectrulesreviews", "SelfSubjectRulesReview", cluster=True),
        ],
    }.items()
}


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_aggregated_discovery_names_its_version_in_the_content_type(server: Server, path: str) -> None:
    answer = await server.get(path, accept=AGGREGATED)
    assert answer.headers["content-type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")


async def test_aggregated_discovery_says_what_eviction_is(server: Server) -> None:
    core = (await server.get("/api", accept=AGGREGATED)).body["items"][0]["versions"][0]
    assert (core["version"], core["freshness"]) == ("v1", "Current")
    pods = next(resource for resource in core["resources"] if resource["resource"] == "pods")
    eviction = next(entry for entry in pods["subresources"] if entry["subresource"] == "eviction")
    assert eviction["responseKind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert (pods["scope"], pods["singularResource"], pods["shortNames"]) == ("Namespaced", "pod", ["po"])


async def test_groups_name_their_preferred_version(server: Server) -> None:
    body = (await server.get("/apis")).body
    groups = {group["name"]: group["preferredVersion"]["version"] for group in body["groups"]}
    assert groups["apps"] == groups["policy"] == groups["batch"] == "v1"
    one = (await server.get("/apis/apps")).body
    assert (one["kind"], one["name"], one["preferredVersion"]["groupVersion"]) == ("APIGroup", "apps", "apps/v1")


async def test_access_reviews_answer(server: Server) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    spec = {"resourceAttributes": {"verb": "get", "resource": "nodes"}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    answer = await server.post(path, body)
    assert (answer.code, answer.body["status"]["allowed"], answer.body["spec"]) == (201, True, spec)
    assert (await server.get(path)).code == 405
    who = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    me = await server.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", who)
    assert me.body["status"]["userInfo"]["username"] == "admin"
    assert "system:masters" in me.body["status"]["userInfo"]["groups"]


async def test_openapi_documents_are_indexed_and_describe_kinds(server: Server) -> None:
    index = (await server.get("/openapi/v3")).body["paths"]
    for path in ("api/v1", "apis/apps/v1", "apis/policy/v1"):
        address = index[path]["serverRelativeURL"]
        document = (await server.get(address)).body
        assert document["components"]["schemas"]
    nodes = (await server.get(index["api/v1"]["serverRelativeURL"])).body
    schema = nodes["components"]["schemas"]["io.k8s.api.core.v1.Node"]
    assert {"group": "", "version": "v1", "kind": "Node"} in schema["x-kubernetes-group-version-kind"]
    patch = nodes["paths"]["/api/v1/nodes/{name}"]["patch"]
    parameters = {parameter["name"] for parameter in patch["parameters"]}
    assert {"fieldValidation", "dryRun", "fieldManager"} <= parameters


def served_kinds() -> list[str]:
    registry = Registry()
    register_builtin(registry)
    return sorted(f"{view.api_version} {view.type.kind}" for view in registry.served())


def test_every_built_in_kind_has_a_recorded_schema() -> None:
    recorded = {
        f"{entry['group']}/{entry['version']} {entry['kind']}".lstrip("/")
        for schema in definitions().values()
        for entry in schema.get("x-kubernetes-group-version-kind") or ()
    }
    assert set(served_kinds()) <= recorded


@pytest.mark.controlplane
def test_the_recorded_schemas_are_those_of_the_real_server(control_plane: ControlPlane) -> None:
    found = record.cut(record.documents(control_plane.admin()), record.recorded())
    assert found == definitions()
