"""DaemonSets that would not come back to a node under our taint.

A node that is rebooted in quarantine gets its DaemonSet pods (device plug-in, network, monitoring) again only where
they tolerate the taint; without them it never validates. So a pool with `quarantine.taint` names those that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from sickbay.api import names
from sickbay.api.core import Node, Taint, Toleration
from sickbay.api.meta import SelectorRequirement
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import FaultClass
from sickbay.decide.ondemand import OnDemand
from sickbay.kube.informer import Informer

TAINTS = tuple(Taint(key=names.QUARANTINE, value=str(word), effect="NoSchedule") for word in FaultClass)
NAMED = 10
"""Names in the message; the others are counted."""


def intolerant(daemon_sets: Iterable[Mapping[str, Any]], nodes: Iterable[Node]) -> list[str]:
    """Those that run on one of these nodes and do not tolerate the taint, as namespace/name."""
    found = [each for each in daemon_sets if not _tolerates(_pod(each))]
    if not found:
        return []
    known = list(nodes)
    return sorted(_name(each) for each in found if any(_selects(_pod(each), node) for node in known))


def message(named: list[str]) -> str:
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return f"do not tolerate the taint {names.QUARANTINE}: {', '.join(named[:NAMED])}{more}" if named else ""


def _name(daemon_set: Mapping[str, Any]) -> str:
    meta = daemon_set["metadata"]
    return f"{meta.get('namespace', '')}/{meta['name']}"


def _pod(daemon_set: Mapping[str, Any]) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = ((daemon_set.get("spec") or {}).get("template") or {}).get("spec") or {}
    return spec


def _tolerates(pod: Mapping[str, Any]) -> bool:
    tolerations = [msgspec.convert(t, Toleration) for t in pod.get("tolerations") or ()]
    return all(any(toleration.tolerates(taint) for toleration in tolerations) for taint in TAINTS)


def _selects(pod: Mapping[str, Any], node: Node) -> bool:
    wanted: Mapping[str, str] = pod.get("nodeSelector") or {}
    if any(node.labels.get(key) != value for key, value in wanted.items()):
        return False
    affinity = ((pod.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = (affinity or {}).get("nodeSelectorTerms") or ()
    return not terms or any(_term(term, node) for term in terms)


def _term(term: Mapping[str, Any], node: Node) -> bool:
    """Fields other than labels, and operators on numbers, are taken to match: better one name too many."""
    for expression in term.get("matchExpressions") or ():
        if expression.get("operator") in ("Gt", "Lt"):
            continue
        if not msgspec.convert(expression, SelectorRequirement).matches(node.labels):
            return False
    return True


class Tolerance:
    """Judges pools, each anew only when its nodes or the DaemonSets have changed; reads DaemonSets on demand."""

    def __init__(self, informer: Informer[dict[str, Any]]) -> None:
        self.cache = OnDemand(informer)
        self._version = 0
        self._known: dict[str, tuple[tuple[int, int, int], list[str]]] = {}
        informer.on_change(lambda _old, _new: self._changed())

    def _changed(self) -> None:
        self._version += 1

    def of(self, pool: RepairPool, members: Callable[[], list[Node]], size: int) -> list[str]:
        """DaemonSets that do not tolerate the pool's taint; none where it sets none, or while they are not known."""
        if not pool.spec.quarantine.taint or not self.cache.ask():
            return []
        version = self._version, pool.metadata.generation, size
        kept = self._known.get(pool.metadata.name)
        if kept is None or kept[0] != version:
            kept = version, intolerant(self.cache.informer.all(), members())
            self._known[pool.metadata.name] = kept
        return kept[1]
