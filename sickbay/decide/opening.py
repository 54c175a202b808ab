"""Whether a sick node gets a new repair, and what it begins with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sickbay.api import names, objectnames
from sickbay.api.core import Node
from sickbay.api.duration import parse_duration
from sickbay.api.fault_type import Rung
from sickbay.api.markers import leaving_by
from sickbay.api.meta import ObjectMeta
from sickbay.api.node_repair import NodeRepair, NodeRepairSpec, Ref, RepairFault, RepairNode, RuleRef
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule, RuleEntry
from sickbay.api.words import BudgetThen, Mode, Outcome
from sickbay.clock import parse_time
from sickbay.decide import plan as planning
from sickbay.decide.actionable import wants_repair
from sickbay.decide.arbitration import ordered
from sickbay.decide.faults import Active
from sickbay.decide.faultstate import MAX_FAULTS, new_fault

PENDING_AT = timedelta(minutes=2)
"""A longer `for` opens the repair at first sight, as the timer that survives restarts (api.md)."""
NEVER = datetime.max.replace(tzinfo=UTC)
ROLLED_BACK_FIRST, ROLLED_BACK_MOST = timedelta(minutes=30), timedelta(hours=24)

CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


@dataclass(frozen=True)
class Opening:
    """A repair to create, or why there is none and when to look again."""

    repair: NodeRepair | None = None
    why: str = ""
    again: datetime | None = None


def open_repair(
    node: Node,
    active: Iterable[Active],
    pool: RepairPool,
    rule: RepairRule,
    past: list[NodeRepair],
    seen: Mapping[str, datetime],
    prefix: str,
    catalogue: str,
    now: datetime,
) -> Opening:
    """Decide on one node without an open repair.

    past   all repairs on record for a node of this name
    seen   since when we have seen each fault without a break, by its name
    """
    refusal = hands_off(node, pool)
    if refusal:
        return Opening(why=refusal)
    history = [r for r in past if r.spec.node.uid == node.uid]
    wanted: list[tuple[Active, RuleEntry]] = []
    again: datetime | None = None
    for candidate in ordered(active):
        entry = planning.matching_entry(rule, candidate.name, candidate.type)
        if entry is None or not wants_repair(candidate.type):
            continue
        due = _due(candidate, seen.get(candidate.name, now), history, pool, node, now)
        if due is not None and due > now:
            again = due if again is None else min(again, due)
            continue
        wanted.append((candidate, entry))
    if not wanted:
        return Opening(why="no active fault asks for a repair now", again=again)
    if not prefix:
        name = rule.metadata.name
        return Opening(why=f"approvalPrefix {rule.spec.approval_prefix!r} of rule {name} is not configured")
    lead, entry = wanted[0]
    made = _repair(node, [a for a, _ in wanted], lead, entry, pool, rule, prefix, catalogue, now, next_name(node, past))
    spent = _budget_spent(history, pool, now)
    if spent:
        made.spec.plan = planning.build(lead, pool, entry, prefix, ladder=_offender_ladder(pool))
        made.spec.plan.reason = spent
    return Opening(repair=made)


def hands_off(node: Node, pool: RepairPool) -> str:
    """Why nothing may be started on this node, whatever is wrong with it; "" when it may."""
    if node.labels.get(names.EXCLUDE_FROM_REMEDIATION) == "true":
        return f"opted out by label {names.EXCLUDE_FROM_REMEDIATION}=true"
    leaving = leaving_by(node)
    if leaving:
        return leaving
    if not pool.spec.allow_control_plane and any(key in node.labels for key in CONTROL_PLANE):
        return "a control plane node, and the pool does not allow those (allowControlPlane)"
    return ""


def _due(
    active: Active, seen_since: datetime, history: list[NodeRepair], pool: RepairPool, node: Node, now: datetime
) -> datetime | None:
    """When this fault may open a repair: None = now."""
    due: datetime | None = None
    again: datetime | None
    hold = parse_duration(active.type.spec.for_ or "0s")
    if timedelta(0) < hold <= PENDING_AT:
        due = seen_since + hold
    for repair in history:
        known = next((f for f in repair.spec.faults if f.type == active.name), None)
        if not repair.ended or not repair.status.ended_at or known is None:
            continue
        ended = parse_time(repair.status.ended_at)
        again = _again(repair, active, known, ended, history, pool, node)
        due = again if due is None or (again is not None and again > due) else due
    cooldown = parse_duration(pool.spec.budgets.per_node.cooldown)
    ends: list[datetime] = [parse_time(r.status.ended_at) for r in history if r.status.ended_at and _acted(r)]
    if cooldown and ends:
        rested: datetime = max(ends) + cooldown
        due = rested if due is None else max(due, rested)
    return due


def _again(
    repair: NodeRepair,
    active: Active,
    known: RepairFault,
    ended: datetime,
    history: list[NodeRepair],
    pool: RepairPool,
    node: Node,
) -> datetime | None:
    """What an ended repair of the same fault says about opening another one."""
    returned = active.identity != known.source.id
    outcome = repair.status.outcome
    if outcome in (Outcome.CANCELLED_BY_PERSON, Outcome.DENIED):
        boot_id = known.boot_id or repair.spec.node.boot_id
        same = not returned and (not boot_id or boot_id == node.boot_id)
        return ended + parse_duration(pool.spec.cancel_hold) if same else None
    if outcome == Outcome.GAVE_UP:
        tries = sum(1 for r in history if r.status.outcome == Outcome.GAVE_UP)
        return ended + min(ROLLED_BACK_FIRST * (1 << min(10, max(0, tries - 1))), ROLLED_BACK_MOST)
    if outcome in (Outcome.REPAIRED, Outcome.SELF_RECOVERED) and not returned and active.since is not None:
        return NEVER  # this very evidence was judged and cleared
    return None


def _acted(repair: NodeRepair) -> bool:
    return bool(repair.status.step("Repair").attempts)


def _budget_spent(history: list[NodeRepair], pool: RepairPool, now: datetime) -> str:
    budget = pool.spec.budgets.per_node
    since = now - parse_duration(budget.window)
    used = sum(1 for r in history if r.status.ended_at and _acted(r) and parse_time(r.status.ended_at) >= since)
    if used < budget.repairs:
        return ""
    return f"repeat offender: {used} repairs within {budget.window} (budgets.perNode), so {pool.spec.budgets.then}"


def _offender_ladder(pool: RepairPool) -> list[Rung]:
    """RepairHardware, or nothing at all: the node is quarantined and people are told."""
    return [Rung(action="RepairHardware")] if pool.spec.budgets.then == BudgetThen.REPAIR_HARDWARE else []


def _repair(
    node: Node,
    faults: list[Active],
    lead: Active,
    entry: RuleEntry,
    pool: RepairPool,
    rule: RepairRule,
    prefix: str,
    catalogue: str,
    now: datetime,
    name: str,
) -> NodeRepair:
    spec = NodeRepairSpec(
        origin="Fault",
        node=RepairNode(name=node.name, uid=node.uid, provider_id=node.spec.provider_id, boot_id=node.boot_id),
        pool=Ref(name=pool.metadata.name, uid=pool.metadata.uid, generation=pool.metadata.generation),
        rule=RuleRef(
            name=rule.metadata.name, uid=rule.metadata.uid, generation=rule.metadata.generation, entry=entry.name
        ),
        catalogue=catalogue,
        faults=[new_fault(a, node.boot_id, now) for a in faults[:MAX_FAULTS]],
        plan=planning.build(lead, pool, entry, prefix),
    )
    return NodeRepair(metadata=ObjectMeta(name=name, finalizers=[names.FINALIZER]), spec=spec)


def next_name(node: Node, past: Iterable[NodeRepair]) -> str:
    """The name of this node's next repair: highest number on record + 1, so that two writers collide."""
    stem = objectnames.repair_name(node.name, node.uid, 0)[:-1]
    numbers = [r.metadata.name[len(stem) :] for r in past if r.metadata.name.startswith(stem)]
    return f"{stem}{max((int(n) for n in numbers if n.isdigit()), default=0) + 1}"


def observes(pool: RepairPool, lead: Active) -> bool:
    """True when the pool only observes this fault: its override, the first that matches, or the pool's mode."""
    spec = lead.type.spec
    for override in pool.spec.overrides:
        if override.faults.matches(lead.name, spec.class_ or "", spec.severity or "", spec.labels or {}):
            return override.mode != Mode.ACT
    return pool.spec.mode != Mode.ACT
