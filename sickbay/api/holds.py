"""Which Holds bind a node, and how strictly."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.words import HoldLevel
from sickbay.clock import parse_time

ORDER = {HoldLevel.NEW_REPAIRS: 1, HoldLevel.NEXT_STEP: 2, HoldLevel.EVERY_ACT: 3}


def binds(hold: Hold, node: Node, pools: Iterable[str], faults: Iterable[str], now: datetime) -> bool:
    """True when the Hold is in force and means this node and one of these faults."""
    spec, scope = hold.spec, hold.spec.scope
    if hold.metadata.deletion_timestamp is not None or _over(spec.until, now):
        return False
    if spec.faults and not set(spec.faults) & set(faults):
        return False
    if scope.all or node.name in scope.nodes or set(scope.pools) & set(pools):
        return True
    return scope.node_selector is not None and scope.node_selector.matches(node.labels)


def _over(until: str | None, now: datetime) -> bool:
    """An end that cannot be read is no end: the Hold stays in force until somebody deletes it."""
    try:
        return until is not None and parse_time(until) <= now
    except ValueError:
        return False


def strictest(
    holds: Iterable[Hold], node: Node, pools: Iterable[str], faults: Iterable[str], now: datetime
) -> Hold | None:
    """The strictest Hold that binds. A level this version does not know counts as the strictest."""
    pools, faults = list(pools), list(faults)
    binding = [hold for hold in holds if binds(hold, node, pools, faults, now)]
    return max(binding, key=lambda h: (rank(h.spec.level), h.metadata.name), default=None)


def rank(level: str) -> int:
    return ORDER[HoldLevel(level)] if level in list(HoldLevel) else ORDER[HoldLevel.EVERY_ACT]


def known_level(hold: Hold | None) -> str:
    """The level to act by: "" without a Hold, EveryAct for an unknown one."""
    if hold is None:
        return ""
    return hold.spec.level if hold.spec.level in list(HoldLevel) else HoldLevel.EVERY_ACT.value
