"""A new repair for a fault of a whole domain: the leader of a group, or one member alone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.decide import budget, domains, opening
from sickbay.decide.faults import Active
from sickbay.decide.sources import Sources


def formed(
    sources: Sources, draft: NodeRepair, node: Node, pool: RepairPool, past: Iterable[NodeRepair], now: datetime
) -> NodeRepair:
    """The draft as it is to be created. One that stands alone takes no domain down, whatever its remedies say."""
    lead = next((a for a in sources.active(node) if a.name == draft.spec.faults[0].type), None)
    if lead is None or opening.observes(pool, lead):
        return draft
    if lead.type.spec.scope != "Domain":
        draft.spec.plan = domains.single(draft.spec.plan)
        return draft
    membership = _membership(sources, lead, node, pool)
    if membership is None:
        why = f"the node has no label {lead.type.spec.domain}, so nobody knows its domain"
    else:
        history = [r for r in past if r.spec.node.uid == node.uid]
        why = domains.alone(membership) or budget.used_up(history, pool, now)
    if membership is not None and not why:
        return domains.led(draft, membership)
    draft.spec.plan = domains.on_its_own(draft.spec.plan, why)
    return draft


def _membership(sources: Sources, lead: Active, node: Node, pool: RepairPool) -> domains.Membership | None:
    """The domain of the node; None when it carries no label that says so."""
    key = lead.type.spec.domain or ""
    value = node.labels.get(key)
    if not value:
        return None
    nodes = sources.members(key, value)
    sick = frozenset(n.name for n in nodes if any(a.name == lead.name for a in sources.active(n)))
    return domains.Membership(key, value, nodes, sick, next((d for d in pool.spec.domains if d.key == key), None))
