"""Who may do what: roles and bindings, and the words of a refusal."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conformance.server import NODES, Answer, Server

RBAC = "/apis/rbac.authorization.k8s.io/v1"
API_GROUP = "rbac.authorization.k8s.io"


async def grant(server: Server, namespace: str = "", **rule: list[str]) -> str:
    """Give user dev a right; the path of its binding."""
    name = server.unique("grant")
    scope, kind = (f"/namespaces/{namespace}", "Role") if namespace else ("", "ClusterRole")
    await server.made(
        f"{RBAC}{scope}/{kind.lower()}s", {"metadata": {"name": name}, "rules": [{"apiGroups": [""]} | rule]}
    )
    binding: dict[str, Any] = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": API_GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "User", "name": "dev", "apiGroup": API_GROUP}],
    }
    path = f"{RBAC}{scope}/{kind.lower()}bindings"
    await server.made(path, binding)
    return f"{path}/{name}"


async def settled(server: Server, method: str, path: str, code: int) -> Answer:
    """The answer, once the real server's view of the roles has caught up."""
    for _ in range(100):
        answer = await server.call(method, path)
        if answer.code == code:
            return answer
        await asyncio.sleep(0.05)  # noqa: TID251 - the real server learns of roles through a watch
    return answer


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        (
            "GET",
            f"{NODES}/n",
            'nodes "n" is forbidden: User "dev" cannot get resource "nodes" in API group "" at the cluster scope',
        ),
        (
            "GET",
            NODES,
            'nodes is forbidden: User "dev" cannot list resource "nodes" in API group "" at the cluster scope',
        ),
        (
            "GET",
            f"{NODES}?watch=1",
            'nodes is forbidden: User "dev" cannot watch resource "nodes" in API group "" at the cluster scope',
        ),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/default/deployments/d",
            'deployments.apps "d" is forbidden: User "dev" cannot delete resource "deployments" in API group "apps" in'
            ' the namespace "default"',
        ),
        (
            "PATCH",
            f"{NODES}/n/status",
            'nodes "n" is forbidden: User "dev" cannot patch resource "nodes/status" in API group "" at the cluster'
            " scope",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/default/pods",
            'pods is forbidden: User "dev" cannot deletecollection resource "pods" in API group "" in the namespace'
            ' "default"',
        ),
        (
            "GET",
            "/api/v1/namespaces/default",
            'namespaces "default" is forbidden: User "dev" cannot get resource "namespaces" in API group "" in the'
            ' namespace "default"',
        ),
    ],
)
async def test_a_refusal_names_user_verb_and_resource(server: Server, method: str, path: str, message: str) -> None:
    async with server.seen_by("dev") as dev:
        answer = await dev.call(method, path, {} if method == "PATCH" else None)
    assert (answer.code, answer.reason, answer.message) == (403, "Forbidden", message)


async def test_an_unknown_token_is_unauthorized(server: Server) -> None:
    answer = await server.get(NODES, authorization="Bearer nobody")
    assert (answer.code, answer.reason) == (401, "Unauthorized")


async def test_a_role_grants_what_it_names_and_no_more(server: Server) -> None:
    path = await server.node()
    binding = await grant(server, verbs=["get"], resources=["nodes"], resourceNames=[path.rpartition("/")[2]])
    other = await server.node()
    async with server.seen_by("dev") as dev:
        assert (await settled(dev, "GET", path, 200)).code == 200
        assert (await dev.get(other)).code == 403
        assert (await dev.delete(path)).code == 403
        await server.delete(binding)
        assert (await settled(dev, "GET", path, 403)).code == 403


async def test_a_role_of_a_namespace_ends_at_its_border(server: Server) -> None:
    ours, theirs = await server.namespace(), await server.namespace()
    await grant(server, ours, verbs=["list"], resources=["configmaps"])
    async with server.seen_by("dev") as dev:
        assert (await settled(dev, "GET", f"/api/v1/namespaces/{ours}/configmaps", 200)).code == 200
        assert (await dev.get(f"/api/v1/namespaces/{theirs}/configmaps")).code == 403
        assert (await dev.get("/api/v1/configmaps")).code == 403


async def test_a_right_to_a_subresource_is_not_one_to_the_object(server: Server) -> None:
    path = await server.node()
    await grant(server, verbs=["patch"], resources=["nodes/status"])
    async with server.seen_by("dev") as dev:
        for _ in range(100):
            answer = await dev.patch("merge", f"{path}/status", {"status": {"phase": "Running"}})
            if answer.code == 200:
                break
            await asyncio.sleep(0.05)  # noqa: TID251 - the real server learns of roles through a watch
        assert answer.code == 200
        assert (await dev.patch("merge", path, {"spec": {"unschedulable": True}})).code == 403


async def test_everybody_may_ask_and_discover(server: Server) -> None:
    async with server.seen_by("dev") as dev:
        for path in ("/api", "/apis", "/api/v1", "/version", "/openapi/v3"):
            assert (await dev.get(path)).code == 200, path
        spec = {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
        answer = await dev.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
        assert (answer.code, answer.body["status"]["allowed"]) == (201, False)
        other = body | {"kind": "SubjectAccessReview", "spec": spec | {"user": "admin"}}
        assert (await dev.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", other)).code == 403


async def test_a_role_for_one_name_lets_list_and_watch_that_name(server: Server) -> None:
    name = server.unique("watched")
    path = await grant(server, resources=["nodes"], verbs=["list", "watch"], resourceNames=[name])
    async with server.seen_by("dev") as seen:
        await settled(seen, "GET", f"{NODES}?fieldSelector=metadata.name%3D{name}", 200)
        for selector in ("", "?fieldSelector=metadata.name%3Dother", f"?fieldSelector=metadata.name!%3D{name}"):
            assert (await seen.get(f"{NODES}{selector}")).code == 403
    await server.delete(path)


@pytest.mark.parametrize(
    "rule",
    [{}, {"verbs": ["get"]}, {"verbs": [], "apiGroups": [""], "resources": ["pods"]}],
    ids=["empty", "for nothing", "that allows nothing"],
)
async def test_a_rule_that_says_nothing_is_refused(server: Server, rule: dict[str, Any]) -> None:
    answer = await server.post(f"{RBAC}/clusterroles", {"metadata": {"name": server.unique("role")}, "rules": [rule]})
    assert (answer.code, answer.reason) == (422, "Invalid")


@pytest.mark.parametrize(
    ("role", "subject", "fields"),
    [
        (None, {"kind": "User", "name": "a"}, {"roleRef.kind", "roleRef.name"}),
        ("Role", {"kind": "User", "name": "a"}, {"roleRef.kind"}),
        ("ClusterRole", {}, {"subjects[0].kind", "subjects[0].name"}),
        ("ClusterRole", {"kind": "ServiceAccount", "name": "a"}, {"subjects[0].namespace"}),
        ("ClusterRole", {"kind": "User", "name": "a", "apiGroup": "b"}, {"subjects[0].apiGroup"}),
    ],
)
async def test_a_binding_that_binds_nobody_to_nothing_is_refused(
    server: Server, role: str | None, subject: dict[str, Any], fields: set[str]
) -> None:
    body = {"metadata": {"name": server.unique("binding")}, "subjects": [subject]}
    answer = await server.post(
        f"{RBAC}/clusterrolebindings", body | ({"roleRef": {"kind": role, "name": "view"}} if role else {})
    )
    assert (answer.code, {field for _, field, _ in answer.causes}) == (422, fields)


async def test_a_binding_stays_with_its_role(server: Server) -> None:
    name = server.unique("binding")
    path = f"{RBAC}/clusterrolebindings"
    await server.made(path, {"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": "view"}})
    answer = await server.patch("merge", f"{path}/{name}", {"roleRef": {"name": "cluster-admin"}})
    assert (answer.code, {field for _, field, _ in answer.causes}) == (422, {"roleRef"})
