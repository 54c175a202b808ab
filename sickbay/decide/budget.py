"""Repeat offenders: a node that has used up its repairs gets another kind of plan."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from sickbay.api.duration import parse_duration
from sickbay.api.fault_type import Rung
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_plan import Plan
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RuleEntry
from sickbay.api.words import BudgetThen, Needs, Step
from sickbay.clock import parse_time
from sickbay.decide import plan as planning
from sickbay.decide.faults import Active


def planned(
    lead: Active, pool: RepairPool, entry: RuleEntry, prefix: str, history: Iterable[NodeRepair], now: datetime
) -> Plan:
    """The plan for a leading fault, or for a repeat offender: the node is taken out first either way."""
    spent = used_up(history, pool, now)
    if not spent:
        return planning.build(lead, pool, entry, prefix)
    if pool.spec.budgets.then == BudgetThen.REPAIR_HARDWARE:
        plan = planning.build(lead, pool, entry, prefix, ladder=[Rung(action="RepairHardware")])
        plan = planning.with_empty_node(plan, "RepairHardware")
    else:
        plan = planning.quarantined_first(planning.build(lead, pool, entry, prefix, ladder=[]))
        for step in plan.steps:
            if step.step == Step.REPAIR:
                step.needs = Needs.BUDGET_SPENT.value
    return msgspec.structs.replace(plan, generation=1, reason=spent)


def used_up(history: Iterable[NodeRepair], pool: RepairPool, now: datetime) -> str:
    """Why the node counts as a repeat offender; "" when it does not."""
    budget = pool.spec.budgets.per_node
    since = now - parse_duration(budget.window)
    used = sum(1 for end in ends(history) if end >= since)
    if used < budget.repairs:
        return ""
    return f"repeat offender: {used} repairs within {budget.window} (budgets.perNode), so {pool.spec.budgets.then}"


def ends(history: Iterable[NodeRepair]) -> list[datetime]:
    """When the repairs ended whose Repair step acted."""
    acted = (r for r in history if r.ended and r.status.ended_at and r.status.step("Repair").attempts)
    return [parse_time(r.status.ended_at) for r in acted if r.status.ended_at]
