"""Whether a sick node gets a new repair, and what it begins with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sickbay.api import names, objectnames
from sickbay.api.core import Node
from sickbay.api.duration import parse_duration
from sickbay.api.fault_type import FaultType
from sickbay.api.markers import leaving_by
from sickbay.api.meta import ObjectMeta
from sickbay.api.node_repair import NodeRepair, NodeRepairSpec, Ref, RuleRef
from sickbay.api.repair_plan import Plan
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule, RuleEntry
from sickbay.api.words import Mode, Outcome, Step
from sickbay.clock import parse_time
from sickbay.decide import budget
from sickbay.decide import plan as planning
from sickbay.decide.actionable import wants_repair
from sickbay.decide.arbitration import ordered
from sickbay.decide.faults import Active
from sickbay.decide.faultstate import MAX_FAULTS, new_fault
from sickbay.decide.hand import holds_node, identity_of
from sickbay.decide.memory import kept_back

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

    past   all repairs on record for a node of this name, and those of the same machine under other names: a machine
           that was handed back and returns is not new to its budget
    seen   since when we have seen each fault without a break, by its name
    """
    history = [r for r in past if r.spec.node.uid == node.uid]
    refusal = hands_off(node, pool) or _left_out(history)
    if refusal:
        return Opening(why=refusal)
    wanted, again = candidates(node, active, pool, rule, history, seen, now)
    if not wanted:
        return Opening(why="no active fault asks for a repair now", again=again)
    if not prefix:
        name = rule.metadata.name
        return Opening(why=f"approvalPrefix {rule.spec.approval_prefix!r} of rule {name} is not configured")
    chosen = _chosen(wanted, pool, seen, now)
    lead, entry = chosen[0]
    machine = [r for r in past if r in history or (node.serial and r.spec.node.serial == node.serial)]
    plan = budget.planned(lead, pool, entry, prefix, machine, now)
    if any(kept_back(repair, lead, node, pool) is not None for repair in history):
        plan = _asked_again(plan)
    faults = [fault for fault, _ in chosen]
    return Opening(repair=_repair(node, faults, entry, pool, rule, plan, seen, catalogue, now, next_name(node, past)))


def _left_out(history: Iterable[NodeRepair]) -> str:
    """A rule that returns no nodes has taken it out: that is not done again and again."""
    left = any(r.status.outcome == Outcome.LEFT_QUARANTINED and holds_node(r) for r in history)
    return "an ended repair has left it in quarantine, until a person uncordons it" if left else ""


def _chosen(
    wanted: list[tuple[Active, RuleEntry]], pool: RepairPool, seen: Mapping[str, datetime], now: datetime
) -> list[tuple[Active, RuleEntry]]:
    """The faults of the new repair, the leading one first.

    One that is only observed, or whose `for` is not over yet, neither leads nor delays one that can be treated now.
    """
    acting = [each for each in wanted if not observes(pool, each[0])] or wanted
    return sorted(acting, key=lambda each: not _lasts(each[0], seen, now))


def _lasts(fault: Active, seen: Mapping[str, datetime], now: datetime) -> bool:
    """The fault has been seen for the `for` of its type."""
    return seen.get(fault.name, now) + parse_duration(fault.type.spec.for_ or "0s") <= now


def candidates(
    node: Node,
    active: Iterable[Active],
    pool: RepairPool,
    rule: RepairRule,
    history: list[NodeRepair],
    seen: Mapping[str, datetime],
    now: datetime,
    young: bool = False,
) -> tuple[list[tuple[Active, RuleEntry]], datetime | None]:
    """The faults that may be treated now with their entries of the rule, the leading one first; with `young` those too
    that have not lasted for their `for` yet.

    And when the next of the others may be; None when none will by time alone.
    """
    wanted: list[tuple[Active, RuleEntry]] = []
    again: datetime | None = None
    for candidate in ordered(active):
        entry = planning.matching_entry(rule, candidate.name, candidate.type)
        if entry is None or not wants_repair(candidate.type):
            continue
        due = _due(candidate, seen.get(candidate.name, now), history, pool, node, young)
        if due is not None and due > now:
            again = due if again is None else min(again, due)
            continue
        wanted.append((candidate, entry))
    return wanted, again


def joining(
    node: Node,
    active: Iterable[Active],
    pool: RepairPool,
    rule: RepairRule,
    history: list[NodeRepair],
    seen: Mapping[str, datetime],
    now: datetime,
    returning: bool = False,
) -> tuple[frozenset[str], frozenset[str]]:
    """Faults that may join an open repair now: those that are acted on, and those that are only observed.

    A fault with a long `for` opens a repair of its own at first sight, as its timer, but joins another one only when
    its time is over; a node that is about to return (`returning`) is not well while it is there, however young. One of
    a whole domain joins none: it opens a group when the node is free.
    """
    wanted, _ = candidates(node, active, pool, rule, history, seen, now, young=returning)
    ready = [
        fault for fault, _ in wanted if (returning or _lasts(fault, seen, now)) and fault.type.spec.scope != "Domain"
    ]
    observed = frozenset(fault.name for fault in ready if observes(pool, fault))
    return frozenset(fault.name for fault in ready) - observed, observed


def _asked_again(plan: Plan) -> Plan:
    """What a person stopped is begun again only with a person's word."""
    for step in plan.steps[:1]:
        if step.approval is None and step.step != Step.VALIDATE:
            step.approval = planning.PEOPLE_GATE
    return plan


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
    active: Active, seen_since: datetime, history: list[NodeRepair], pool: RepairPool, node: Node, young: bool
) -> datetime | None:
    """When this fault may open a repair, with `young` whether or not its `for` is over: None = now."""
    hold = timedelta(0) if young else parse_duration(active.type.spec.for_ or "0s")
    waits = [seen_since + hold] if timedelta(0) < hold <= PENDING_AT else []
    waits += [at for r in history if r.ended and (at := _again(r, active, history, pool, node)) is not None]
    cooldown, ends = parse_duration(pool.spec.budgets.per_node.cooldown), budget.ends(history)
    if cooldown and ends:
        waits.append(max(ends) + cooldown)
    return max(waits, default=None)


def _again(
    repair: NodeRepair, active: Active, history: list[NodeRepair], pool: RepairPool, node: Node
) -> datetime | None:
    """What an ended repair of the same fault says about opening another one."""
    known = next((f for f in repair.spec.faults if f.type == active.name), None)
    if known is None or not repair.status.ended_at:
        return None
    outcome, same = repair.status.outcome, active.identity == known.source.id and active.since is not None
    if outcome == Outcome.GAVE_UP and repair.spec.pool.uid != pool.metadata.uid:
        return None  # the pause is for trying the same again; under another pool it is not the same
    if outcome == Outcome.GAVE_UP:
        return parse_time(repair.status.ended_at) + pause_after(_given_up(active.name, history))
    if outcome in (Outcome.REPAIRED, Outcome.SELF_RECOVERED) and same and known.cleared_at is not None:
        return NEVER  # this very evidence was judged and cleared
    return kept_back(repair, active, node, pool)


def next_pause(repair: NodeRepair, past: Iterable[NodeRepair]) -> timedelta:
    """How long the node waits for its next repair when this one is rolled back too."""
    history = [r for r in past if r.spec.node.uid == repair.spec.node.uid and r.metadata.uid != repair.metadata.uid]
    return pause_after(1 + (_given_up(repair.spec.faults[0].type, history) if repair.spec.faults else 0))


def pause_after(times: int) -> timedelta:
    """The pause after so many repairs in a row that were rolled back: 30 minutes, doubled up to a day (api.md)."""
    return min(ROLLED_BACK_FIRST * (1 << min(10, max(0, times - 1))), ROLLED_BACK_MOST)


def _given_up(fault: str, history: list[NodeRepair]) -> int:
    """How often in a row repairs of this fault were rolled back, up to the last one."""
    ended = sorted((r for r in history if r.ended and r.status.ended_at), key=lambda r: r.status.ended_at or "")
    mine = [r for r in ended if any(f.type == fault for f in r.spec.faults)]
    return next((n for n, r in enumerate(reversed(mine)) if r.status.outcome != Outcome.GAVE_UP), len(mine))


def _repair(
    node: Node,
    faults: list[Active],
    entry: RuleEntry,
    pool: RepairPool,
    rule: RepairRule,
    plan: Plan,
    seen: Mapping[str, datetime],
    catalogue: str,
    now: datetime,
    name: str,
) -> NodeRepair:
    spec = NodeRepairSpec(
        origin="Fault",
        node=identity_of(node),
        pool=Ref(name=pool.metadata.name, uid=pool.metadata.uid, generation=pool.metadata.generation),
        rule=RuleRef(
            name=rule.metadata.name, uid=rule.metadata.uid, generation=rule.metadata.generation, entry=entry.name
        ),
        catalogue=catalogue,
        faults=[new_fault(a, node.boot_id, seen.get(a.name, now), now) for a in faults[:MAX_FAULTS]],
        plan=plan,
    )
    return NodeRepair(metadata=ObjectMeta(name=name, finalizers=[names.FINALIZER]), spec=spec)


def next_name(node: Node, past: Iterable[NodeRepair]) -> str:
    """The name of this node's next repair: highest number on record + 1, so that two writers collide."""
    stem = objectnames.repair_name(node.name, node.uid, 0)[:-1]
    numbers = [r.metadata.name[len(stem) :] for r in past if r.metadata.name.startswith(stem)]
    return f"{stem}{max((int(n) for n in numbers if n.isdigit()), default=0) + 1}"


def observes(pool: RepairPool, lead: Active) -> bool:
    """True when the pool only observes this fault: its override, the first that matches, or the pool's mode."""
    return observes_type(pool, lead.name, lead.type)


def observes_type(pool: RepairPool, name: str, fault: FaultType | None) -> bool:
    """The same by name; for a type that is no longer known the pool's mode decides."""
    spec = fault.spec if fault is not None else None
    for override in pool.spec.overrides if spec is not None else ():
        assert spec is not None
        if override.faults.matches(name, spec.class_ or "", spec.severity or "", spec.labels or {}):
            return override.mode != Mode.ACT
    return pool.spec.mode != Mode.ACT
