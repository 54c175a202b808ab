"""The small world the policies are tried in: two nodes, one task each, and everybody who may want to write.

`Call` is one request as data, so that a table of them can be sent to a server with the policies and to one without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from sickbay.api import names
from tests.support.controlplane import ControlPlane

OWN, OTHER = "node-1", "node-2"
NODE = f"/api/v1/nodes/{OWN}"
STATUS = f"{NODE}/status"
NODES = "/api/v1/nodes"
TASKS = "/apis/sickbay.dev/v1alpha1/nodetasks"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/sickbay-agents/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
CORE_EVENTS = "/api/v1/namespaces/default/events"
NODE_NAME_EXTRA = "authentication.kubernetes.io/node-name"

DRAIN = "intervention.sickbay.dev/drain-node"
ACK_DRAIN = "intervention.autorepair.node.k8s.aliyun.com/drain-node"
MARK = {names.QUARANTINE: json.dumps({"repair": "node-1-0badc0de-1", "uid": "u1"})}

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
PLAIN = "application/json"


def inquiry(*groups: str) -> dict[str, str]:
    """The annotation of an open question, written the way the controller's encoder does."""
    content = {"repair": "node-1-0badc0de-1", "uid": "u1", "step": "Drain", "attempt": 1, "groups": list(groups)}
    return {names.INQUIRY: json.dumps({**content, "by": "People"}, separators=(",", ":"), ensure_ascii=False)}


def asked(*groups: str, label: str = DRAIN) -> dict[str, Any]:
    """A quarantined node on which the drain waits for approval by these groups; none = by any person."""
    return {
        "metadata": {"labels": {label: "inquiring"}, "annotations": {**MARK, **inquiry(*groups)}},
        "spec": {"unschedulable": True},
    }


QUARANTINED: dict[str, Any] = {
    "metadata": {"annotations": MARK},
    "spec": {"unschedulable": True, "taints": [{"key": names.QUARANTINE, "value": "GPU", "effect": "NoSchedule"}]},
}


@dataclass(frozen=True)
class Call:
    """One request. `given` is merged into node-1 before; `says` is part of what a refusal says."""

    who: str
    path: str
    body: Any
    verb: str = "PATCH"
    content: str = MERGE
    given: Mapping[str, Any] = field(default_factory=dict)
    says: str = ""


def set_labels(values: dict[str, str | None]) -> dict[str, Any]:
    """Merge patch of labels; None removes."""
    return {"metadata": {"labels": values}}


def set_annotations(values: dict[str, str | None]) -> dict[str, Any]:
    """Merge patch of annotations; None removes."""
    return {"metadata": {"annotations": values}}


WITHDRAWN: dict[str, Any] = {"metadata": {"labels": {DRAIN: None}, "annotations": {names.INQUIRY: None}}}


def conditions(*entries: dict[str, str]) -> dict[str, Any]:
    return {"status": {"conditions": list(entries)}}


def condition(name: str, status: str = "True") -> dict[str, str]:
    return {"type": name, "status": status, "reason": "Test", "message": "by the test"}


def task(name: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": names.API_VERSION,
        "kind": "NodeTask",
        "metadata": {"name": name},
        "spec": {
            "node": {"name": node, "uid": f"uid-{node}", "bootID": "boot-1"},
            "action": "RebootNode",
            "key": f"{name}/Repair/1",
            "expires": "2030-01-01T00:00:00Z",
        },
    }


def token(control_plane: ControlPlane, who: str) -> str:
    """Token of `agent` (of node-1), `controller`, `unbound agent`, `account NAMESPACE/NAME`, or a static identity."""
    if who == "agent":
        return control_plane.agent_token(OWN)
    if who == "controller":
        return control_plane.controller_token()
    if who == "unbound agent":
        return control_plane.service_account_token("sickbay-system", "sickbay-agent")
    if who.startswith("account "):
        namespace, name = who.removeprefix("account ").split("/")
        return control_plane.service_account_token(namespace, name)
    return control_plane.token(who)


async def send(control_plane: ControlPlane, call: Call) -> httpx2.Response:
    """Make the request as whoever it is. `as NAME` is the admin impersonating a user of that name."""
    headers = {"Content-Type": call.content if call.verb == "PATCH" else PLAIN}
    who = call.who
    if who.startswith("as "):
        headers |= {"Impersonate-User": who.removeprefix("as "), "Impersonate-Group": "system:masters"}
        who = "admin"
    async with control_plane.http_client_for_token(token(control_plane, who)) as http:
        return await http.request(call.verb, call.path, content=json.dumps(call.body), headers=headers)


def read(control_plane: ControlPlane, path: str) -> dict[str, Any]:
    answer = control_plane.admin().get(path)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def node(control_plane: ControlPlane) -> dict[str, Any]:
    """node-1 as it stands."""
    return read(control_plane, NODE)


def stage(control_plane: ControlPlane, given: Mapping[str, Any]) -> None:
    """Two fresh nodes with their kubelets' conditions, and a task for each. No policy judges the making of a Node."""
    admin = control_plane.admin()
    for name in (OWN, OTHER):
        for path in (f"{NODES}/{name}", f"{TASKS}/task-{name}", f"{LEASES}/{name}"):
            admin.patch(path, content='{"metadata": {"finalizers": null}}', headers={"Content-Type": MERGE})
            admin.delete(path)
        fresh: dict[str, Any] = {
            "metadata": {"name": name, "labels": {"pool": "train"}, "annotations": {"example.com/note": "kept"}},
            "spec": {"taints": [{"key": "example.com/theirs", "effect": "NoSchedule"}]},
        }
        answer = admin.post(NODES, json=_merged(fresh, given) if name == OWN else fresh)
        assert answer.status_code == 201, answer.text
        status = conditions(
            condition("Ready"), condition("MemoryPressure", "False"), condition("KernelDeadlock", "False")
        )
        status["status"]["capacity"] = {"cpu": "8", "nvidia.com/gpu": "8"}
        answer = admin.patch(f"{NODES}/{name}/status", content=json.dumps(status), headers={"Content-Type": STRATEGIC})
        assert answer.status_code == 200, answer.text
        _make_task(control_plane, task(f"task-{name}", name))


def _make_task(control_plane: ControlPlane, body: dict[str, Any]) -> None:
    with httpx2.Client(**control_plane.connection(control_plane.controller_token())) as http:
        answer = http.post(TASKS, json=body)
        assert answer.status_code == 201, answer.text


def _merged(base: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in patch.items():
        here = result.get(key)
        if isinstance(here, dict) and isinstance(value, Mapping):
            result[key] = _merged(here, value)
        elif isinstance(here, list) and isinstance(value, list):
            result[key] = here + value
        else:
            result[key] = value
    return result
