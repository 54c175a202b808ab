"""One patch says what changed and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.api.core import Node, NodeCondition, NodeStatus
from sickbay.api.devices import DeviceFaults
from sickbay.api.meta import ObjectMeta
from sickbay.detect.ledger import Wanted
from sickbay.detect.writer import Desired, patch

NOW, BEFORE = "2027-03-01T09:00:00Z", "2027-03-01T08:00:00Z"
DEVICE = DeviceFaults(uuid="GPU-1", pci="0000:3b:00.0", index=0, faults=["gpu.xid.79"], since=BEFORE)
VALUE = '[{"uuid":"GPU-1","pci":"0000:3b:00.0","index":0,"faults":["gpu.xid.79"],"since":"2027-03-01T08:00:00Z"}]'


def node(*conditions: NodeCondition, devices: str | None = None) -> Node:
    annotations = {"other": "x"} | ({} if devices is None else {"sickbay.dev/devices": devices})
    meta = ObjectMeta(name="n", uid="u1", annotations=annotations)
    return Node(metadata=meta, status=NodeStatus(conditions=list(conditions)))


def has(type_: str, status: str, reason: str = "XID79", message: str = "m", since: str = BEFORE) -> NodeCondition:
    return NodeCondition(type=type_, status=status, reason=reason, message=message, last_transition_time=since)


def wants(type_: str, status: str, reason: str = "XID79", message: str = "m", since: str = BEFORE) -> Wanted:
    return Wanted(type_, status, reason, message, since, critical=True)


def conditions_of(body: dict[str, Any] | None) -> list[tuple[str, str, str]]:
    entries = (body or {}).get("status", {}).get("conditions", [])
    return [(e["type"], e["status"], e["lastTransitionTime"]) for e in entries]


def test_a_node_that_says_all_is_not_written() -> None:
    found = node(has("A", "True"), has("B", "False", "Rebooted"), devices=VALUE)
    desired = Desired([wants("A", "True"), wants("B", "False", "Recovered", "other words")], [DEVICE])
    assert patch(found, desired, NOW) is None


def test_conditions_and_devices_go_in_one_patch_that_names_the_uid() -> None:
    body = patch(node(), Desired([wants("A", "True")], [DEVICE]), NOW)
    assert body is not None
    assert body["metadata"] == {"uid": "u1", "annotations": {"sickbay.dev/devices": VALUE}}
    assert conditions_of(body) == [("A", "True", BEFORE)]


def test_an_empty_device_list_takes_the_annotation_away() -> None:
    body = patch(node(devices=VALUE), Desired([], []), NOW)
    assert body == {"metadata": {"uid": "u1", "annotations": {"sickbay.dev/devices": None}}}


@pytest.mark.parametrize(
    ("old", "new", "time"),
    [
        pytest.param(has("A", "False", since="2027-03-01T07:00:00Z"), wants("A", "True"), BEFORE, id="turns bad"),
        pytest.param(has("A", "True"), wants("A", "True", message="more"), BEFORE, id="only words change"),
        pytest.param(has("A", "Unknown", since=NOW), wants("A", "True"), BEFORE, id="was set unknown"),
        pytest.param(has("A", "True"), wants("A", "False", "Rebooted", since=NOW), NOW, id="turns good"),
        pytest.param(has("A", "Unknown"), wants("A", "False", "Recovered", since=""), NOW, id="unknown, and good"),
    ],
)
def test_the_time_of_a_status_is_when_it_began(old: NodeCondition, new: Wanted, time: str) -> None:
    assert conditions_of(patch(node(old), Desired([new], []), NOW)) == [("A", new.status, time)]


def test_conditions_of_others_are_not_touched() -> None:
    found = node(has("Ready", "True", "KubeletReady"), has("KernelDeadlock", "True", "DockerHung"))
    assert conditions_of(patch(found, Desired([wants("A", "True")], []), NOW)) == [("A", "True", BEFORE)]
