"""Keeping a job away from nodes: one term of ours in the required node affinity of its pods.

`kubernetes.io/hostname NotIn [...]`, added to every alternative the owner wrote, since alternatives are ORed. What we
added is known by its values (recorded on the job), so that it can be taken out again to the letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Obj = dict[str, Any]


def exclude(pod_spec: Obj, before: Sequence[str], after: Sequence[str]) -> None:
    """Replace our exclusion of `before` by one of `after` in a pod spec, in place. Everything else stays as it was."""
    affinity = deepcopy(pod_spec.get("affinity") or {})
    node = affinity.get("nodeAffinity") or {}
    terms = (node.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    terms = [left for term in terms if (left := _without(term, _ours(before))) is not None] if before else terms
    if after:
        ours = _ours(after)
        terms = [{**t, "matchExpressions": [*(t.get("matchExpressions") or ()), ours]} for t in terms or [{}]]
    if terms:
        node[REQUIRED] = {"nodeSelectorTerms": terms}
    else:
        node.pop(REQUIRED, None)
    _put(affinity, "nodeAffinity", node)
    _put(pod_spec, "affinity", affinity)


def _ours(values: Sequence[str]) -> Obj:
    return {"key": HOSTNAME, "operator": "NotIn", "values": list(values)}


def _without(term: Obj, ours: Obj) -> Obj | None:
    """The term without our expression; None where nothing else was in it, for then it was ours altogether."""
    expressions = term.get("matchExpressions") or []
    if ours not in expressions:
        return term
    rest = {**term, "matchExpressions": [e for e in expressions if e != ours]}
    if not rest["matchExpressions"]:
        del rest["matchExpressions"]
    return rest or None


def _put(holder: Obj, key: str, value: Obj) -> None:
    if value:
        holder[key] = value
    else:
        holder.pop(key, None)
