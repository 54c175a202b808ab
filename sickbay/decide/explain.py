"""What a person should know about one node: what is wrong, what is done about it, what it waits for, and what to do.

A pure function over the same objects that the decisions are made from, so that what is explained is what is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.markers import leaving_by
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule, RuleEntry
from sickbay.api.words import Needs, Phase, WaitsFor
from sickbay.decide import actors
from sickbay.decide import plan as planning
from sickbay.decide.actionable import wants_repair
from sickbay.decide.faults import Active
from sickbay.decide.opening import hands_off, observes
from sickbay.decide.slots import GPU_RESOURCES


@dataclass
class Wait:
    """What a repair stands before. Empty words mean that it does not wait."""

    waits_for: str = ""
    since: str = ""
    until: str = ""
    then: str = ""
    actor: str = ""
    """Who has to do something before it goes on."""
    next_step: str = ""
    """What follows when that is done."""
    command: str = ""
    """What a person may type to move it on; empty when nothing has to be done."""


@dataclass
class Explanation:
    node: str
    summary: str = ""
    faults: list[str] = field(default_factory=list)
    gpus: list[str] = field(default_factory=list)
    """By resource: how many are offered of how many there are."""
    pool: str = ""
    rule: str = ""
    entries: list[str] = field(default_factory=list)
    """For each entry of the rule: whether it matches the leading fault, and if not, why."""
    holds: list[str] = field(default_factory=list)
    repair: str = ""
    phase: str = ""
    outcome: str = ""
    group: str = ""
    """The group it is repaired in, and who leads; "" where it stands alone."""
    isolated: list[str] = field(default_factory=list)
    """Cards that may be isolated meanwhile."""
    steps: list[str] = field(default_factory=list)
    message: str = ""
    wait: Wait = field(default_factory=Wait)


def explain(
    node: Node, active: list[Active], pool: RepairPool | None, rule: RepairRule | None, repairs: Iterable[NodeRepair],
    holds: Iterable[Hold], aside: Mapping[str, str] = {},
) -> Explanation:  # fmt: skip
    """Explain a node.

    repairs   those on record for it
    holds     those that bind it
    aside     fault types that nobody acts on, with the reason
    """
    told = Explanation(node.name, faults=[_fault(a, aside.get(a.name, "")) for a in active])
    told.gpus = list(_gpus(node))
    active = [a for a in active if a.name not in aside]
    told.pool = pool.metadata.name if pool is not None else ""
    told.rule = (pool.spec.rule or "") if pool is not None else ""
    told_holds = list(holds)
    told.holds = [_hold(hold) for hold in told_holds]
    lead = next((a for a in active if wants_repair(a.type)), active[0] if active else None)
    if rule is not None and lead is not None:
        told.entries = list(_entries(rule, lead))
    mine = sorted(
        (r for r in repairs if r.spec.node.uid == node.uid), key=lambda r: r.metadata.creation_timestamp or ""
    )
    current = next((r for r in mine if not r.ended), mine[-1] if mine else None)
    if current is not None:
        _tell_repair(told, current)
        if not current.ended:
            told.wait = _wait(current, node, told_holds)
    if pool is not None and (current is None or current.ended) and leaving_by(node):
        told.wait = Wait(actor=leaving_by(node), next_step="none by Sickbay; when that is over the node is judged anew")
    told.summary = _summary(node, active, pool, rule, current, len(told.faults) > len(active))
    return told


def _hold(hold: Hold) -> str:
    """Until when it binds, and who may be asked about it."""
    spec = hold.spec
    until, owner = f"until {spec.until or 'it is released'}", f", owner {spec.owner}" if spec.owner else ""
    return f"{hold.metadata.name} ({spec.level}) {until}{owner}: {spec.reason or 'no reason given'}"


def _gpus(node: Node) -> Iterator[str]:
    """What the node offers, of what it has: by its kubelet, or by its owner's word where that is more."""
    offered, capacity = node.status.allocatable, node.status.capacity
    label = node.labels.get(names.GPUS_EXPECTED, "")
    for resource in GPU_RESOURCES:
        there = max(_number(capacity.get(resource)), _number(label) if resource in capacity else 0)
        if there:
            yield f"{_number(offered.get(resource))} of {there} {resource}"


def _number(text: object) -> int:
    return int(str(text)) if str(text).isdigit() else 0


def _entries(rule: RepairRule, lead: Active) -> Iterator[str]:
    """The first entry that matches is followed, and no other."""
    first = ""
    for entry in rule.spec.rules:
        why = _why(entry, lead)
        if first and not why.startswith("no: "):
            why = f"no: {first} comes first"
        elif not why.startswith("no: "):
            first = entry.name
        yield f"{entry.name}: {why}"


def _fault(active: Active, aside: str) -> str:
    spec = active.type.spec
    devices = f" on {', '.join(active.devices)}" if active.devices else ""
    ladder = ", then ".join(rung.action for rung in spec.remedy or []) or "no remedy"
    return f"{active.name} ({spec.class_}, {spec.severity}){devices}: {active.message or active.reason or ladder}" + (
        f"; set aside: it {aside}" if aside else ""
    )


def _why(entry: RuleEntry, lead: Active) -> str:
    """Whether an entry matches, and by which key it does not."""
    spec, faults = lead.type.spec, entry.faults
    if faults.names and lead.name not in faults.names:
        return f"no: faults.names does not list {lead.name}"
    if faults.classes and spec.class_ not in faults.classes:
        return f"no: class {spec.class_} is not among {', '.join(faults.classes)}"
    if faults.severities and spec.severity not in faults.severities:
        return f"no: severity {spec.severity} is not among {', '.join(faults.severities)}"
    labels = spec.labels or {}
    missing = [f"{k}={v}" for k, v in faults.labels.items() if labels.get(k) != v]
    if missing:
        return f"no: the fault type does not carry {', '.join(missing)}"
    return f"matches {lead.name}: {', '.join(step.step for step in entry.procedure)}"


def _tell_repair(told: Explanation, repair: NodeRepair) -> None:
    status = repair.status
    told.repair, told.phase, told.outcome = repair.metadata.name, status.phase, status.outcome
    told.message = status.message
    told.isolated = list(repair.spec.plan.isolate)
    group = repair.spec.group
    if group.id:
        lead = "leads it" if group.leader == repair.metadata.name else f"{group.leader} leads it"
        told.group = f"{group.id} ({len(group.members)} nodes: {', '.join(group.members[:8])}); {lead}"
    for step in repair.spec.plan.steps:
        state = status.step(step.step).state or "-"
        act = f" ({step.action})" if step.action else ""
        told.steps.append(f"{step.step}{act}: {state}")


def _wait(repair: NodeRepair, node: Node, holds: list[Hold]) -> Wait:
    current = repair.status.current
    return Wait(
        waits_for=current.waits_for,
        since=current.since or "",
        until=current.deadline or "",
        then=_then(current.on_deadline),
        actor=actors.actor(repair, node, holds),
        next_step=actors.next_step(repair),
        command=next_command(repair),
    )


def _then(word: str) -> str:
    """What happens at the deadline, in words."""
    return {
        "Escalate": "people are asked",
        "AskPeople": "people are asked whether the node may leave sooner",
        "Remind": "people are reminded",
        "Skip": "the step is left out",
        "Abort": "the repair ends as if denied",
        "Continue": "the repair goes on",
        "GoOn": "the repair goes on without the jobs' answer",
        "RollBack": "the node is given back",
        "NextRung": "the next remedy follows",
        "Retry": "it is tried again",
        "Start": "the repair starts",
    }.get(word, word)


def next_command(repair: NodeRepair) -> str:
    """The command that would move a repair on; "" while nobody is needed."""
    status, node = repair.status, repair.spec.node.name
    gated = status.current.waits_for == WaitsFor.APPROVAL or status.needs == Needs.APPROVAL_TIMEOUT
    if gated:
        return f"sickbay approve {node} {status.current.step}"
    if status.needs == Needs.HOOK_FAILED:
        return f"sickbay resolve {node} --outcome GoOn"
    if status.needs == Needs.POOL_WITHDRAWN:
        return f"sickbay resolve {node} --outcome CancelledByPerson --reason WHY"
    if status.phase == Phase.NEEDS_HUMAN:
        return f"sickbay resolve {node} --outcome Repaired"
    if status.phase == Phase.PARKED:
        return f"sickbay resolve {node} --outcome Repaired   (when the third party is done)"
    if status.current.waits_for == WaitsFor.HOLD:
        return "sickbay release <hold>"
    if status.current.waits_for == WaitsFor.BREAKER:
        return f"sickbay status {repair.spec.pool.name}"
    return ""


def _summary(
    node: Node, active: list[Active], pool: RepairPool | None, rule: RepairRule | None, repair: NodeRepair | None,
    told_aside: bool,
) -> str:  # fmt: skip
    if repair is not None and not repair.ended:
        return f"under repair: {repair.status.phase}"
    if not active and told_aside:
        return "faulty by a fault type that is set aside (MatchesTooMany): nothing is done"
    if not active and not node.ready:
        return _unready(node)
    if not active:
        return f"nothing is wrong with it that Sickbay knows of; {_cordon(node) or 'in service'}"
    if names.QUARANTINE in node.annotations:
        return "left in quarantine"
    return _unrepaired(node, active, pool, rule)


def _unready(node: Node) -> str:
    """A node that cannot be said to be well, and of which no fault type says that it is sick."""
    ready = node.condition("Ready")
    if ready is None:
        return (
            "its kubelet has not said yet whether it is ready (no condition Ready): nobody knows, and nothing is done"
        )
    what = "its kubelet says that it is not ready" if ready.status == "False" else "its kubelet is silent"
    reason = f" ({ready.reason})" if ready.reason else ""
    cordon = f"; {_cordon(node)}" if _cordon(node) else ""
    return (
        f"{what} since {ready.last_transition_time or '?'}: Ready is {ready.status}{reason}{cordon}. No fault type "
        "that acts matches that, so nothing is done; docs/custom-faults.md shows how to write one"
    )


def _cordon(node: Node) -> str:
    if names.QUARANTINE in node.annotations:
        return "left in quarantine"
    return "cordoned, and not by Sickbay" if node.unschedulable else ""


def _unrepaired(node: Node, active: list[Active], pool: RepairPool | None, rule: RepairRule | None) -> str:
    """Why a sick node has no repair."""
    if pool is None:
        return "faulty, and in no pool with a rule: nothing is done"
    if rule is None:
        return f"faulty; rule {pool.spec.rule} of pool {pool.metadata.name} does not exist: nothing is done"
    off = hands_off(node, pool)
    if off:
        return f"faulty, and left alone: {off}"
    treated = [a for a in active if wants_repair(a.type) and planning.matching_entry(rule, a.name, a.type)]
    if not treated:
        return f"faulty, but no entry of rule {rule.metadata.name} treats it, or it asks for no repair of the node"
    if observes(pool, treated[0]):
        return f"faulty; pool {pool.metadata.name} only observes"
    return "faulty; a repair is about to open, or was cancelled by a person for this very fault"
