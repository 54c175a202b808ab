"""What is wrong with fault types, kept between looks: those that nobody acts on, and those whose expression fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sickbay.api.repair_pool import RepairPool
from sickbay.decide import polarity

Matches = tuple[Mapping[str, Counter[str]], Mapping[str, int]]
"""How many nodes of each pool each type matches, and how many nodes each pool has."""


class TypeGuard:
    """See polarity.py for what is judged, and when."""

    def __init__(self) -> None:
        self.set_aside: dict[str, str] = {}
        """Fault types that nobody acts on, with the reason."""
        self.failing: dict[str, dict[str, str]] = {}
        """By fault type: nodes on which its expression fails, with the error."""
        self.news: set[str] = set()
        """Types about which something new has to be said."""
        self._verdicts: dict[tuple[str, int], str] = {}

    def judge(
        self, types: Iterable[Mapping[str, Any]], pools: Iterable[RepairPool], count: Callable[[], Matches]
    ) -> None:
        """Judge each type whose generation nobody has seen yet; the nodes are counted only when there is one."""
        aside: dict[str, str] = {}
        verdicts: dict[tuple[str, int], str] = {}
        counted: Matches | None = None
        for obj in types:
            name, generation = obj["metadata"]["name"], obj["metadata"].get("generation", 0)
            known = polarity.verdict(obj)
            known = self._verdicts.get((name, generation)) if known is None else known
            if known is None:
                counted = counted or count()
                known = polarity.too_many(name, generation, counted[0].get(name, {}), counted[1], pools)
            verdicts[(name, generation)] = known
            if known and not polarity.confirmed(obj):
                aside[name] = known
        self.set_aside, self._verdicts = aside, verdicts

    def note(self, node: str, failed: Mapping[str, str]) -> None:
        """The types whose expression fails on this node."""
        for name in [name for name, nodes in self.failing.items() if node in nodes and name not in failed]:
            self.failing[name].pop(node)
            self.news.add(name)
        for name, error in failed.items():
            nodes = self.failing.setdefault(name, {})
            if not nodes:
                self.news.add(name)
            nodes[node] = error
