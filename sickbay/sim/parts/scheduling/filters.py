"""Which nodes a pod fits, why it does not fit the others, and which of those it fits is the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sickbay.api import quantity
from sickbay.apiserver.errors import Obj
from sickbay.sim.parts.scheduling.company import Company, company_of
from sickbay.sim.parts.scheduling.picture import Picture, requests_of
from sickbay.sim.parts.taints import (
    fits_affinity,
    node_named_in_affinity,
    preference,
    taints_of,
    tolerates,
    untolerated,
)

UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
CORDONED = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
ELSEWHERE = "node(s) didn't match Pod's node affinity/selector"
NOT_ASKED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
"""Of nodes that are not looked at, because the pod names another."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node is not for the pod. `final`: not even if every pod on it were gone."""

    reasons: tuple[str, ...]
    final: bool


@dataclass(slots=True)
class Search:
    """What looking for a node has found."""

    fitting: list[Obj] = field(default_factory=list)
    refusals: dict[str, Refusal] = field(default_factory=dict)


def search(pod: Obj, picture: Picture) -> Search:
    found, company = Search(), company_of(pod, picture)
    named = node_named_in_affinity(pod["spec"])
    for name, node in picture.nodes.items():
        refused = Refusal((NOT_ASKED,), True) if named and name != named else refusal(pod, node, picture, company)
        if refused is None:
            found.fitting.append(node)
        else:
            found.refusals[name] = refused
    return found


def refusal(pod: Obj, node: Obj, picture: Picture, company: Company) -> Refusal | None:
    """None when the pod fits there."""
    spec = pod["spec"]
    cordoned = bool((node.get("spec") or {}).get("unschedulable"))
    if cordoned and not any(tolerates(t, UNSCHEDULABLE_TAINT) for t in spec.get("tolerations") or ()):
        return Refusal((CORDONED,), True)
    if untolerated(spec, taints_of(node), ("NoSchedule", "NoExecute")):
        return Refusal((TAINTED,), True)
    if not fits_affinity(spec, node):
        return Refusal((ELSEWHERE,), True)
    short = _short_of(pod, node, picture)
    if short is not None:
        return short
    reason, final = company.refusal(node)
    return Refusal((reason,), final) if reason else None


def _short_of(pod: Obj, node: Obj, picture: Picture) -> Refusal | None:
    free, reasons, final = picture.free(node, pod), [], False
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    for resource, amount in requests_of(pod).items():
        if amount > free.get(resource, 0.0) and amount > 0:
            reasons.append("Too many pods" if resource == "pods" else f"Insufficient {resource}")
            final = final or amount > float(quantity.parse(allocatable.get(resource, "0")))
    return Refusal(tuple(reasons), final) if reasons else None


def best(pod: Obj, nodes: list[Obj], picture: Picture) -> Obj:
    """No PreferNoSchedule taint, what the pod prefers, the emptiest, then the first by name."""

    def rank(node: Obj) -> tuple[int, int, float, int, str]:
        avoid = untolerated(pod["spec"], taints_of(node), ("PreferNoSchedule",))
        free = picture.free(node, pod).get("nvidia.com/gpu", 0.0)
        name = node["metadata"]["name"]
        liked = preference(pod["spec"], node)
        return (1 if avoid else 0, -liked, -free, picture.count_on(name), _natural(name))

    return min(nodes, key=rank)


def _natural(name: str) -> str:
    """Sorts train-2 before train-10."""
    head, _, tail = name.rpartition("-")
    return f"{head}-{int(tail):08d}" if tail.isdecimal() else name


def told(refusals: Iterable[Refusal], nodes: int) -> str:
    """`0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) were unschedulable.`"""
    if not nodes:
        return "no nodes available to schedule pods"
    counts = Counter(reason for refused in refusals for reason in refused.reasons)
    why = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {why}."
