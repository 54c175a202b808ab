"""Taints and tolerations, and node affinity: the rules that scheduler, evictor and DaemonSet controller share."""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.api import nodeterms
from sickbay.apiserver.errors import Obj
from sickbay.sim.hand import labels_of


def tolerates(toleration: Obj, taint: Obj) -> bool:
    """After `Toleration.ToleratesTaint` of core/v1."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key, operator = toleration.get("key", ""), toleration.get("operator") or "Equal"
    if key and key != taint["key"]:
        return False
    if not key and operator != "Exists":
        return False
    return operator == "Exists" or toleration.get("value", "") == taint.get("value", "")


def untolerated(pod_spec: Obj, taints: Iterable[Obj], effects: tuple[str, ...]) -> Obj | None:
    """The first taint of these effects that the pod does not tolerate."""
    tolerations = pod_spec.get("tolerations") or ()
    for taint in taints:
        if taint.get("effect") in effects and not any(tolerates(t, taint) for t in tolerations):
            return taint
    return None


def taints_of(node: Obj) -> list[Obj]:
    return (node.get("spec") or {}).get("taints") or []


def fits_affinity(pod_spec: Obj, node: Obj) -> bool:
    """nodeSelector and the required node affinity."""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in (pod_spec.get("nodeSelector") or {}).items()):
        return False
    required = ((pod_spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not required:
        return True
    name = node["metadata"]["name"]
    return any(nodeterms.fits(term, name, labels) for term in required.get("nodeSelectorTerms") or ())


def preference(pod_spec: Obj, node: Obj) -> int:
    """Sum of the weights of the preferred node affinity terms that the node fits."""
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    name, labels = node["metadata"]["name"], labels_of(node)
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    fitting = (p for p in preferred if nodeterms.fits(p.get("preference") or {}, name, labels))
    return sum(int(p.get("weight", 1)) for p in fitting)


def node_named_in_affinity(pod_spec: Obj) -> str:
    """The one node that the required affinity names by its name, as pods of DaemonSets do; empty for none."""
    required = ((pod_spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms: list[Obj] = (required or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1:
        return ""
    for field in terms[0].get("matchFields") or ():
        if field["key"] == "metadata.name" and field["operator"] == "In" and len(field.get("values") or ()) == 1:
            return str(field["values"][0])
    return ""
