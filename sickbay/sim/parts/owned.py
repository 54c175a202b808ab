"""What controllers that own pods have in common: making them from a template, and finding their own."""

from __future__ import annotations

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.store import Store
from sickbay.sim.hand import PODS
from sickbay.sim.parts.disruption import controller_of

ENDED = ("Succeeded", "Failed")


def phase_of(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def is_active(pod: Obj) -> bool:
    """Neither ended nor on its way out."""
    return phase_of(pod) not in ENDED and not pod["metadata"].get("deletionTimestamp")


def is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def own_pods(store: Store, owner: Obj) -> list[Obj]:
    """Pods whose controller is this very object, in order of name."""
    meta = owner["metadata"]
    return [p for p in store.list(PODS, meta["namespace"]) if controller_of(p).get("uid") == meta["uid"]]


def reference_to(owner: Obj) -> Obj:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from(template: Obj, owner: Obj, labels: dict[str, str] | None = None) -> Obj:
    """A pod of a controller; the caller names it."""
    meta = template.get("metadata") or {}
    return {
        "metadata": {
            "namespace": owner["metadata"]["namespace"],
            "labels": {**(meta.get("labels") or {}), **(labels or {})},
            "annotations": dict(meta.get("annotations") or {}),
            "ownerReferences": [reference_to(owner)],
        },
        "spec": dict(template.get("spec") or {}),
    }


def key_of_owner(pod: Obj | None, kind: str) -> str:
    """`namespace/name` of the pod's controller where that is of this kind, else empty."""
    if pod is None:
        return ""
    owner = controller_of(pod)
    return f"{pod['metadata']['namespace']}/{owner['name']}" if owner.get("kind") == kind else ""
