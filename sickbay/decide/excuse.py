"""Sick nodes that the breaker does not count: somebody knows about them already, and nothing will be done to them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.markers import leaving_by
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import Phase
from sickbay.decide.faults import Active
from sickbay.decide.memory import kept_back


def excused(
    node: Node, lead: Active | None, repairs: Iterable[NodeRepair], pool: RepairPool, hold: Hold | None, now: datetime
) -> bool:
    """True for nodes Parked, with people, under a Hold, in declared maintenance, or whose repair a person cancelled."""
    if hold is not None or leaving_by(node) or node.labels.get(names.EXCLUDE_FROM_REMEDIATION) == "true":
        return True
    mine = [r for r in repairs if r.spec.node.uid == node.uid]
    if any(r.status.phase in (Phase.PARKED, Phase.NEEDS_HUMAN) for r in mine):
        return True
    return lead is not None and any(_cancelled(r, lead, node, pool, now) for r in mine)


def _cancelled(repair: NodeRepair, lead: Active, node: Node, pool: RepairPool, now: datetime) -> bool:
    until = kept_back(repair, lead, node, pool)
    return until is not None and now < until
