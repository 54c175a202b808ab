"""What the roles grant, asked of the server's own authoriser, and what stays shut where a role is granted too much."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from sickbay.api import names
from tests.deploy.conftest import bind
from tests.deploy.world import NODE, OTHER, QUARANTINED, Call, node, send, set_labels, stage
from tests.support.controlplane import ControlPlane
from tests.support.install import DEPLOY

pytestmark = pytest.mark.controlplane

CONTROLLER = "system:serviceaccount:sickbay-system:sickbay-controller"
AGENT = "system:serviceaccount:sickbay-system:sickbay-agent"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
GROUPS = {
    "nodes": "",
    "pods": "",
    "events": "",
    "secrets": "",
    "namespaces": "",
    "persistentvolumes": "",
    "persistentvolumeclaims": "",
    "poddisruptionbudgets": "policy",
    "leases": "coordination.k8s.io",
    "daemonsets": "apps",
    "jobs": "batch",
    "podtemplates": "",
    "nodehealthchecks": "remediation.medik8s.io",
    "machinehealthchecks": "cluster.x-k8s.io",
    "jobsets": "jobset.x-k8s.io",
    "clusterroles": "rbac.authorization.k8s.io",
}
OURS = ["repairpools", "repairrules", "faulttypes", "holds", "recoverypolicies", "noderepairs", "infraevents"]
OURS += ["jobrecoveries", "nodetasks"]

# user, verbs, resource[/subresource], namespace
GRANTED = [
    (CONTROLLER, "get list watch patch", "nodes", ""),
    (CONTROLLER, "patch", "nodes/status", ""),
    (CONTROLLER, "get list watch delete", "pods", "train"),
    (CONTROLLER, "create", "pods/eviction", "train"),
    (CONTROLLER, "get list watch", "poddisruptionbudgets", "train"),
    (CONTROLLER, "get", "persistentvolumeclaims", "train"),
    (CONTROLLER, "get", "persistentvolumes", ""),
    (CONTROLLER, "get list watch", "daemonsets", "train"),
    (CONTROLLER, "get list watch", "jobs", "train"),
    (CONTROLLER, "get list watch", "jobsets", "train"),
    (CONTROLLER, "list watch create patch", "events", "default"),
    (CONTROLLER, "create delete", "jobs", "sickbay-system"),
    (CONTROLLER, "get", "podtemplates", "sickbay-system"),
    (CONTROLLER, "get list", "nodehealthchecks", ""),
    (CONTROLLER, "get list", "machinehealthchecks", "train"),
    (CONTROLLER, "get create update patch", "leases", "sickbay-system"),
    (CONTROLLER, "get list watch", "leases", "sickbay-agents"),
    *[(CONTROLLER, "get list watch", kind, "train") for kind in OURS],
    *[(CONTROLLER, "patch", f"{kind}/status", "train") for kind in OURS if kind != "nodetasks"],
    *[(CONTROLLER, "create patch delete", kind, "train") for kind in ("noderepairs", "infraevents", "jobrecoveries")],
    (CONTROLLER, "create delete", "nodetasks", ""),
    (CONTROLLER, "update", "noderepairs/finalizers", ""),
    (AGENT, "get list watch", "nodes", ""),
    (AGENT, "patch", "nodes/status", ""),
    (AGENT, "get list watch", "nodetasks", ""),
    (AGENT, "patch", "nodetasks/status", ""),
    (AGENT, "get create update patch", "leases", "sickbay-agents"),
    (AGENT, "create patch", "events", "default"),
]
WITHHELD = [
    (CONTROLLER, "create update delete", "nodes", ""),
    (CONTROLLER, "create update patch", "pods", "train"),
    (CONTROLLER, "create update patch delete", "jobs", "train"),
    (CONTROLLER, "get list", "podtemplates", "train"),
    (CONTROLLER, "create update patch delete", "podtemplates", "sickbay-system"),
    (CONTROLLER, "create update patch delete", "nodehealthchecks", ""),
    (CONTROLLER, "create update patch delete", "poddisruptionbudgets", "train"),
    (CONTROLLER, "create update patch delete", "leases", "kube-system"),
    (CONTROLLER, "create update patch delete", "leases", "kube-node-lease"),
    (CONTROLLER, "create update patch delete", "leases", "sickbay-agents"),
    (CONTROLLER, "update patch", "nodetasks", ""),
    (CONTROLLER, "update patch", "nodetasks/status", ""),
    (CONTROLLER, "create update patch delete", "holds", ""),
    (CONTROLLER, "create update patch delete", "repairpools", ""),
    (CONTROLLER, "create update patch delete", "repairrules", ""),
    (CONTROLLER, "get list watch", "secrets", "sickbay-system"),
    (CONTROLLER, "create update patch bind escalate", "clusterroles", ""),
    (AGENT, "create update patch delete", "nodes", ""),
    (AGENT, "get list watch delete", "pods", "train"),
    (AGENT, "create", "pods/eviction", "train"),
    (AGENT, "create update patch delete", "nodetasks", ""),
    (AGENT, "get list create patch", "noderepairs", ""),
    (AGENT, "get create patch", "leases", "kube-node-lease"),
    (AGENT, "get create patch", "leases", "sickbay-system"),
    (AGENT, "delete", "leases", "sickbay-agents"),
    (AGENT, "create", "events", "kube-system"),
    (AGENT, "get list watch", "secrets", "sickbay-system"),
]


def may(control_plane: ControlPlane, user: str, verb: str, resource: str, namespace: str) -> bool:
    plain, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": GROUPS.get(plain, "sickbay.dev"),
        "resource": plain,
        "subresource": subresource,
        "namespace": namespace,
    }
    body = {"spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}}
    answer = control_plane.admin().post(REVIEWS, json=body)
    assert answer.status_code == 201, answer.text
    return bool(answer.json()["status"]["allowed"])


def cases(table: list[tuple[str, str, str, str]]) -> list[Any]:
    return [pytest.param(*row, id=f"{row[0].rsplit('-', 1)[1]} {row[1]} {row[2]} {row[3]}".strip()) for row in table]


@pytest.mark.parametrize(("user", "verbs", "resource", "namespace"), cases(GRANTED))
def test_it_may(guarded: ControlPlane, user: str, verbs: str, resource: str, namespace: str) -> None:
    assert [verb for verb in verbs.split() if not may(guarded, user, verb, resource, namespace)] == []


@pytest.mark.parametrize(("user", "verbs", "resource", "namespace"), cases(WITHHELD))
def test_it_may_not(guarded: ControlPlane, user: str, verbs: str, resource: str, namespace: str) -> None:
    assert [verb for verb in verbs.split() if may(guarded, user, verb, resource, namespace)] == []


@pytest.mark.parametrize(
    ("role", "verb", "resource", "allowed"),
    [
        ("sickbay-viewer", "list", "noderepairs", True),
        ("sickbay-viewer", "list", "events", True),
        ("sickbay-viewer", "patch", "nodes", False),
        ("sickbay-viewer", "create", "holds", False),
        ("sickbay-approver", "patch", "nodes", True),
        ("sickbay-approver", "create", "holds", False),
        ("sickbay-operator", "create", "holds", True),
        ("sickbay-operator", "create", "noderepairs", True),
        ("sickbay-operator", "create", "nodetasks", False),
    ],
)
def test_roles_for_people(guarded: ControlPlane, role: str, verb: str, resource: str, allowed: bool) -> None:
    user = f"somebody-with-{role}"
    bind(guarded, role, user, {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"})
    settle(guarded, user, True, "get", "noderepairs")
    assert may(guarded, user, verb, resource, "") is allowed


def settle(control_plane: ControlPlane, user: str, wanted: bool, verb: str, resource: str) -> None:
    """Roles take effect some milliseconds after they are written."""
    assert any(may(control_plane, user, verb, resource, "") is wanted for _ in range(500))


@contextmanager
def granted_too_much(control_plane: ControlPlane) -> Iterator[None]:
    """Somebody has bound the agents to a role that may patch nodes, not only their status."""
    subject = {"kind": "ServiceAccount", "name": "sickbay-agent", "namespace": "sickbay-system"}
    bind(control_plane, "sickbay-approver", "agents-approve", subject)
    try:
        settle(control_plane, AGENT, True, "patch", "nodes")
        yield
    finally:
        control_plane.kubectl("delete", "clusterrolebinding", "agents-approve")
        settle(control_plane, AGENT, False, "patch", "nodes")


TOO_MUCH = {
    "uncordon": (Call("agent", NODE, {"spec": {"unschedulable": None}}, given=QUARANTINED), "may not change the spec"),
    "cordon": (Call("agent", NODE, {"spec": {"unschedulable": True}}), "may not change the spec"),
    "taint": (
        Call("agent", NODE, {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}),
        "may not change the spec",
    ),
    "untaint": (Call("agent", NODE, {"spec": {"taints": None}}, given=QUARANTINED), "may not change the spec"),
    "label": (Call("agent", NODE, set_labels({"a": "b"})), "may not change labels"),
    "another node": (Call("agent", f"/api/v1/nodes/{OTHER}", set_labels({"a": "b"})), "may not write node node-2"),
}


@pytest.mark.parametrize(("call", "says"), [pytest.param(*case, id=name) for name, case in TOO_MUCH.items()])
async def test_an_agent_granted_too_much_is_still_bound(guarded: ControlPlane, call: Call, says: str) -> None:
    stage(guarded, call.given)
    before = node(guarded)
    with granted_too_much(guarded):
        answer = await send(guarded, call)
    assert answer.status_code == 422, answer.text
    assert says in answer.json()["message"]
    assert node(guarded) == before


@pytest.mark.parametrize("call", [pytest.param(case[0], id=name) for name, case in TOO_MUCH.items()])
async def test_without_the_policies_it_would_not_be(unguarded: ControlPlane, call: Call) -> None:
    stage(unguarded, call.given)
    with granted_too_much(unguarded):
        answer = await send(unguarded, call)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(("call", "says"), [pytest.param(*case, id=name) for name, case in TOO_MUCH.items()])
async def test_as_it_is_shipped_the_role_refuses_it_first(guarded: ControlPlane, call: Call, says: str) -> None:
    stage(guarded, call.given)
    answer = await send(guarded, call)
    assert answer.status_code == 403, answer.text
    assert "cannot patch resource" in answer.json()["message"]


def test_the_medik8s_leases_are_granted_where_their_namespace_is(guarded: ControlPlane) -> None:
    assert not may(guarded, CONTROLLER, "update", "leases", names.MEDIK8S_LEASES)
    without = guarded.kubectl("apply", "-f", str(DEPLOY / "rbac-medik8s.yaml"))
    assert 'namespaces "medik8s-leases" not found' in without.stderr
    guarded.kubectl("create", "namespace", names.MEDIK8S_LEASES)
    applied = guarded.kubectl("apply", "-f", str(DEPLOY / "rbac-medik8s.yaml"))
    assert applied.returncode == 0, applied.stderr
    for verb in ("get", "create", "update", "delete"):
        assert any(may(guarded, CONTROLLER, verb, "leases", names.MEDIK8S_LEASES) for _ in range(500))


def test_no_role_of_ours_has_a_wildcard_verb() -> None:
    for document in yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text()):
        for rule in document.get("rules", []):
            assert "*" not in rule["verbs"], document["metadata"]["name"]
            assert rule["resources"] != ["*"] or document["metadata"]["name"] == "sickbay-viewer"


def test_the_agents_leases_are_where_the_names_say(guarded: ControlPlane) -> None:
    assert guarded.kubectl("get", "namespace", names.AGENT_LEASES).returncode == 0
