"""Role-based access, decided from the roles in the store."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.attributes import Attributes
from sickbay.apiserver.rbac import AllowAll, Rbac
from sickbay.apiserver.store import Store
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import Caller

GROUP = "rbac.authorization.k8s.io"
DEV = Caller("dev", ("people", "system:authenticated"))
BOT = Caller("system:serviceaccount:team:bot", ("system:authenticated",))


def role(store: Store, name: str, *rules: dict[str, Any], namespace: str = "", **fields: Any) -> None:
    resource = f"roles.{GROUP}" if namespace else f"clusterroles.{GROUP}"
    store.create(
        resource, {"metadata": {"name": name} | fields.pop("metadata", {}), "rules": list(rules)} | fields, namespace
    )


def bind(store: Store, name: str, kind: str, to: str, *subjects: dict[str, str], namespace: str = "") -> None:
    resource = f"rolebindings.{GROUP}" if namespace else f"clusterrolebindings.{GROUP}"
    reference = {"apiGroup": GROUP, "kind": kind, "name": to}
    store.create(resource, {"metadata": {"name": name}, "roleRef": reference, "subjects": list(subjects)}, namespace)


def rule(verbs: str, resources: str, groups: str = "", **more: Any) -> dict[str, Any]:
    return {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": groups.split() or [""]} | more


USER_DEV = {"kind": "User", "name": "dev", "apiGroup": GROUP}
PEOPLE = {"kind": "Group", "name": "people", "apiGroup": GROUP}
BOT_ACCOUNT = {"kind": "ServiceAccount", "name": "bot", "namespace": "team"}


@pytest.fixture
def rbac(store: Store) -> Rbac:
    store.create("namespaces", {"metadata": {"name": "team"}})
    role(store, "see-nodes", rule("get list watch", "nodes"))
    role(store, "node-status", rule("patch", "nodes/status"), rule("get", "*/scale", "*"))
    role(store, "one-map", rule("update", "configmaps", resourceNames=["ours"]))
    role(store, "team-pods", rule("*", "pods pods/eviction"), namespace="team")
    role(store, "paths", {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]})
    bind(store, "a", "ClusterRole", "see-nodes", USER_DEV)
    bind(store, "b", "ClusterRole", "node-status", BOT_ACCOUNT)
    bind(store, "c", "Role", "team-pods", PEOPLE, namespace="team")
    bind(store, "d", "ClusterRole", "one-map", PEOPLE, namespace="team")
    bind(store, "e", "ClusterRole", "paths", PEOPLE)
    bind(store, "f", "ClusterRole", "missing", PEOPLE)
    return Rbac(store)


@pytest.mark.parametrize(
    ("caller", "wanted", "allowed"),
    [
        (DEV, Attributes("get", "", "nodes", name="n"), True),
        (DEV, Attributes("delete", "", "nodes", name="n"), False),
        (DEV, Attributes("get", "apps", "nodes"), False),
        (DEV, Attributes("patch", "", "nodes", "status", name="n"), False),
        (BOT, Attributes("patch", "", "nodes", "status", name="n"), True),
        (BOT, Attributes("patch", "", "nodes", name="n"), False),
        (BOT, Attributes("get", "apps", "deployments", "scale", "team"), True),
        (DEV, Attributes("create", "", "pods", "eviction", "team", "p"), True),
        (DEV, Attributes("delete", "", "pods", "", "team", "p"), True),
        (DEV, Attributes("delete", "", "pods", "", "default", "p"), False),
        (DEV, Attributes("list", "", "pods"), False),
        (DEV, Attributes("update", "", "configmaps", "", "team", "ours"), True),
        (DEV, Attributes("update", "", "configmaps", "", "team", "theirs"), False),
        (DEV, Attributes("update", "", "configmaps", "", "default", "ours"), False),
        (DEV, Attributes("get", path="/metrics"), True),
        (DEV, Attributes("get", path="/debug/pprof"), True),
        (DEV, Attributes("post", path="/metrics"), False),
        (BOT, Attributes("get", path="/metrics"), False),
        (BOT, Attributes("get", path="/apis/apps"), True),
        (BOT, Attributes("create", "authorization.k8s.io", "selfsubjectaccessreviews"), True),
        (BOT, Attributes("create", "authorization.k8s.io", "subjectaccessreviews"), False),
        (Caller("anybody"), Attributes("get", path="/apis"), False),
        (Caller("root", ("system:masters",)), Attributes("delete", "", "nodes", name="n"), True),
    ],
)
def test_decisions(rbac: Rbac, caller: Caller, wanted: Attributes, allowed: bool) -> None:
    assert rbac.decide(caller, wanted).allowed is allowed


def test_a_decision_says_what_allowed_it(rbac: Rbac) -> None:
    decision = rbac.decide(DEV, Attributes("get", "", "nodes"))
    assert decision.reason == 'RBAC: allowed by ClusterRoleBinding "a" of ClusterRole "see-nodes" to User "dev"'


def test_cluster_admin_exists_and_may_do_everything(rbac: Rbac, store: Store) -> None:
    bind(store, "admin", "ClusterRole", "cluster-admin", USER_DEV)
    assert rbac.decide(DEV, Attributes("delete", "x.y", "anything", "sub", "team")).allowed
    assert rbac.decide(DEV, Attributes("post", path="/anything")).allowed
    Rbac(store)  # a second one finds the role and leaves it


def test_changes_of_roles_count_at_once(rbac: Rbac, store: Store) -> None:
    wanted = Attributes("get", "", "nodes")
    store.delete(f"clusterrolebindings.{GROUP}", "a")
    assert not rbac.decide(DEV, wanted).allowed


def test_an_aggregated_role_has_the_rules_of_those_it_selects(rbac: Rbac, store: Store) -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"aggregate": "yes"}}]}
    role(store, "sum", aggregationRule=selector)
    bind(store, "s", "ClusterRole", "sum", USER_DEV)
    wanted = Attributes("list", "", "secrets", "", "team")
    assert not rbac.decide(DEV, wanted).allowed
    role(store, "part", rule("list", "secrets"), metadata={"labels": {"aggregate": "yes"}})
    assert rbac.decide(DEV, wanted).allowed


def test_the_rules_of_a_caller_are_listed_for_a_namespace(rbac: Rbac) -> None:
    verbs = [entry["verbs"] for entry in rbac.rules(DEV, "team") if entry.get("resources")]
    assert verbs == [["create"], ["create"], ["get", "list", "watch"], ["*"], ["update"]]


def test_without_authorization_everything_is_allowed() -> None:
    assert AllowAll().decide(DEV, Attributes("delete", "", "nodes")).allowed


async def test_the_app_refuses_in_the_words_of_the_real_server(rbac: Rbac, store: Store) -> None:
    store.create("nodes", {"metadata": {"name": "n"}})
    app = ApiServer(store, {"dev": Caller("dev", ("people",)), "bot": BOT}, authorizer=rbac)
    async with httpx2.AsyncClient(transport=InProcessTransport(app), base_url="http://x") as client:

        async def call(method: str, path: str, token: str = "dev", **body: Any) -> httpx2.Response:
            headers = {"authorization": f"Bearer {token}"}
            return await client.request(method, path, headers=headers, **body)

        assert (await call("GET", "/api/v1/nodes")).status_code == 200
        assert (await call("GET", "/api/v1/nodes?watch=1&timeoutSeconds=1")).status_code == 200
        refused = {
            ("DELETE", "/api/v1/nodes/n"): 'nodes "n" is forbidden: User "dev" cannot delete resource "nodes" in API'
            ' group "" at the cluster scope',
            ("GET", "/api/v1/namespaces/default/pods"): 'pods is forbidden: User "dev" cannot list resource "pods" in'
            ' API group "" in the namespace "default"',
            ("DELETE", "/api/v1/nodes"): 'nodes is forbidden: User "dev" cannot deletecollection resource "nodes" in'
            ' API group "" at the cluster scope',
            ("PATCH", "/api/v1/nodes/n/status"): 'nodes "n" is forbidden: User "dev" cannot patch resource'
            ' "nodes/status" in API group "" at the cluster scope',
        }
        for (method, path), message in refused.items():
            answer = await call(method, path, json={})
            body = answer.json()
            assert (answer.status_code, body["reason"], body["message"]) == (403, "Forbidden", message)
        assert (await call("GET", "/api/v1/nodes", "bot")).status_code == 403
        assert (await call("GET", "/apis", "bot")).status_code == 200
