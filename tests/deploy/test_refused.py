"""What nobody but the right one may write. Each write is also made on a server without the policies, which takes it:
so the refusal is the policy's, and the test can fail."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.api import names
from tests.deploy.world import (
    ACK_DRAIN,
    CORE_EVENTS,
    DRAIN,
    EVENTS,
    LEASES,
    MARK,
    NODE,
    NODES,
    OTHER,
    OWN,
    QUARANTINED,
    STATUS,
    STRATEGIC,
    TASKS,
    Call,
    asked,
    condition,
    conditions,
    inquiry,
    node,
    read,
    send,
    set_annotations,
    set_labels,
    stage,
    task,
)
from tests.support.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane

KUBELET = "system:node:node-1"
FAULT = conditions(condition("NvidiaXID79Error"))
CONDITIONS = "may not change conditions of the kubelet"
STATUS_ONLY = "nothing in the status but conditions"
ONE_ANNOTATION = "no annotation but sickbay.dev/devices"
FOR_PEOPLE = "approvals are for people"
TO_INQUIRING = "to inquiring only; approvals are for people"
OURS = "may not change what Sickbay keeps on a node"


def event(kind: str = "Node", name: str = OWN, controller: str = "sickbay-agent") -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}.{kind.lower()}.{controller}".lower()},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": controller,
        "reportingInstance": f"{controller}-1",
        "action": "Detect",
        "reason": "Test",
        "type": "Warning",
        "note": "by the test",
        "regarding": {"apiVersion": "v1", "kind": kind, "name": name},
    }


def core_event(name: str = OWN, component: str = "sickbay-agent") -> dict[str, Any]:
    return {
        "metadata": {"name": f"{name}.core.{component}"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": name},
        "source": {"component": component},
        "reason": "Test",
        "type": "Warning",
        "message": "by the test",
    }


def agent(body: Any, says: str, given: dict[str, Any] | None = None) -> Call:
    """The agent of node-1 patches its node's status, the only endpoint its role opens."""
    return Call("agent", STATUS, body, content=STRATEGIC, given=given or {}, says=says)


BY_AGENTS = {
    "finding on another node": Call(
        "agent",
        f"{NODES}/{OTHER}/status",
        FAULT,
        content=STRATEGIC,
        says="agent of node node-1 may not write node node-2",
    ),
    "token of no node": Call("unbound agent", STATUS, FAULT, content=STRATEGIC, says="this agent token names no node"),
    "approval": agent(set_labels({DRAIN: "approved"}), FOR_PEOPLE, asked()),
    "taking back a question": agent(set_labels({DRAIN: None}), FOR_PEOPLE, asked()),
    "a label": agent(set_labels({"example.com/a": "b"}), FOR_PEOPLE),
    "another's annotation": agent(set_annotations({"example.com/note": "changed"}), ONE_ANNOTATION),
    "removing another's annotation": agent(set_annotations({"example.com/note": None}), ONE_ANNOTATION),
    "a grant to itself": agent(set_annotations({names.ISOLATE: '["GPU-1"]'}), ONE_ANNOTATION),
    "our mark": agent(set_annotations({names.QUARANTINE: None}), ONE_ANNOTATION, QUARANTINED),
    "somebody's stamp": agent(set_annotations({names.CHANGED_BY: '{"user":"ann"}'}), ONE_ANNOTATION, QUARANTINED),
    "a finalizer": agent({"metadata": {"finalizers": ["example.com/stay"]}}, "may not change finalizers"),
    "Ready": agent(conditions(condition("Ready", "False")), CONDITIONS),
    "removing Ready": agent({"status": {"conditions": [{"$patch": "delete", "type": "Ready"}]}}, CONDITIONS),
    "MemoryPressure": agent(conditions(condition("MemoryPressure")), CONDITIONS),
    "a condition the kubelet has not written yet": agent(conditions(condition("PIDPressure")), CONDITIONS),
    "NetworkUnavailable": agent(conditions(condition("NetworkUnavailable")), CONDITIONS),
    "Drained": agent(conditions(condition("Drained")), CONDITIONS),
    "capacity": agent({"status": {"capacity": {"nvidia.com/gpu": "99"}}}, STATUS_ONLY),
    "addresses": agent({"status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}}, STATUS_ONLY),
    "a finding with a label in one": agent({**FAULT, **set_labels({"a": "b"})}, FOR_PEOPLE),
    "report on another's task": Call(
        "agent", f"{TASKS}/task-{OTHER}/status", {"status": {"phase": "Done"}}, says="a task of another node"
    ),
    "report without a node": Call(
        "unbound agent", f"{TASKS}/task-{OWN}/status", {"status": {"phase": "Done"}}, says="names no node"
    ),
    "another's Lease": Call(
        "agent", LEASES, {"metadata": {"name": OTHER}}, verb="POST", says="only the Lease node-1 (its node)"
    ),
    "Event about another node": Call("agent", EVENTS, event(name=OTHER), verb="POST", says="its own node only"),
    "Event about something else": Call(
        "agent", EVENTS, event(kind="NodeRepair"), verb="POST", says="its own node only"
    ),
    "Event in the kubelet's name": Call(
        "agent", EVENTS, event(controller="kubelet"), verb="POST", says="in Sickbay's name only"
    ),
    "core Event about another node": Call(
        "agent", CORE_EVENTS, core_event(name=OTHER), verb="POST", says="its own node only"
    ),
    "core Event in a detector's name": Call(
        "agent", CORE_EVENTS, core_event(component="kernel-monitor"), verb="POST", says="in Sickbay's name only"
    ),
}

BY_CONTROLLER = {
    "approval": Call("controller", NODE, set_labels({DRAIN: "approved"}), given=asked(), says=TO_INQUIRING),
    "approval in another spelling": Call(
        "controller", NODE, set_labels({DRAIN: "Approved"}), given=asked(), says=TO_INQUIRING
    ),
    "approval under ACK's prefix": Call(
        "controller", NODE, set_labels({ACK_DRAIN: "approved"}), given=asked(label=ACK_DRAIN), says=TO_INQUIRING
    ),
    "approval that nobody asked for": Call("controller", NODE, set_labels({DRAIN: "approved"}), says=TO_INQUIRING),
    "approval through the status": Call(
        "controller", STATUS, set_labels({DRAIN: "approved"}), given=asked(), says=TO_INQUIRING
    ),
    "approval with the question in one": Call(
        "controller", NODE, {"metadata": {"labels": {DRAIN: "approved"}, "annotations": inquiry()}}, says=TO_INQUIRING
    ),
    "denial": Call("controller", NODE, set_labels({DRAIN: "denied"}), given=asked(), says=TO_INQUIRING),
    "any other value": Call("controller", NODE, set_labels({DRAIN: "yes"}), given=asked(), says=TO_INQUIRING),
}

BY_KUBELETS = {
    "approval of itself": Call(KUBELET, NODE, set_labels({DRAIN: "approved"}), given=asked(), says=OURS),
    "approval through the status": Call(KUBELET, STATUS, set_labels({DRAIN: "approved"}), given=asked(), says=OURS),
    "approval before it is asked": Call(KUBELET, NODE, set_labels({ACK_DRAIN: "approved"}), says=OURS),
    "taking back a question": Call(KUBELET, NODE, set_labels({DRAIN: None}), given=asked(), says=OURS),
    "removing our mark": Call(KUBELET, NODE, set_annotations({names.QUARANTINE: None}), given=QUARANTINED, says=OURS),
    "changing our mark": Call(KUBELET, NODE, set_annotations({names.QUARANTINE: "{}"}), given=QUARANTINED, says=OURS),
    "setting our mark": Call(KUBELET, NODE, set_annotations(dict(MARK)), says=OURS),
    "a grant": Call(KUBELET, NODE, set_annotations({names.ISOLATE: '["GPU-1"]'}), says=OURS),
    "uncordoning itself": Call(KUBELET, NODE, {"spec": {"unschedulable": None}}, given=QUARANTINED, says=OURS),
}

BY_PEOPLE = {
    "approval for a group they are not in": Call(
        "dev",
        NODE,
        set_labels({DRAIN: "approved"}),
        given=asked("gpu-oncall"),
        says='limited to "groups":["gpu-oncall"]; dev',
    ),
    "denial for a group they are not in": Call(
        "dev", NODE, set_labels({DRAIN: "denied"}), given=asked("gpu-oncall", "sre"), says="dev is in none of them"
    ),
    "approval for a group whose name begins like theirs": Call(
        "dev", NODE, set_labels({DRAIN: "approved"}), given=asked("people-of-the-night"), says="is in none of them"
    ),
    "approval for a group with an odd name": Call(
        "dev", NODE, set_labels({DRAIN: "approved"}), given=asked('a"]people', "b]"), says="is in none of them"
    ),
    "approval in another spelling": Call(
        "dev", NODE, set_labels({DRAIN: "APPROVED"}), given=asked("gpu-oncall"), says="is in none of them"
    ),
    "approval that drops the limits in one go": Call(
        "dev",
        NODE,
        {"metadata": {"labels": {DRAIN: "approved"}, "annotations": {names.INQUIRY: None}}},
        given=asked("gpu-oncall"),
        says="is in none of them",
    ),
    "approval through the status by an admin": Call(
        "admin", STATUS, set_labels({DRAIN: "approved"}), given=asked("gpu-oncall"), says="admin is in none of them"
    ),
    "widening the limits": Call(
        "dev",
        NODE,
        set_annotations(dict(inquiry("people"))),
        given=asked("gpu-oncall"),
        says="written by Sickbay's controller",
    ),
    "a question of their own": Call(
        "dev", NODE, set_annotations(dict(inquiry())), says="remove it to cancel the repair"
    ),
    "a slip of the pen": Call(
        "dev", NODE, set_labels({DRAIN: "aproved"}), given=asked(), says='takes approved or denied, not "aproved"'
    ),
    "approval by a program nobody named": Call(
        "account platform/trainer",
        NODE,
        set_labels({DRAIN: "approved"}),
        given=asked(),
        says="approval.groups of the rule, for example system:serviceaccounts:platform",
    ),
    "approval by a program of an unnamed group": Call(
        "account platform/trainer",
        NODE,
        set_labels({DRAIN: "approved"}),
        given=asked("system:serviceaccounts:other"),
        says="is in none of them",
    ),
}

TASK_WRITES = {
    "making a task by hand": Call(
        "admin", TASKS, task("by-hand", OWN), verb="POST", says="only Sickbay's controller may create NodeTasks"
    ),
    "changing a task's act": Call(
        "admin",
        f"{TASKS}/task-{OWN}",
        {"spec": {"action": "PowerCycle"}},
        says="the spec of a NodeTask cannot be changed",
    ),
    "changing a task's node": Call(
        "admin",
        f"{TASKS}/task-{OWN}",
        {"spec": {"node": {"name": OTHER}}},
        says="the spec of a NodeTask cannot be changed",
    ),
}

ALL = {
    f"{by}: {what}": call
    for by, calls in {
        "agent": BY_AGENTS,
        "controller": BY_CONTROLLER,
        "kubelet": BY_KUBELETS,
        "people": BY_PEOPLE,
        "tasks": TASK_WRITES,
    }.items()
    for what, call in calls.items()
}


def state(control_plane: ControlPlane) -> list[Any]:
    """All that these calls could change."""
    admin = control_plane.admin()
    tasks = admin.get(TASKS).json()["items"]
    made = [item["metadata"]["name"] for path in (LEASES, EVENTS, TASKS) for item in admin.get(path).json()["items"]]
    return [node(control_plane), read(control_plane, f"{NODES}/{OTHER}"), tasks, made]


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in ALL.items()])
async def test_a_policy_refuses_it_and_nothing_changes(guarded: ControlPlane, call: Call) -> None:
    stage(guarded, call.given)
    before = state(guarded)
    answer = await send(guarded, call)
    assert answer.status_code == 422, answer.text
    message = answer.json()["message"]
    assert "ValidatingAdmissionPolicy 'sickbay-" in message
    assert call.says in message
    assert state(guarded) == before


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in ALL.items()])
async def test_a_server_without_the_policies_takes_it(unguarded: ControlPlane, call: Call) -> None:
    stage(unguarded, call.given)
    before = state(unguarded)
    answer = await send(unguarded, call)
    assert answer.status_code in (200, 201), answer.text
    assert state(unguarded) != before
    if call.verb == "POST":
        unguarded.admin().delete(f"{call.path}/{answer.json()['metadata']['name']}")
