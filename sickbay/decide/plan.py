"""From a fault, its pool and the rule's entry to the plan that stands in the repair's spec.

Everything is resolved here, so that the repair can be carried out to its end by what it carries, whatever happens to
pool, rule and catalogue meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sickbay.api import names
from sickbay.api.actions import ACTIONS, NO_NODE_REPAIR, domain_wide, needs_empty_node
from sickbay.api.duration import format_duration
from sickbay.api.fault_type import FaultType, Rung
from sickbay.api.repair_plan import Plan, PlanStep
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import Approval, DrainOptions, ProcedureStep, RepairRule, RuleEntry
from sickbay.api.words import ApprovalBy, DrainScope, NodeVolumes, Step, Urgency
from sickbay.decide.faults import Active

ORDER = tuple(str(step) for step in Step)

PEOPLE_GATE = Approval(by="People", timeout="24h", on_timeout="Escalate")
"""The gate where a rule has none but design or safety asks for one."""

CEILING = "24h"
"""Of an urgency, where the fault type names none (api.md)."""


def matching_entry(rule: RepairRule, name: str, fault: FaultType) -> RuleEntry | None:
    """The first entry of the rule whose faults match."""
    spec = fault.spec
    for entry in rule.spec.rules:
        if entry.faults.matches(name, spec.class_ or "", spec.severity or "", spec.labels or {}):
            return entry
    return None


def build(
    active: Active,
    pool: RepairPool,
    entry: RuleEntry,
    prefix: str,
    generation: int = 1,
    ladder: list[Rung] | None = None,
) -> Plan:
    """The plan for a leading fault. `ladder` replaces the fault type's remedy (budget spent)."""
    fault = active.type
    rungs = _ladder(fault, entry) if ladder is None else ladder
    steps = [
        _step(s.resolved(), fault, pool, rungs) for s in sorted(entry.procedure, key=lambda s: ORDER.index(s.step))
    ]
    steps = _with_validation(steps, fault)
    if rungs:
        steps = [_drained_in_full(s, rungs[0].action) for s in steps]
    return Plan(
        generation=generation,
        reason=f"{active.name} matches entry {entry.name}",
        urgency=fault.spec.urgency or "Now",
        ceiling=None if (fault.spec.urgency or "Now") == Urgency.NOW else fault.spec.ceiling or CEILING,
        approval_prefix=prefix,
        provider=pool.spec.provider,
        steps=steps,
    )


def _ladder(fault: FaultType, entry: RuleEntry) -> list[Rung]:
    repair = entry.step(Step.REPAIR)
    given = [Rung(action=repair.action)] if repair is not None and repair.action else fault.spec.remedy or []
    return [rung for rung in given if rung.action not in NO_NODE_REPAIR]


def _step(step: ProcedureStep, fault: FaultType, pool: RepairPool, rungs: list[Rung]) -> PlanStep:
    made = PlanStep(
        step=step.step,
        approval=step.approval,
        before=step.before,
        after=step.after,
        timeout=step.timeout,
        on_timeout=step.on_timeout,
        options=_options(step, pool),
        allow_undrained=step.allow_undrained,
        ceiling=step.ceiling,
        soak=step.soak,
        level=step.level,
    )
    if step.step == Step.QUARANTINE and pool.spec.quarantine.taint:
        made.taint = fault.spec.class_ or "Node"
    if step.step == Step.REPAIR:
        made.ladder = rungs
        made.action = rungs[0].action if rungs else None
        made.gate_irreversible = not pool.spec.local_data_disposable
    return made


def _options(step: ProcedureStep, pool: RepairPool) -> DrainOptions | None:
    """With what becomes of pods that can run nowhere else, where the rule leaves that to the pool."""
    if step.options is None or step.options.node_volumes:
        return step.options
    asked = NodeVolumes.EVICT if pool.spec.local_data_disposable else NodeVolumes.HOLD
    return msgspec.structs.replace(step.options, node_volumes=asked.value)


def gate_of(step: PlanStep, action: str) -> Approval | None:
    """The gate before a step, for the act it is about to do."""
    known = ACTIONS.get(action)
    asks_people = step.gate_irreversible and known is not None and known.asks_first
    if step.approval is None:
        return PEOPLE_GATE if asks_people else None
    if asks_people and step.approval.by == ApprovalBy.JOBS:
        return msgspec.structs.replace(step.approval, by=ApprovalBy.PEOPLE_AND_JOBS.value)
    return step.approval


def _with_validation(steps: list[PlanStep], fault: FaultType) -> list[PlanStep]:
    """Validate is implied before Unquarantine, and after every Repair: only what is proven counts as repaired."""
    found = {s.step for s in steps}
    implied = Step.UNQUARANTINE in found or Step.REPAIR in found
    if Step.VALIDATE not in found and implied:
        steps = [*steps, PlanStep(step=Step.VALIDATE)]
    steps = sorted(steps, key=lambda s: ORDER.index(s.step))
    validation = fault.spec.validation
    for step in steps:
        if step.step == Step.VALIDATE and validation is not None:
            step.ceiling = step.ceiling or validation.ceiling
            step.soak = step.soak if step.soak is not None else validation.soak
            step.level = step.level if step.level is not None else validation.level
            step.checks = validation.checks or []
    return steps


def with_empty_node(plan: Plan, action: str, climbed: bool = True) -> Plan:
    """The plan with a full Quarantine and Drain before a node-wide act.

    Steps that the rule does not have are added where a ladder has climbed to the act, behind a gate by People: the
    owner never said that the node may be emptied. (Before a first rung execute waits until the node is empty.)
    """
    steps = [_drained_in_full(s, action) for s in plan.steps]
    added = _missing(plan, action) if climbed else []
    if not added and steps == plan.steps:
        return plan
    steps = sorted([*(_from_rung(s, action) for s in steps), *added], key=lambda s: ORDER.index(s.step))
    return msgspec.structs.replace(
        plan, generation=plan.generation + 1, steps=steps, reason=f"{action} needs the node empty"
    )


def _drained_in_full(step: PlanStep, action: str) -> PlanStep:
    """A Drain of GPU pods alone is no drain for an act that takes the whole node down."""
    options = step.options
    if step.step != Step.DRAIN or options is None or options.scope == DrainScope.ALL or not _empties(action):
        return step
    return msgspec.structs.replace(step, options=msgspec.structs.replace(options, scope=DrainScope.ALL.value))


def _empties(action: str) -> bool:
    return action in ACTIONS and needs_empty_node(action)


def without_domain_acts(plan: Plan) -> Plan:
    """The plan for one node alone, without the rungs that would take down others too."""
    steps = []
    for step in plan.steps:
        if step.step == Step.REPAIR:
            ladder = [rung for rung in step.ladder if not domain_wide(rung.action)]
            step = msgspec.structs.replace(step, ladder=ladder, action=ladder[0].action if ladder else None)
        steps.append(step)
    return msgspec.structs.replace(plan, steps=steps)


def quarantined_first(plan: Plan) -> Plan:
    """The plan with a Quarantine before everything else, by People where the rule has none."""
    if plan.step(Step.QUARANTINE) is not None:
        return plan
    return msgspec.structs.replace(plan, steps=[PlanStep(step=Step.QUARANTINE, approval=PEOPLE_GATE), *plan.steps])


def _missing(plan: Plan, action: str) -> list[PlanStep]:
    """The steps around a node-wide act that the plan does not have."""
    found = {s.step for s in plan.steps}
    added: list[PlanStep] = []
    if not _empties(action) or {Step.QUARANTINE, Step.DRAIN} <= found:
        return added
    if Step.QUARANTINE not in found:
        added.append(PlanStep(step=Step.QUARANTINE, approval=PEOPLE_GATE))
    if Step.DRAIN not in found:
        drain = ProcedureStep(step=Step.DRAIN).resolved()
        gate = PEOPLE_GATE if not added else None
        repair = plan.step(Step.REPAIR)
        kept = NodeVolumes.HOLD if repair is None or repair.gate_irreversible else NodeVolumes.EVICT
        options = msgspec.structs.replace(drain.options or DrainOptions(), node_volumes=kept.value)
        added.append(
            PlanStep(step=Step.DRAIN, timeout=drain.timeout, on_timeout="Escalate", options=options, approval=gate)
        )
    for name in (Step.VALIDATE, Step.UNQUARANTINE):
        if name not in found and Step.QUARANTINE not in found:
            added.append(PlanStep(step=name))
    return added


def _from_rung(step: PlanStep, action: str) -> PlanStep:
    """The Repair step with the rungs from this one on: those before were tried under the former plan."""
    if step.step != Step.REPAIR:
        return step
    start = next((i for i, rung in enumerate(step.ladder) if rung.action == action), 0)
    return msgspec.structs.replace(step, ladder=step.ladder[start:])


def validation_times(plan: Plan, last_action: str) -> tuple[str, str]:
    """Ceiling and soak of Validate: as the rule or fault type says, otherwise by the act it follows."""
    step = plan.step(Step.VALIDATE) or PlanStep(step=Step.VALIDATE)
    known = ACTIONS.get(last_action) or ACTIONS["RebootNode"]
    return step.ceiling or format_duration(known.ceiling), step.soak or format_duration(known.soak)


def resolve_prefix(rule: RepairRule, extra: Mapping[str, str]) -> str:
    """The label prefix a rule asks for; "" when the name is configured nowhere."""
    return extra.get(rule.spec.approval_prefix) or names.APPROVAL_PREFIXES.get(rule.spec.approval_prefix, "")
