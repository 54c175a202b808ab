"""What must pass with the policies in force: heartbeats above all, findings, people's hands, the controller's work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sickbay.api import names
from tests.deploy.test_refused import core_event, event
from tests.deploy.world import (
    ACK_DRAIN,
    CORE_EVENTS,
    DRAIN,
    EVENTS,
    JSON_PATCH,
    LEASES,
    MARK,
    MERGE,
    NODE,
    OWN,
    QUARANTINED,
    STATUS,
    STRATEGIC,
    TASKS,
    WITHDRAWN,
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
DEVICES = '[{"uuid":"GPU-1","pci":"0000:3b:00.0","index":2,"faults":["gpu.xid.79"],"since":"2026-01-01T00:00:00Z"}]'
BARE: dict[str, Any] = {"metadata": {"labels": None, "annotations": None}, "spec": {"taints": None}}
SERIES = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
HEARTBEAT = conditions(condition("Ready", "True"), condition("PIDPressure", "False"))

Check = Callable[[dict[str, Any]], object]


def label(key: str) -> Check:
    return lambda seen: seen["metadata"].get("labels", {}).get(key)


def annotation(key: str) -> Check:
    return lambda seen: seen["metadata"].get("annotations", {}).get(key)


def status_of(name: str) -> Check:
    return lambda seen: {each["type"]: each["status"] for each in seen["status"]["conditions"]}.get(name)


def unschedulable(seen: dict[str, Any]) -> object:
    return seen["spec"].get("unschedulable", False)


def phase(seen: dict[str, Any]) -> object:
    return seen["status"]["phase"]


def agent(body: Any, given: dict[str, Any] | None = None, path: str = STATUS, content: str = STRATEGIC) -> Call:
    return Call("agent", path, body, content=content, given=given or {})


# name: (call, what is looked at afterwards, what it must be)
PASSES: dict[str, tuple[Call, Check, object]] = {
    "agent: first finding": (
        agent(conditions(condition("NvidiaXID79Error"))),
        status_of("NvidiaXID79Error"),
        "True",
    ),
    "agent: finding on a bare node": (agent(conditions(condition("X")), BARE), status_of("X"), "True"),
    "agent: finding under quarantine": (agent(conditions(condition("X")), QUARANTINED), status_of("X"), "True"),
    "agent: that it sees": (
        agent(conditions(condition(names.DETECTION_BLIND, "False"))),
        status_of(names.DETECTION_BLIND),
        "False",
    ),
    "agent: device list": (agent(set_annotations({names.DEVICES: DEVICES})), annotation(names.DEVICES), DEVICES),
    "agent: device list on a bare node": (
        agent(set_annotations({names.DEVICES: DEVICES}), BARE),
        annotation(names.DEVICES),
        DEVICES,
    ),
    "agent: clearing the device list": (
        agent(set_annotations({names.DEVICES: None}), set_annotations({names.DEVICES: DEVICES})),
        annotation(names.DEVICES),
        None,
    ),
    "agent: finding and device list in one": (
        agent({**conditions(condition("X")), **set_annotations({names.DEVICES: DEVICES})}),
        lambda seen: (status_of("X")(seen), annotation(names.DEVICES)(seen)),
        ("True", DEVICES),
    ),
    "agent: report on its task": (
        agent({"status": {"phase": "Running"}}, path=f"{TASKS}/task-{OWN}/status", content=MERGE),
        phase,
        "Running",
    ),
    "kubelet: heartbeat": (Call(KUBELET, STATUS, HEARTBEAT, content=STRATEGIC), status_of("PIDPressure"), "False"),
    "kubelet: heartbeat of a bare node": (
        Call(KUBELET, STATUS, HEARTBEAT, content=STRATEGIC, given=BARE),
        status_of("PIDPressure"),
        "False",
    ),
    "kubelet: heartbeat under quarantine": (
        Call(KUBELET, STATUS, HEARTBEAT, content=STRATEGIC, given=QUARANTINED),
        status_of("PIDPressure"),
        "False",
    ),
    "kubelet: heartbeat while approval is asked": (
        Call(KUBELET, STATUS, HEARTBEAT, content=STRATEGIC, given=asked("gpu-oncall")),
        status_of("PIDPressure"),
        "False",
    ),
    "kubelet: label of its own": (Call(KUBELET, NODE, set_labels({"example.com/a": "b"})), label("example.com/a"), "b"),
    "kubelet: annotation of its own under quarantine": (
        Call(KUBELET, NODE, set_annotations({"example.com/a": "b"}), given=QUARANTINED),
        annotation("example.com/a"),
        "b",
    ),
    "kubelet: uncordon where we hold nothing": (
        Call(KUBELET, NODE, {"spec": {"unschedulable": None}}, given={"spec": {"unschedulable": True}}),
        unschedulable,
        False,
    ),
    "detector: condition of its own": (
        Call("admin", STATUS, conditions(condition("KernelDeadlock")), content=STRATEGIC, given=BARE),
        status_of("KernelDeadlock"),
        "True",
    ),
    "people: approve": (Call("dev", NODE, set_labels({DRAIN: "approved"}), given=asked()), label(DRAIN), "approved"),
    "people: deny": (Call("dev", NODE, set_labels({DRAIN: "denied"}), given=asked()), label(DRAIN), "denied"),
    "people: approve as ACK spells it": (
        Call("dev", NODE, set_labels({ACK_DRAIN: "Approved"}), given=asked(label=ACK_DRAIN)),
        label(ACK_DRAIN),
        "Approved",
    ),
    "people: approve for their group": (
        Call("alice", NODE, set_labels({DRAIN: "approved"}), given=asked("sre", "gpu-oncall")),
        label(DRAIN),
        "approved",
    ),
    "people: approve as an administrator": (
        Call("admin", NODE, set_labels({DRAIN: "approved"}), given=asked()),
        label(DRAIN),
        "approved",
    ),
    "people: label before it is asked": (Call("dev", NODE, set_labels({DRAIN: "approved"})), label(DRAIN), "approved"),
    "people: uncordon": (
        Call("dev", NODE, {"spec": {"unschedulable": None}}, given=QUARANTINED),
        unschedulable,
        False,
    ),
    "people: uncordon while another group is asked": (
        Call("dev", NODE, {"spec": {"unschedulable": None}}, given=asked("gpu-oncall")),
        unschedulable,
        False,
    ),
    "people: remove our mark": (
        Call("dev", NODE, set_annotations({names.QUARANTINE: None}), given=QUARANTINED),
        annotation(names.QUARANTINE),
        None,
    ),
    "people: remove our question": (
        Call(
            "dev",
            NODE,
            WITHDRAWN,
            given=asked("sre"),
        ),
        lambda seen: (label(DRAIN)(seen), annotation(names.INQUIRY)(seen)),
        (None, None),
    ),
    "people: taint": (
        Call("dev", NODE, {"spec": {"taints": [{"key": "ops/hold", "effect": "NoSchedule"}]}}, given=QUARANTINED),
        lambda seen: [taint["key"] for taint in seen["spec"]["taints"]],
        ["ops/hold"],
    ),
    "program: approve where its group is named": (
        Call(
            "account platform/trainer",
            NODE,
            set_labels({DRAIN: "approved"}),
            given=asked("gpu-oncall", "system:serviceaccounts:platform"),
        ),
        label(DRAIN),
        "approved",
    ),
    "program: label of a step nobody asked about": (
        Call("account platform/trainer", NODE, set_labels({ACK_DRAIN: "approved"})),
        label(ACK_DRAIN),
        "approved",
    ),
    "controller: ask": (
        Call("controller", NODE, {"metadata": {"labels": {DRAIN: "inquiring"}, "annotations": inquiry("sre")}}),
        lambda seen: (label(DRAIN)(seen), annotation(names.INQUIRY)(seen)),
        ("inquiring", inquiry("sre")[names.INQUIRY]),
    ),
    "controller: ask over an old approval": (
        Call(
            "controller",
            NODE,
            {"metadata": {"labels": {DRAIN: "inquiring"}, "annotations": inquiry()}},
            given=set_labels({DRAIN: "approved"}),
        ),
        label(DRAIN),
        "inquiring",
    ),
    "controller: take the question back": (
        Call(
            "controller",
            NODE,
            WITHDRAWN,
            given=asked(),
        ),
        lambda seen: (label(DRAIN)(seen), annotation(names.INQUIRY)(seen)),
        (None, None),
    ),
    "controller: quarantine": (
        Call(
            "controller",
            NODE,
            [
                {"op": "add", "path": "/metadata/annotations/sickbay.dev~1quarantine", "value": MARK[names.QUARANTINE]},
                {"op": "add", "path": "/spec/unschedulable", "value": True},
            ],
            content=JSON_PATCH,
        ),
        lambda seen: (annotation(names.QUARANTINE)(seen), unschedulable(seen)),
        (MARK[names.QUARANTINE], True),
    ),
    "controller: silence of an agent": (
        Call("controller", STATUS, conditions(condition(names.DETECTION_BLIND, "Unknown")), content=STRATEGIC),
        status_of(names.DETECTION_BLIND),
        "Unknown",
    ),
    "controller: state of the drain": (
        Call("controller", STATUS, conditions(condition("Drained")), content=STRATEGIC),
        status_of("Drained"),
        "True",
    ),
}


@pytest.mark.parametrize(("call", "look", "wanted"), [pytest.param(*case, id=name) for name, case in PASSES.items()])
async def test_it_passes_and_takes_effect(guarded: ControlPlane, call: Call, look: Check, wanted: object) -> None:
    stage(guarded, call.given)
    answer = await send(guarded, call)
    assert answer.status_code == 200, answer.text
    assert look(read(guarded, call.path.removesuffix("/status"))) == wanted


async def test_a_group_with_an_odd_name_may_answer_when_it_is_named(guarded: ControlPlane) -> None:
    """Groups of an identity provider hold backslashes, quotes and brackets; the annotation is JSON."""
    group = 'corp\\gpu "on]call"'
    stage(guarded, asked("sre", group))
    headers = {"Impersonate-User": "ann", "Impersonate-Group": group, "Content-Type": MERGE}
    guarded.kubectl("create", "clusterrolebinding", "odd-group", "--clusterrole=sickbay-approver", f"--group={group}")
    for _ in range(50):
        answer = guarded.admin().patch(
            NODE, content=f'{{"metadata":{{"labels":{{"{DRAIN}":"approved"}}}}}}', headers=headers
        )
        if answer.status_code != 403:
            break
    assert answer.status_code == 200, answer.text
    assert label(DRAIN)(node(guarded)) == "approved"


async def test_a_bare_node_sends_its_whole_status(guarded: ControlPlane) -> None:
    """As a kubelet's PUT does, from what it read before."""
    stage(guarded, BARE)
    whole = node(guarded)
    whole["status"]["conditions"] = [condition("Ready", "False")]
    answer = await send(guarded, Call(KUBELET, STATUS, whole, verb="PUT"))
    assert answer.status_code == 200, answer.text
    assert status_of("Ready")(node(guarded)) == "False"


@pytest.mark.parametrize("who", [KUBELET, "agent"])
async def test_a_node_as_large_as_nodes_get_does_not_exceed_the_cost_limits(guarded: ControlPlane, who: str) -> None:
    """An expression that runs out of budget refuses the write; annotations are limited to 256 KiB in all."""
    stage(
        guarded,
        {
            "metadata": {
                "labels": {f"example.com/label-{n}": "x" * 60 for n in range(1000)},
                "annotations": {f"example.com/annotation-{n}": "x" * 100 for n in range(1900)} | MARK,
            }
        },
    )
    found = conditions(*(condition(f"Fault{n}") for n in range(100)))
    answer = await send(guarded, Call(who, STATUS, found, content=STRATEGIC))
    assert answer.status_code == 200, answer.text
    assert status_of("Fault99")(node(guarded)) == "True"


async def test_a_kubelet_registers_its_node_with_any_label(guarded: ControlPlane) -> None:
    stage(guarded, {})
    guarded.admin().delete(NODE)
    body = {"metadata": {"name": OWN, "labels": {DRAIN: "approved", "example.com/a": "b"}}}
    answer = await send(guarded, Call(KUBELET, "/api/v1/nodes", body, verb="POST"))
    assert answer.status_code == 201, answer.text


async def test_an_agent_makes_and_renews_its_lease(guarded: ControlPlane) -> None:
    stage(guarded, {})
    made = await send(
        guarded, Call("agent", LEASES, {"metadata": {"name": OWN}, "spec": {"holderIdentity": "a"}}, "POST")
    )
    assert made.status_code == 201, made.text
    renewed = await send(guarded, Call("agent", f"{LEASES}/{OWN}", {"spec": {"holderIdentity": "b"}}))
    assert renewed.status_code == 200, renewed.text
    assert read(guarded, f"{LEASES}/{OWN}")["spec"]["holderIdentity"] == "b"


@pytest.mark.parametrize(
    ("path", "body", "more"),
    [
        pytest.param(
            EVENTS, event(), {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}}, id="new"
        ),
        pytest.param(CORE_EVENTS, core_event(), {"count": 2}, id="core"),
    ],
)
async def test_an_agent_tells_and_repeats_an_event(
    guarded: ControlPlane, path: str, body: dict[str, Any], more: dict[str, Any]
) -> None:
    stage(guarded, {})
    one = f"{path}/{body['metadata']['name']}"
    guarded.admin().delete(one)
    made = await send(guarded, Call("agent", path, body, "POST"))
    assert made.status_code == 201, made.text
    repeated = await send(guarded, Call("agent", one, more))
    assert repeated.status_code == 200, repeated.text
    seen = read(guarded, one)
    assert more.items() <= seen.items()


async def test_an_agent_may_not_take_over_anothers_event(guarded: ControlPlane) -> None:
    stage(guarded, {})
    body = event(name="node-2")
    guarded.admin().delete(f"{EVENTS}/{body['metadata']['name']}")
    guarded.admin().post(EVENTS, json=body)
    answer = await send(guarded, Call("agent", f"{EVENTS}/{body['metadata']['name']}", {"series": SERIES}))
    assert answer.status_code == 422, answer.text
    assert "sickbay-agent-events" in answer.text


async def test_the_controller_makes_and_deletes_tasks(guarded: ControlPlane) -> None:
    stage(guarded, {})
    made = await send(guarded, Call("controller", TASKS, task("fresh", OWN), "POST"))
    assert made.status_code == 201, made.text
    gone = await send(guarded, Call("controller", f"{TASKS}/fresh", {}, "DELETE"))
    assert gone.status_code == 200, gone.text


async def test_an_admin_may_delete_and_garbage_collection_may_unfinalize_tasks(guarded: ControlPlane) -> None:
    stage(guarded, {})
    owned = await send(
        guarded, Call("admin", f"{TASKS}/task-{OWN}", {"metadata": {"finalizers": ["foregroundDeletion"]}})
    )
    assert owned.status_code == 200, owned.text
    gone = await send(guarded, Call("admin", f"{TASKS}/task-{OWN}", {}, "DELETE"))
    assert gone.status_code == 200, gone.text
    freed = await send(guarded, Call("admin", f"{TASKS}/task-{OWN}", {"metadata": {"finalizers": None}}))
    assert freed.status_code == 200, freed.text
