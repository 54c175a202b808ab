"""From what the informers hold to the View in which one repair is judged."""

from __future__ import annotations

from datetime import datetime

import msgspec

from sickbay.api import holds, names
from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.node_repair import NodeRepair
from sickbay.api.recovery_policy import RecoveryPolicy
from sickbay.api.repair_plan import Plan
from sickbay.api.repair_pool import Domain, RepairPool
from sickbay.api.repair_rule import RepairRule
from sickbay.api.words import HoldLevel, Origin, Phase, Step, Urgency
from sickbay.decide import budget, domains, jobgate, mandate, opening, past
from sickbay.decide import plan as planning
from sickbay.decide.faults import Active
from sickbay.decide.group import GroupView
from sickbay.decide.hand import untouched
from sickbay.decide.reservations import Reservations
from sickbay.decide.sources import Sources
from sickbay.decide.work import View

LEVELS = ("", *HoldLevel)
"""Of Holds, the mildest first."""


class Views:
    """Everything that a decision about one repair may depend on, at one moment."""

    def __init__(
        self, sources: Sources, reservations: Reservations, automation: tuple[str, ...] = names.AUTOMATION
    ) -> None:
        self._automation = automation
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
        hands_off = opening.hands_off(node, pool) if pool is not None else ""
        if repair.spec.group.id:
            hold, hands_off = self._shared_stops(repair, hold, hands_off, now)
        observe = pool is not None and _observed(repair, pool, sources)
        unowned = self._unowned(repair, node)
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
            unowned=unowned,
            acting=min(other, default="") if observe else "",
            hands_off=hands_off,
            joins=joins,
            seen=sources.seen(node),
            pause=lambda: opening.next_pause(repair, sources.repairs_of(node.name)),
            history=lambda: past.told(
                past.incidents(sources.repairs_of(node.name), node.uid, repair.metadata.uid), now
            ),
            replan=lambda lead: self._plan_for(repair, node, pool, lead, now),
            tenants=sources.tenancy.of(node.name) if _waits_for_jobs(repair) else None,
            automation=self._automation,
            provider_date=sources.provider_date(node),
            group=self._group(repair),
            claimed_by=self._claiming(repair, node),
            jobs=lambda step, attempt, asked: self._jobs(repair, step, attempt, asked, now),
        )

    def _unowned(self, repair: NodeRepair, node: Node) -> str:
        """Why its pool has no say over its node any more. A group that has begun has one only with all its members.

        One that has not begun never fits, which people are told at once (`domains.misfit`).
        """
        if not repair.spec.group.id:
            return self._own_say(repair, node)
        members = [r for r in self._sources.group_of(repair) if not r.ended and r.status.phase != Phase.CANCELLING]
        for member in [repair, *members] if any(not untouched(r) for r in members) else ():
            its_node = self._sources.nodes.get(member.spec.node.name)
            why = self._own_say(member, its_node) if its_node is not None else ""
            pool = self._sources.pools.get(member.spec.pool.name)
            other = member.metadata.uid != repair.metadata.uid
            if other and not why and pool is not None and _observed(member, pool, self._sources):
                why = f"pool {pool.metadata.name} only observes this fault now"
            if why:
                return f"member {member.spec.node.name} of the group: {why}" if other else why
        return ""

    def _own_say(self, repair: NodeRepair, node: Node) -> str:
        pool = self._sources.pools.get(repair.spec.pool.name)
        return mandate.unowned(repair, pool, self._sources.pools_of(node)[0])

    def _group(self, repair: NodeRepair) -> GroupView | None:
        """The other members of its group."""
        if not repair.spec.group.id:
            return None
        sources = self._sources
        others = [r for r in sources.group_of(repair) if r.spec.node.name != repair.spec.node.name]
        known = {r.spec.node.name for r in others} | {repair.spec.node.name}
        nodes = [n for name in repair.spec.group.members if (n := sources.nodes.get(name)) is not None]
        away = [node for node in nodes if node.name not in known]
        busy = {n.name: r.metadata.name for n in away if (r := sources.open_repair_of(n)) is not None}
        settings = self._domain(repair)
        return GroupView(
            others=tuple(others),
            missing=tuple(node.name for node in away),
            busy=busy,
            misfit=self._misfit(repair, nodes, settings) if untouched(repair) else "",
            strangers=self._strangers(repair, others),
            min_usable=settings.min_usable if settings is not None else None,
        )

    def _strangers(self, repair: NodeRepair, others: list[NodeRepair]) -> tuple[str, ...]:
        """Asked only before an act: nodes of the domain that this group has no record of."""
        node = self._sources.nodes.get(repair.spec.node.name)
        lead = self._sources.catalogue.get(repair.spec.faults[0].type) if repair.spec.faults else None
        key = lead.spec.domain if lead is not None else ""
        if repair.status.current.step != Step.REPAIR or node is None or not key or key not in node.labels:
            return ()
        known = {r.spec.node.uid for r in [repair, *others]}
        return tuple(n.name for n in self._sources.members(key, node.labels[key]) if n.uid not in known)

    def _domain(self, repair: NodeRepair) -> Domain | None:
        """What the repair's pool says of the kind of domain that its leading fault is about."""
        pool = self._sources.pools.get(repair.spec.pool.name)
        lead = self._sources.catalogue.get(repair.spec.faults[0].type) if repair.spec.faults else None
        key = lead.spec.domain if lead is not None else ""
        return next((d for d in pool.spec.domains if d.key == key), None) if pool is not None else None

    def _misfit(self, repair: NodeRepair, nodes: list[Node], settings: Domain | None) -> str:
        sources = self._sources
        lead = repair.spec.faults[0].type if repair.spec.faults else ""
        known = sources.catalogue.get(lead)
        size = settings.size if settings is not None else 0

        def observes(pool: RepairPool) -> bool:
            return opening.observes_type(pool, lead, known)

        return domains.misfit(nodes, size, sources.pools_of, self._reservations.view, observes)

    def _claiming(self, repair: NodeRepair, node: Node) -> NodeRepair | None:
        """The leader of a group that waits for this node, which is under another repair."""
        if repair.ended or not untouched(repair) or repair.spec.origin == Origin.MANUAL:
            return None
        leader = self._sources.claiming(node)
        return leader if leader is not None and domains.joins(repair, leader) else None

    def _shared_stops(
        self, repair: NodeRepair, hold: Hold | None, hands_off: str, now: datetime
    ) -> tuple[Hold | None, str]:
        """Before anything has been done, a Hold on one member holds all, and so does a hand on one of them."""
        sources = self._sources
        members = [r for r in sources.group_of(repair) if not r.ended]
        if any(r.status.step(Step.REPAIR).attempts or r.status.step(Step.REPAIR).started for r in members):
            return hold, hands_off
        found = [hold] if hold is not None else []
        for other in members:
            node, pool = sources.nodes.get(other.spec.node.name), sources.pools.get(other.spec.pool.name)
            if node is None or pool is None:
                continue
            pools = [pool.metadata.name, *(p.metadata.name for p in sources.pools_of(node)[1])]
            faults = [f.type for f in other.spec.faults]
            its = holds.strictest(sources.holds.all(), node, pools, faults, now)
            found += [its] if its is not None else []
            off = opening.hands_off(node, pool)
            hands_off = hands_off or (f"member {node.name} of the group: {off}" if off else "")
        return max(found, key=lambda h: LEVELS.index(holds.known_level(h)), default=None), hands_off

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
        returning = repair.status.current.step in (Step.VALIDATE, Step.UNQUARANTINE)
        acted, observed = opening.joining(node, sources.treatable(node), pool, rule, history, seen, now, returning)
        return (observed, acted) if observe else (acted, observed)

    def _plan_for(
        self, repair: NodeRepair, node: Node, pool: RepairPool | None, lead: Active, now: datetime
    ) -> Plan | None:
        rule = self._rule(repair)
        entry = planning.matching_entry(rule, lead.name, lead.type) if rule is not None else None
        if entry is None or pool is None:
            return None
        old = repair.spec.plan
        made = budget.planned(lead, pool, entry, old.approval_prefix, self._history(repair, node), now)
        return domains.single(msgspec.structs.replace(made, approval_form=old.approval_form))

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
