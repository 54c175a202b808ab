"""Filters that look at other pods: inter-pod affinity and topology spread (DoNotSchedule).

After the plug-ins interpodaffinity and podtopologyspread. What concerns all nodes is counted once for a pod.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.selectors import selector_matches
from sickbay.sim.hand import labels_of
from sickbay.sim.parts.scheduling.picture import Picture
from sickbay.sim.parts.scheduling.terms import affinity_terms, anti_terms
from sickbay.sim.parts.taints import fits_affinity, taints_of, untolerated

Place = tuple[str, str]
"""Topology key and value."""

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
OTHERS_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{SPREAD} (missing required label)"


@dataclass(slots=True)
class Company:
    """What the pods that are there mean for one pod."""

    wanted: list[str] = field(default_factory=list)
    """Topology keys of its affinity."""
    friends: set[Place] = field(default_factory=set)
    alone: bool = False
    """Nobody it wants to be with exists, and it is one of them itself: it may be the first."""
    foes: set[Place] = field(default_factory=set)
    hostile: set[Place] = field(default_factory=set)
    """Where others do not want it."""
    spreads: list[_Spread] = field(default_factory=list)

    def refusal(self, node: Obj) -> tuple[str, bool]:
        """The reason, empty for none; and whether it stands even if pods on the node were gone."""
        labels = labels_of(node)
        for spread in self.spreads:
            if spread.key not in labels:
                return NO_LABEL, True
            if spread.exceeds(labels[spread.key]):
                return SPREAD, False
        if not self._among_friends(labels):
            return AFFINITY, True
        if self.foes and self.foes & labels.items():
            return ANTI_AFFINITY, False
        if self.hostile and self.hostile & labels.items():
            return OTHERS_ANTI_AFFINITY, False
        return "", False

    def _among_friends(self, labels: dict[str, str]) -> bool:
        if not all(key in labels for key in self.wanted):
            return False
        return self.alone or all((key, labels[key]) in self.friends for key in self.wanted)


@dataclass(slots=True)
class _Spread:
    key: str
    skew: int
    own: int
    counts: Counter[str]
    least: int

    def exceeds(self, value: str) -> bool:
        return self.counts[value] + self.own - self.least > self.skew


def cares_for_others(pod: Obj) -> bool:
    return bool(affinity_terms(pod) or _constraints(pod))


def company_of(pod: Obj, picture: Picture) -> Company:
    found = Company()
    _affinities(pod, picture, found)
    for other, node in picture.unsocial():
        for term in anti_terms(other):
            if term.speaks_of(pod, picture.namespaces):
                _note(found.hostile, node, term.topology_key)
    found.spreads = [_spread(pod, constraint, picture) for constraint in _constraints(pod)]
    return found


def _affinities(pod: Obj, picture: Picture, found: Company) -> None:
    likes, dislikes = affinity_terms(pod), anti_terms(pod)
    if not likes and not dislikes:
        return
    found.wanted = [term.topology_key for term in likes]
    for other, node in picture.placed():
        # A pod counts as company only where it is what every term asks for.
        if likes and all(term.speaks_of(other, picture.namespaces) for term in likes):
            for term in likes:
                _note(found.friends, node, term.topology_key)
        for term in dislikes:
            if term.speaks_of(other, picture.namespaces):
                _note(found.foes, node, term.topology_key)
    found.alone = not found.friends and all(term.speaks_of(pod, picture.namespaces) for term in likes)


def _note(places: set[Place], node: Obj, key: str) -> None:
    value = labels_of(node).get(key)
    if value is not None:
        places.add((key, value))


def _constraints(pod: Obj) -> list[Obj]:
    listed = (pod.get("spec") or {}).get("topologySpreadConstraints") or ()
    return [each for each in listed if each.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"]


def _spread(pod: Obj, constraint: Obj, picture: Picture) -> _Spread:
    """Domains are those of the nodes that the pod could use by its own words (nodeAffinityPolicy, nodeTaintsPolicy)."""
    key, counts = constraint["topologyKey"], Counter[str]()
    namespace = pod["metadata"]["namespace"]
    for node in picture.nodes.values():
        value = labels_of(node).get(key)
        if value is None or not _eligible(pod, node, constraint):
            continue
        counts[value] += sum(
            1
            for other in picture.pods_on(node["metadata"]["name"])
            if other["metadata"]["namespace"] == namespace and _same_kind(pod, other, constraint)
        )
    least = min(counts.values(), default=0)
    if len(counts) < int(constraint.get("minDomains") or 1):
        least = 0
    own = int(_same_kind(pod, pod, constraint))
    return _Spread(key, int(constraint.get("maxSkew", 1)), own, counts, least)


def _eligible(pod: Obj, node: Obj, constraint: Obj) -> bool:
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not fits_affinity(pod["spec"], node):
        return False
    ignored = constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore"
    return ignored or not untolerated(pod["spec"], taints_of(node), ("NoSchedule", "NoExecute"))


def _same_kind(pod: Obj, other: Obj, constraint: Obj) -> bool:
    if other["metadata"].get("deletionTimestamp"):
        return False
    labels, own = labels_of(other), labels_of(pod)
    same = all(labels.get(key) == own[key] for key in constraint.get("matchLabelKeys") or () if key in own)
    return same and selector_matches(constraint.get("labelSelector"), labels)
