"""How long ended repairs are kept: 30 days, or the longest window that any pool still counts them in.

Budgets, cancels and pauses between repairs are computed from ended records, so none of those may lose what it counts. A
record that still holds marks on its node is never too old.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sickbay.api.duration import parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.clock import parse_time

LEAST = timedelta(days=30)
"""api.md, NodeRepair."""


def kept_for(pools: Iterable[RepairPool], least: timedelta = LEAST) -> timedelta:
    """The longest time in which an ended repair still counts for something."""
    windows = [least]
    for pool in pools:
        budget = pool.spec.budgets.per_node
        windows += [parse_duration(text) for text in (budget.window, budget.cooldown, pool.spec.cancel_hold)]
    return max(windows)


def too_old(
    repairs: Iterable[NodeRepair], pools: Iterable[RepairPool], now: datetime, least: timedelta = LEAST
) -> list[NodeRepair]:
    """The ended repairs that nothing asks for any more, oldest first."""
    before = now - kept_for(pools, least)
    found = [
        repair
        for repair in repairs
        if repair.ended
        and not repair.metadata.finalizers
        and repair.status.ended_at
        and parse_time(repair.status.ended_at) < before
    ]
    return sorted(found, key=lambda repair: (repair.status.ended_at or "", repair.metadata.name))
