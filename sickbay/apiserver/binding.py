"""Binding a pod to a node: the one way `spec.nodeName` gets set after creation."""

from __future__ import annotations

from sickbay.apiserver.errors import Obj, conflict


def bound(pod: Obj, node: str, uid: str, now: str) -> Obj:
    """The pod, assigned. Raises StatusError(409) when it is assigned, being deleted, or another pod of that name."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    name = meta["name"]
    if uid and uid != meta["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
        raise conflict("pods/binding", name, why)
    if meta.get("deletionTimestamp"):
        raise conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise conflict("pods/binding", name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    status = pod.get("status") or {}
    others = [entry for entry in status.get("conditions") or () if entry.get("type") != "PodScheduled"]
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    return {**pod, "spec": {**spec, "nodeName": node}, "status": {**status, "conditions": [*others, condition]}}
