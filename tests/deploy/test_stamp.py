"""Who changed what is ours stands on the node, while it is ours; ordinary nodes are never touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sickbay.api import names
from tests.deploy.world import (
    ACK_DRAIN,
    DRAIN,
    JSON_PATCH,
    MARK,
    NODE,
    QUARANTINED,
    STATUS,
    STRATEGIC,
    WITHDRAWN,
    Call,
    asked,
    condition,
    conditions,
    inquiry,
    node,
    send,
    set_annotations,
    set_labels,
    stage,
)
from tests.support.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane

UNCORDON: dict[str, Any] = {"spec": {"unschedulable": None}}
CORDON: dict[str, Any] = {"spec": {"unschedulable": True}}
ONLY_OURS: dict[str, Any] = {"metadata": {"annotations": {"example.com/note": None, **MARK}}}
FORGED = json.dumps({"user": "kured", "what": "unschedulable"})

# name: (call, user, what)
STAMPED: dict[str, tuple[Call, str, str]] = {
    "uncordon": (Call("dev", NODE, UNCORDON, given=QUARANTINED), "dev", "unschedulable"),
    "cordon of a node we hold uncordoned": (
        Call("dev", NODE, CORDON, given={"metadata": {"annotations": MARK}}),
        "dev",
        "unschedulable",
    ),
    "uncordon while the drain is asked": (Call("dev", NODE, UNCORDON, given=asked()), "dev", "unschedulable"),
    "uncordon by known automation": (
        Call("as system:serviceaccount:kured:kured", NODE, UNCORDON, given=QUARANTINED),
        "system:serviceaccount:kured:kured",
        "unschedulable",
    ),
    "approval": (Call("alice", NODE, set_labels({DRAIN: "approved"}), given=asked("gpu-oncall")), "alice", DRAIN),
    "approval under ACK's prefix": (
        Call("dev", NODE, set_labels({ACK_DRAIN: "Approved"}), given=asked(label=ACK_DRAIN)),
        "dev",
        ACK_DRAIN,
    ),
    "approval through the status": (
        Call("admin", STATUS, set_labels({DRAIN: "approved"}), given=asked()),
        "admin",
        DRAIN,
    ),
    "approval by a program": (
        Call(
            "account platform/trainer",
            NODE,
            set_labels({DRAIN: "approved"}),
            given=asked("system:serviceaccounts:platform"),
        ),
        "system:serviceaccount:platform:trainer",
        DRAIN,
    ),
    "removal of the mark": (
        Call("dev", NODE, set_annotations({names.QUARANTINE: None}), given=QUARANTINED),
        "dev",
        names.QUARANTINE,
    ),
    "removal of the mark, the last annotation there is": (
        Call("dev", NODE, set_annotations({names.QUARANTINE: None}), given=ONLY_OURS),
        "dev",
        names.QUARANTINE,
    ),
    "change of the mark": (
        Call("dev", NODE, set_annotations({names.QUARANTINE: "{}"}), given=QUARANTINED),
        "dev",
        names.QUARANTINE,
    ),
    "a mark of their own": (Call("dev", NODE, set_annotations(dict(MARK))), "dev", names.QUARANTINE),
    "removal of the question": (Call("dev", NODE, WITHDRAWN, given=asked()), "dev", f"{names.INQUIRY},{DRAIN}"),
    "a grant": (
        Call("dev", NODE, set_annotations({names.ISOLATE: "[]"}), given=QUARANTINED),
        "dev",
        names.ISOLATE,
    ),
    "removal of our taint": (
        Call(
            "dev",
            NODE,
            {"spec": {"taints": [{"key": "example.com/theirs", "effect": "NoSchedule"}]}},
            given=QUARANTINED,
        ),
        "dev",
        "taint",
    ),
    "everything at once": (
        Call(
            "dev",
            NODE,
            {"metadata": {"annotations": {names.QUARANTINE: None}}, "spec": {"unschedulable": None, "taints": None}},
            given=QUARANTINED,
        ),
        "dev",
        f"unschedulable,taint,{names.QUARANTINE}",
    ),
    "a stamp of another": (
        Call("dev", NODE, set_annotations({names.CHANGED_BY: FORGED}), given=QUARANTINED),
        "dev",
        names.CHANGED_BY,
    ),
    "a stamp of another with the deed": (
        Call("dev", NODE, {**UNCORDON, **set_annotations({names.CHANGED_BY: FORGED})}, given=QUARANTINED),
        "dev",
        f"unschedulable,{names.CHANGED_BY}",
    ),
    "a name with quotes and backslashes": (
        Call('as CORP\\ann "the hand" lee', NODE, UNCORDON, given=QUARANTINED),
        'CORP\\ann "the hand" lee',
        "unschedulable",
    ),
}


@pytest.mark.parametrize(("call", "user", "what"), [pytest.param(*case, id=name) for name, case in STAMPED.items()])
async def test_the_hand_is_named(guarded: ControlPlane, call: Call, user: str, what: str) -> None:
    stage(guarded, call.given)
    answer = await send(guarded, call)
    assert answer.status_code == 200, answer.text
    assert json.loads(node(guarded)["metadata"]["annotations"][names.CHANGED_BY]) == {"user": user, "what": what}


UNSTAMPED = {
    "cordon of an ordinary node": Call("dev", NODE, CORDON),
    "uncordon of an ordinary node": Call("dev", NODE, UNCORDON, given=CORDON),
    "taint of an ordinary node": Call(
        "dev", NODE, {"spec": {"taints": [{"key": "sickbay.dev/quarantine", "effect": "NoSchedule"}]}}
    ),
    "label before it is asked": Call("dev", NODE, set_labels({DRAIN: "approved"})),
    "something of their own on a node we hold": Call(
        "dev",
        NODE,
        {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {"taints": None}},
        given={"metadata": {"annotations": MARK}},
    ),
    "heartbeat on a node we hold": Call(
        "system:node:node-1",
        STATUS,
        conditions(condition("PIDPressure", "False")),
        content=STRATEGIC,
        given=QUARANTINED,
    ),
    "device list of the agent": Call(
        "agent", STATUS, set_annotations({names.DEVICES: "[]"}), content=STRATEGIC, given=QUARANTINED
    ),
    "quarantine by the controller": Call(
        "controller",
        NODE,
        [
            {"op": "add", "path": "/metadata/annotations/sickbay.dev~1quarantine", "value": "{}"},
            {"op": "add", "path": "/spec/unschedulable", "value": True},
        ],
        content=JSON_PATCH,
    ),
    "question by the controller": Call(
        "controller",
        NODE,
        {"metadata": {"labels": {DRAIN: "inquiring"}, "annotations": inquiry()}},
        given=QUARANTINED,
    ),
    "release by the controller": Call(
        "controller",
        NODE,
        {"metadata": {"annotations": {names.QUARANTINE: None}}, "spec": {"unschedulable": None}},
        given=QUARANTINED,
    ),
}


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in UNSTAMPED.items()])
async def test_nobody_is_named(guarded: ControlPlane, call: Call) -> None:
    stage(guarded, call.given)
    before = node(guarded)
    answer = await send(guarded, call)
    assert answer.status_code == 200, answer.text
    after = node(guarded)
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    assert names.CHANGED_BY not in after["metadata"].get("annotations", {})


async def test_a_stale_spec_sent_to_the_status_is_no_uncordon(guarded: ControlPlane) -> None:
    """Such a PUT comes from controllers that read the node before we cordoned it; the server drops its spec."""
    stage(guarded, QUARANTINED)
    whole = node(guarded)
    whole["spec"] = {}
    whole["status"]["conditions"] = [condition("Ready", "False")]
    answer = await send(guarded, Call("admin", STATUS, whole, verb="PUT"))
    assert answer.status_code == 200, answer.text
    after = node(guarded)
    assert after["spec"]["unschedulable"] is True
    assert names.CHANGED_BY not in after["metadata"]["annotations"]


async def test_what_stood_beside_is_kept(guarded: ControlPlane) -> None:
    stage(guarded, QUARANTINED)
    before = node(guarded)
    await send(guarded, Call("dev", NODE, UNCORDON))
    after = node(guarded)
    annotations = dict(after["metadata"]["annotations"])
    assert annotations.pop(names.CHANGED_BY)
    assert annotations == before["metadata"]["annotations"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert [taint["key"] for taint in after["spec"]["taints"]][:2] == [
        taint["key"] for taint in before["spec"]["taints"]
    ][:2]


async def test_the_latest_hand_stands(guarded: ControlPlane) -> None:
    stage(guarded, asked())
    await send(guarded, Call("alice", NODE, set_labels({DRAIN: "approved"})))
    await send(guarded, Call("dev", NODE, UNCORDON))
    stamp = json.loads(node(guarded)["metadata"]["annotations"][names.CHANGED_BY])
    assert stamp == {"user": "dev", "what": "unschedulable"}


async def test_kubectl_uncordon_is_stamped(guarded: ControlPlane) -> None:
    """The client that leaves nothing at all in managedFields."""
    stage(guarded, QUARANTINED)
    result = guarded.kubectl("uncordon", "node-1", user="dev")
    assert result.returncode == 0, result.stderr
    assert json.loads(node(guarded)["metadata"]["annotations"][names.CHANGED_BY])["user"] == "dev"


async def test_the_controller_takes_the_stamp_away_with_its_marks(guarded: ControlPlane) -> None:
    stage(guarded, QUARANTINED)
    await send(guarded, Call("dev", NODE, UNCORDON))
    removed = set_annotations({names.QUARANTINE: None, names.CHANGED_BY: None})
    answer = await send(guarded, Call("controller", NODE, removed))
    assert answer.status_code == 200, answer.text
    assert node(guarded)["metadata"]["annotations"] == {"example.com/note": "kept"}


async def test_without_the_policy_nobody_is_named(unguarded: ControlPlane) -> None:
    stage(unguarded, QUARANTINED)
    await send(unguarded, Call("dev", NODE, UNCORDON))
    after = node(unguarded)
    assert not after["spec"].get("unschedulable")
    assert names.CHANGED_BY not in after["metadata"]["annotations"]
