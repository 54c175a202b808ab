"""Counts per pool, kept current node by node.

A pool of 10,000 nodes is not walked for every decision: what a node contributes (in which pools, out of service,
faulty, since when) is kept and replaced when the node, its repair or a Hold changes. Only a changed pool, rule or fault
type makes everything be counted anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from sickbay.decide.storm import Onset

UNKNOWN_AFTER = timedelta(minutes=5)
"""A node whose detection is blind counts in the breaker only after this long: a roll-out of agents trips nothing."""


class Facts(msgspec.Struct, frozen=True):
    """What one node contributes to its pools."""

    pools: tuple[str, ...] = ()
    """Every pool whose selector matches, envelopes too."""
    out: bool = False
    """Out of service for any reason."""
    isolated: bool = False
    """Cards of it are isolated."""
    domains: tuple[tuple[str, str], ...] = ()
    """Its labels that its pools' `domains` name, with their values."""
    onset: Onset | None = None
    """Its first fault that a rule would treat, unless it is excused: Parked, with people, held, cancelled."""
    unknown_since: datetime | None = None
    """Since when nobody can see what is wrong with it."""
    rivals: tuple[str, ...] = ()
    """Pools with rules that select it, its owner first; empty where there is only one."""


@dataclass(slots=True)
class Counts:
    """One pool."""

    nodes: set[str] = field(default_factory=set)
    out: set[str] = field(default_factory=set)
    isolated: set[str] = field(default_factory=set)
    sick: dict[str, Onset] = field(default_factory=dict)
    unknown: dict[str, datetime] = field(default_factory=dict)
    contested: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Nodes that other pools with rules select too, with all of these pools, the owner first."""
    domains: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def domain(self, key: str, value: str) -> frozenset[str]:
        """Names of the nodes that carry this value of the label."""
        return frozenset(self.domains.get((key, value), ()))

    def overlap(self, pool: str) -> str:
        """With whom the pool overlaps, and who owns the nodes; "" for nobody."""
        owners = Counter(pools[0] for pools in self.contested.values())
        others = sorted({name for pools in self.contested.values() for name in pools} - {pool})
        if not others:
            return ""
        owned = ", ".join(f"{count} belong to {name}" for name, count in sorted(owners.items()))
        return f"{len(self.contested)} nodes are selected by {', '.join(others)} as well; {owned} (the older pool)"

    def faulty(self, now: datetime) -> int:
        """Nodes that the breaker counts; members of one group count once."""
        ones = {onset.group or node for node, onset in self.sick.items()}
        blind = {n for n, since in self.unknown.items() if now - since >= UNKNOWN_AFTER and n not in self.sick}
        return len(ones) + len(blind)

    def next_blind(self, now: datetime) -> datetime | None:
        """When the next blind node begins to count."""
        due = [since + UNKNOWN_AFTER for since in self.unknown.values() if now - since < UNKNOWN_AFTER]
        return min(due, default=None)


_NOTHING = Facts()


class Tally:
    """Counts of all pools."""

    def __init__(self) -> None:
        self._facts: dict[str, Facts] = {}
        self._pools: dict[str, Counts] = {}

    def of(self, pool: str) -> Counts:
        return self._pools.setdefault(pool, Counts())

    def facts(self, node: str) -> Facts:
        return self._facts.get(node, Facts())

    def put(self, node: str, facts: Facts) -> set[str]:
        """Replace what a node contributes. Returns the pools whose counts changed."""
        before = self._facts.get(node, _NOTHING)
        if before is facts or before == facts:
            return set()
        self._remove(node, before)
        self._facts[node] = facts
        for pool in facts.pools:
            counts = self.of(pool)
            counts.nodes.add(node)
            for domain in facts.domains:
                counts.domains.setdefault(domain, set()).add(node)
            if facts.out:
                counts.out.add(node)
            if facts.isolated:
                counts.isolated.add(node)
            if facts.onset is not None:
                counts.sick[node] = facts.onset
            if facts.unknown_since is not None:
                counts.unknown[node] = facts.unknown_since
        for pool in facts.rivals:
            self.of(pool).contested[node] = facts.rivals
        return {*before.pools, *facts.pools, *before.rivals, *facts.rivals}

    def drop(self, node: str) -> set[str]:
        """Forget a node. Returns the pools it was in."""
        before = self._facts.pop(node, Facts())
        self._remove(node, before)
        return {*before.pools, *before.rivals}

    def rebuild(self, facts: Mapping[str, Facts]) -> None:
        """Count these nodes and no others. Pools without nodes are forgotten."""
        for gone in self._facts.keys() - facts.keys():
            self.drop(gone)
        for node, each in facts.items():
            self.put(node, each)
        self._pools = {name: counts for name, counts in self._pools.items() if counts.nodes or counts.contested}

    def pools(self) -> Iterable[str]:
        return self._pools.keys()

    def _remove(self, node: str, before: Facts) -> None:
        for pool in before.rivals:
            self.of(pool).contested.pop(node, None)
        for pool in before.pools:
            counts = self.of(pool)
            counts.nodes.discard(node)
            for domain in before.domains:
                counts.domains.get(domain, set()).discard(node)
            counts.out.discard(node)
            counts.isolated.discard(node)
            counts.sick.pop(node, None)
            counts.unknown.pop(node, None)
