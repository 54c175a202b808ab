"""From what the informers hold to the View in which one repair is judged."""

from __future__ import annotations

from datetime import datetime

from sickbay.api import holds
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair, Plan
from sickbay.api.recovery_policy import RecoveryPolicy
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule
from sickbay.api.words import Urgency
from sickbay.decide import budget, jobgate, opening
from sickbay.decide import plan as planning
from sickbay.decide.faults import Active
from sickbay.decide.reservations import Reservations
from sickbay.decide.sources import Sources
from sickbay.decide.work import View


class Views:
    """Everything that a decision about one repair may depend on, at one moment."""

    def __init__(self, sources: Sources, reservations: Reservations) -> None:
        self._sources = sources
        self._reservations = reservations

    def of(self, repair: NodeRepair, now: datetime) -> View:
        sources = self._sources
        node = sources.nodes.get(repair.spec.node.name)
        pool = sources.pools.get(repair.spec.pool.name)
        types = sources.catalogue.types
        if node is None:
            return View(now=now, node=None, types=types, pool=pool)
        pools = [repair.spec.pool.name, *(p.metadata.name for p in sources.pools_of(node)[1])]
        hold = holds.strictest(sources.holds.all(), node, pools, [f.type for f in repair.spec.faults], now)
        observe = pool is not None and _observed(repair, pool, sources)
        joins, other = self._joining(repair, node, pool, now, observe)
        return View(
            now=now,
            node=node,
            active=sources.active(node),
            types=types,
            pool=pool,
            slots=self._reservations.held(repair, node),
            hold=holds.known_level(hold),
            hold_reason=f"{hold.metadata.name}: {hold.spec.reason}" if hold is not None else "",
            observe=observe,
            acting=min(other, default="") if observe else "",
            hands_off=opening.hands_off(node, pool) if pool is not None else "",
            joins=joins,
            seen=sources.seen(node),
            replan=lambda lead: self._plan_for(repair, node, pool, lead, now),
            tenants=sources.tenancy.of(node.name) if _waits_for_jobs(repair) else None,
            provider_date=sources.provider_date(node),
            jobs=lambda step, attempt, asked: self._jobs(repair, step, attempt, asked, now),
        )

    def _jobs(
        self, repair: NodeRepair, step: str, attempt: int, asked: datetime, now: datetime
    ) -> jobgate.JobsWait | None:
        sources, node = self._sources, repair.spec.node.name
        placed = sources.recoveries.by_index("placed", node)

        def policy(namespace: str, name: str) -> RecoveryPolicy | None:
            return sources.policies.get(name, namespace)

        return jobgate.waiting(node, repair.metadata.name, step, attempt, placed, policy, asked, now)

    def _joining(
        self, repair: NodeRepair, node: Node, pool: RepairPool | None, now: datetime, observe: bool
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Faults that may join this repair, and those that would make one of the other mode."""
        rule, sources = self._rule(repair), self._sources
        if pool is None or rule is None:
            return frozenset(), frozenset()
        history, seen = self._history(repair, node), sources.seen(node)
        acted, observed = opening.joining(node, sources.active(node), pool, rule, history, seen, now)
        return (observed, acted) if observe else (acted, observed)

    def _plan_for(
        self, repair: NodeRepair, node: Node, pool: RepairPool | None, lead: Active, now: datetime
    ) -> Plan | None:
        rule = self._rule(repair)
        entry = planning.matching_entry(rule, lead.name, lead.type) if rule is not None else None
        if entry is None or pool is None:
            return None
        return budget.planned(lead, pool, entry, repair.spec.plan.approval_prefix, self._history(repair, node), now)

    def _rule(self, repair: NodeRepair) -> RepairRule | None:
        return self._sources.rules.get(repair.spec.rule.name)

    def _history(self, repair: NodeRepair, node: Node) -> list[NodeRepair]:
        """The other repairs of this very node."""
        past = self._sources.repairs_of(node.name)
        return [r for r in past if r.spec.node.uid == node.uid and r.metadata.uid != repair.metadata.uid]


def _waits_for_jobs(repair: NodeRepair) -> bool:
    return not repair.ended and repair.spec.plan.urgency != Urgency.NOW


def _observed(repair: NodeRepair, pool: RepairPool, sources: Sources) -> bool:
    """Whether the pool only observes the leading fault of this repair."""
    lead = repair.spec.faults[0].type if repair.spec.faults else ""
    return opening.observes_type(pool, lead, sources.catalogue.get(lead))
