"""Repairs that a person opened by hand: fill in what they leave out.

A name, `origin: Manual`, the node's name and the act suffice. The gates and limits are those of the node's own pool and
rule; where the rule has no entry for it, Quarantine and Drain get a gate by People before a node-wide act.
"""

from __future__ import annotations

import msgspec

from sickbay.api.actions import domain_wide, needs_empty_node
from sickbay.api.core import Node
from sickbay.api.fault_type import FaultType, FaultTypeSpec, Rung
from sickbay.api.node_repair import NodeRepair, Ref, RuleRef
from sickbay.api.repair_plan import Plan, PlanStep
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import ProcedureStep, RepairRule, RuleEntry
from sickbay.api.words import FaultClass, Origin, Severity, Step
from sickbay.decide import plan as planning
from sickbay.decide.faults import Active
from sickbay.decide.hand import identity_of


def unfilled(repair: NodeRepair) -> bool:
    return repair.spec.origin == Origin.MANUAL and not repair.spec.pool.name and not repair.ended


def refusal(repair: NodeRepair, node: Node | None, pool: RepairPool | None, other: NodeRepair | None) -> str:
    """Why a repair by hand cannot be taken up; "" when it can."""
    if node is None:
        return f"there is no node {repair.spec.node.name}"
    if repair.spec.node.uid and repair.spec.node.uid != node.uid:
        return "the node has been re-created since: it has another UID"
    if pool is None:
        return "the node is in no pool with a rule: whose gates and limits should bind it?"
    asked = repair.spec.plan.step(Step.REPAIR)
    if asked is not None and domain_wide(asked.action or ""):
        return f"{asked.action} takes a whole domain down, and by hand only one node is repaired"
    if other is not None and other.metadata.uid != repair.metadata.uid:
        return f"the node is under repair already: {other.metadata.name}"
    return ""


def fill(
    repair: NodeRepair, node: Node, pool: RepairPool, rule: RepairRule | None, prefix: str, catalogue: str
) -> NodeRepair:
    """The record with identities and plan resolved."""
    asked = repair.spec.plan.step(Step.REPAIR)
    action = (asked.action if asked is not None else "") or "None"
    args = dict(asked.args) if asked is not None else {}
    spec = msgspec.structs.replace(
        repair.spec,
        node=identity_of(node),
        pool=Ref(name=pool.metadata.name, uid=pool.metadata.uid, generation=pool.metadata.generation),
        rule=_rule_ref(rule),
        catalogue=catalogue,
        plan=_plan(repair, action, args, pool, _entry(rule), prefix),
    )
    return msgspec.structs.replace(repair, spec=spec)


def _rule_ref(rule: RepairRule | None) -> RuleRef:
    if rule is None:
        return RuleRef()
    entry = _entry(rule)
    meta = rule.metadata
    return RuleRef(name=meta.name, uid=meta.uid, generation=meta.generation, entry=entry.name if entry else "")


def _entry(rule: RepairRule | None) -> RuleEntry | None:
    """The first entry that repairs: without a fault there is nothing to match, and its gates are the owner's."""
    if rule is None:
        return None
    return next((entry for entry in rule.spec.rules if entry.step(Step.REPAIR) is not None), None)


def _plan(
    repair: NodeRepair, action: str, args: dict[str, str], pool: RepairPool, entry: RuleEntry | None, prefix: str
) -> Plan:
    reason = repair.spec.plan.reason or f"{action} by hand"
    if action == "None":
        check = [PlanStep(step=Step.VALIDATE)]
        return Plan(reason=reason, approval_prefix=prefix, provider=pool.spec.provider, steps=check)
    ladder = [Rung(action=action, args=args)]
    plan = planning.build(_asked(ladder), pool, entry or _bare(), prefix, ladder=ladder)
    if not needs_empty_node(action):
        left_out = (Step.QUARANTINE, Step.DRAIN, Step.UNQUARANTINE)
        plan.steps = [step for step in plan.steps if step.step not in left_out]
    plan = planning.with_empty_node(plan, action)
    return msgspec.structs.replace(plan, generation=1, reason=reason)


def _asked(ladder: list[Rung]) -> Active:
    """What a person asks for, in the form of a fault whose remedy it is."""
    spec = FaultTypeSpec(class_=FaultClass.NODE.value, severity=Severity.INFO.value, remedy=ladder)
    return Active("a person", FaultType(spec=spec), None, "manual", "", "", ())


def _bare() -> RuleEntry:
    """Without an entry that repairs only the act itself is planned; what it needs around it gets a gate by People."""
    return RuleEntry(name="by-hand", procedure=[ProcedureStep(step=Step.REPAIR)])
