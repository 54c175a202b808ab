"""The only way to write Nodes, so that nothing foreign is ever lost.

Metadata and spec change by JSON patch with a test on UID and resourceVersion: each operation touches one label, one
annotation, one taint. Taints are one atomic list on the API server, so they are patched by position, which the test on
the version makes safe; a foreign taint is never rewritten, whatever fields it may have. Conditions change by strategic
merge on the status subresource, where the list merges by type, so that the kubelet's heartbeats do not conflict.
Never PUT, never server-side apply.

Builders of operations are pure. They take the Node as it was read and name only what differs, so an empty list means
that nothing is to be written:

    ops = annotation_ops(node, {names.QUARANTINE: text}) + unschedulable_ops(node, True)
    node = await patch_node(client, node, ops)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from sickbay.api.core import Node, NodeCondition, Taint
from sickbay.api.kinds import NODE
from sickbay.kube import errors
from sickbay.kube.client import Client

Op = dict[str, Any]
"""One operation of a JSON patch."""


def escape(key: str) -> str:
    """A key as one token of a JSON pointer (RFC 6901): label keys hold slashes."""
    return key.replace("~", "~0").replace("/", "~1")


def label_ops(node: Node, changes: Mapping[str, str | None]) -> list[Op]:
    """Operations that give labels these values; None removes."""
    return map_ops("/metadata/labels", node.metadata.labels, changes)


def annotation_ops(node: Node, changes: Mapping[str, str | None]) -> list[Op]:
    """Operations that give annotations these values; None removes."""
    return map_ops("/metadata/annotations", node.metadata.annotations, changes)


def map_ops(path: str, current: Mapping[str, str], changes: Mapping[str, str | None]) -> list[Op]:
    """Operations that change single entries of a map of texts.

    An absent map reads as an empty one, and a patch cannot add into what is absent; so an empty map is created first.
    """
    ops: list[Op] = []
    if not current and any(value is not None for value in changes.values()):
        ops.append({"op": "add", "path": path, "value": {}})
    for key, value in changes.items():
        if value is None and key in current:
            ops.append({"op": "remove", "path": f"{path}/{escape(key)}"})
        elif value is not None and current.get(key) != value:
            ops.append({"op": "add", "path": f"{path}/{escape(key)}", "value": value})
    return ops


def unschedulable_ops(node: Node, wanted: bool) -> list[Op]:
    """Cordon or uncordon. Uncordoned is the absent field, as `kubectl uncordon` leaves it."""
    if node.spec.unschedulable == wanted:
        return []
    if wanted:
        return [{"op": "add", "path": "/spec/unschedulable", "value": True}]
    return [{"op": "remove", "path": "/spec/unschedulable"}]


def taint_ops(node: Node, add: Iterable[Taint] = (), remove: Iterable[tuple[str, str]] = ()) -> list[Op]:
    """Operations that set and take away taints, which are told apart by (key, effect); all others stay as they are.

    A taint to add that is there with another value is replaced in place; one with the same value is left alone.
    """
    current = node.spec.taints
    position = {(taint.key, taint.effect): index for index, taint in enumerate(current)}
    leaving = {position[each] for each in remove if each in position}
    changed: list[Op] = []
    fresh: dict[tuple[str, str], Taint] = {}
    for taint in add:
        index = position.get((taint.key, taint.effect))
        if index is None:
            fresh[taint.key, taint.effect] = taint
            continue
        leaving.discard(index)
        if current[index].value != taint.value:
            changed.append({"op": "replace", "path": f"/spec/taints/{index}", "value": msgspec.to_builtins(taint)})
    # From the back, so that the positions before stay what they were.
    removed = [{"op": "remove", "path": f"/spec/taints/{index}"} for index in sorted(leaving, reverse=True)]
    return changed + removed + _append_taints(list(fresh.values()), absent=not current)


def _append_taints(taints: list[Taint], absent: bool) -> list[Op]:
    values = [msgspec.to_builtins(taint) for taint in taints]
    if absent:
        return [{"op": "add", "path": "/spec/taints", "value": values}] if values else []
    return [{"op": "add", "path": "/spec/taints/-", "value": value} for value in values]


def guard_ops(node: Node) -> list[Op]:
    """The tests that make a patch conditional on the Node being the one, and as, it was read."""
    meta = node.metadata
    if not meta.uid or not meta.resource_version:
        raise ValueError(f"node {meta.name!r} was not read from the API server: no UID or resourceVersion")
    return [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
    ]


async def patch_node(client: Client, node: Node, ops: Sequence[Op]) -> Node:
    """Change metadata and spec of the Node as it was read. No operations: nothing is sent.

    Returns the Node as written; give it to `Informer.observe_write`. Raises Conflict when the Node has changed since
    (read it again and decide again) or another one has its name.
    """
    if not ops:
        return node
    return await client.patch_json(NODE, node.name, [*guard_ops(node), *ops])


def condition(
    node: Node | None, type_: str, status: str, reason: str, message: str, now: str, heartbeat: bool = False
) -> NodeCondition | None:
    """The condition to write, or None where it already says so.

    `now` is RFC 3339. `lastTransitionTime` moves only when the status changes. With `heartbeat` the condition is
    written even where only `lastHeartbeatTime` differs.
    """
    old = node.condition(type_) if node is not None else None
    same = old is not None and (old.status, old.reason, old.message) == (status, reason, message)
    if same and not heartbeat:
        return None
    since = old.last_transition_time if old is not None and old.status == status and old.last_transition_time else now
    return NodeCondition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_heartbeat_time=now,
        last_transition_time=since,
    )


def conditions_patch(conditions: Iterable[NodeCondition], remove: Iterable[str] = (), uid: str = "") -> dict[str, Any]:
    """The strategic merge patch that sets these conditions, removes the others named, and touches nothing else."""
    entries = [_condition_entry(each) for each in conditions]
    entries += [{"$patch": "delete", "type": type_} for type_ in remove]
    patch: dict[str, Any] = {"status": {"conditions": entries}}
    if uid:
        patch["metadata"] = {"uid": uid}
    return patch


def _condition_entry(condition: NodeCondition) -> dict[str, str]:
    """With reason and message even where empty: a merge would leave the old ones standing."""
    entry = {"type": condition.type, "status": condition.status}
    entry |= {"reason": condition.reason, "message": condition.message}
    if condition.last_heartbeat_time:
        entry["lastHeartbeatTime"] = condition.last_heartbeat_time
    if condition.last_transition_time:
        entry["lastTransitionTime"] = condition.last_transition_time
    return entry


async def set_conditions(
    client: Client, name: str, conditions: Iterable[NodeCondition], remove: Iterable[str] = (), uid: str = ""
) -> Node:
    """Set and remove single conditions of a Node.

    With `uid` it must still be that Node: raises Conflict when another one has its name by now.
    """
    body = conditions_patch(conditions, remove, uid)
    try:
        return await client.patch_strategic(NODE, name, body, subresource="status")
    except errors.Invalid as error:
        # The server refuses a change of the UID as invalid; that another Node has the name is the likely reason.
        if uid and (await client.get(NODE, name)).uid != uid:
            raise errors.Conflict(409, "Conflict", f"node {name}: another one has its name by now") from error
        raise
