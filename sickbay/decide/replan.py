"""Let another fault lead: a new generation of the plan, in which what is already done stays done."""

from __future__ import annotations

import msgspec

from sickbay.api.repair_plan import Plan, PlanStep
from sickbay.api.repair_step import MOST_ATTEMPTS
from sickbay.api.words import FINAL_REPORTS, Phase, ReportState, Step, StepState
from sickbay.clock import rfc3339
from sickbay.decide import faultstate, gate
from sickbay.decide.plan import ORDER
from sickbay.decide.work import Work

MOST_PLANS = 6
"""Plans of one repair under which something was done. Faults that take the lead from each other need people."""


def worn_out(work: Work) -> bool:
    """So many plans have acted on the node already that another one would be no remedy."""
    attempts = work.repair.status.step(Step.REPAIR).attempts
    plans = {attempt.plan_generation for attempt in attempts}
    return len(plans) >= MOST_PLANS or len(attempts) >= MOST_ATTEMPTS


def take_over(work: Work, plan: Plan, lead: str, why: str) -> None:
    """Follow `plan` for the fault `lead` from here on, and stand before its first step that is not done."""
    work.repair.spec.faults.sort(key=lambda fault: fault.type != lead)
    plan.steps = _merged(work, plan)
    plan.isolate = work.plan.isolate
    work.follow(plan)
    work.status.outcome = work.status.needs = ""
    work.status.urgency = None
    work.current.attempt += 1
    for name in (Step.REPAIR, Step.VALIDATE):
        work.state(name).state = StepState.WAITING
    work.note("RepairReplanned", f"{why}: {plan.reason}")
    gate.go_to(work, first_undone(work), plan.reason)


def taken_out_too(work: Work, plan: Plan, fault: str) -> None:
    """Beside the plan at hand another fault of the node asks for a Quarantine: what takes the node out is added."""
    if work.is_state(work.current.step, StepState.RUNNING):
        work.close_attempt(StepState.CANCELLED)
    known = {step.step for step in work.plan.steps}
    added = [s for s in plan.steps if s.step not in known and s.step not in (Step.REPAIR,)]
    steps = sorted([*work.plan.steps, *added], key=lambda step: ORDER.index(step.step))
    reason = f"{fault} takes the node out of service as well"
    work.follow(msgspec.structs.replace(work.plan, steps=steps, reason=reason))
    work.current.attempt += 1
    work.state(Step.VALIDATE).state = StepState.WAITING
    work.note("RepairReplanned", reason)
    gate.go_to(work, first_undone(work), reason)


def finish(work: Work) -> None:
    """A new plan was written, and what follows from it was not any more: the process died, or the record had changed
    in between. What was ordered under the old plan is over, with what execute says of it; go on by the new one."""
    current = work.current
    if not current.step or work.repair.follows_plan:
        return
    if work.status.phase == Phase.CANCELLING:
        current.plan_generation = work.plan.generation  # the way back is the same under every plan
        return
    state = work.state(current.step)
    if state.state == StepState.RUNNING:
        report = work.report()
        said = report.state if report is not None else ""
        work.close_attempt(said if said in FINAL_REPORTS else StepState.CANCELLED)
        done = said == ReportState.DONE
        state.state, state.finished = (StepState.DONE, rfc3339(work.now)) if done else (StepState.WAITING, None)
    current.attempt += 1
    lead = next(iter(work.repair.spec.faults), None)
    fresh = lead is not None and lead.cleared_at is None and faultstate.since_act(work, lead)
    if fresh or not work.is_state(Step.REPAIR, StepState.DONE):
        work.state(Step.REPAIR).state = StepState.WAITING
    work.state(Step.VALIDATE).state = StepState.WAITING
    work.status.outcome = work.status.needs = ""
    work.status.urgency = None
    gate.go_to(work, first_undone(work), work.plan.reason)


def _merged(work: Work, plan: Plan) -> list[PlanStep]:
    """The new plan's steps, and of the old ones those that are done or take back what was done."""
    merged = {step.step: step for step in plan.steps}
    for step in work.plan.steps:
        if step.step not in (Step.REPAIR, Step.VALIDATE) and work.is_state(step.step, StepState.DONE):
            merged[step.step] = step
        elif step.step in (Step.VALIDATE, Step.UNQUARANTINE):
            merged.setdefault(step.step, step)
    return sorted(merged.values(), key=lambda step: ORDER.index(step.step))


def first_undone(work: Work) -> str:
    return next((s.step for s in work.plan.steps if not work.is_state(s.step, StepState.DONE)), str(Step.VALIDATE))
