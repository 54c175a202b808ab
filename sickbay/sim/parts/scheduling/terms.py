"""Required pod affinity and anti-affinity terms: whom a term speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.selectors import selector_matches
from sickbay.sim.hand import labels_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of each namespace."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the pod that carries it."""

    topology_key: str
    owner: Obj
    term: Obj

    def speaks_of(self, pod: Obj, namespaces: Namespaces) -> bool:
        return self._in_reach(pod["metadata"]["namespace"], namespaces) and self._selects(labels_of(pod))

    def _in_reach(self, namespace: str, namespaces: Namespaces) -> bool:
        """Without any namespaces named, the owner's own."""
        named, selector = self.term.get("namespaces") or (), self.term.get("namespaceSelector")
        if not named and selector is None:
            return bool(namespace == self.owner["metadata"]["namespace"])
        return namespace in named or selector_matches(selector, namespaces.get(namespace, {}))

    def _selects(self, labels: Mapping[str, str]) -> bool:
        """matchLabelKeys and mismatchLabelKeys take their values from the owner."""
        if not selector_matches(self.term.get("labelSelector"), labels):
            return False
        own = labels_of(self.owner)
        same = all(labels.get(key) == own[key] for key in self.term.get("matchLabelKeys") or () if key in own)
        return same and all(
            labels.get(key) != own[key] for key in self.term.get("mismatchLabelKeys") or () if key in own
        )


def affinity_terms(pod: Obj) -> list[Term]:
    return _terms(pod, "podAffinity")


def anti_terms(pod: Obj) -> list[Term]:
    return _terms(pod, "podAntiAffinity")


def _terms(pod: Obj, kind: str) -> list[Term]:
    required = (((pod.get("spec") or {}).get("affinity") or {}).get(kind) or {}).get(REQUIRED) or ()
    return [Term(term["topologyKey"], pod, term) for term in required]
