"""In a step: what execute reports, and what the deadline brings."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from sickbay.api import names
from sickbay.api.duration import format_duration
from sickbay.api.node_repair import RepairFault
from sickbay.api.nodemarks import denied
from sickbay.api.repair_step import MOST_ATTEMPTS, Attempt
from sickbay.api.words import DrainTimeout, Needs, Outcome, Phase, ReportState, Stage, Step, StepState, WaitsFor
from sickbay.clock import rfc3339
from sickbay.decide import entering, faultstate, gate, group, stages, starting
from sickbay.decide.arbitration import strength
from sickbay.decide.endings import cancel, withdraw
from sickbay.decide.hand import marked
from sickbay.decide.ladder import next_rung
from sickbay.decide.replan import first_undone, take_over, worn_out
from sickbay.decide.work import REMIND, Work

REPAIR_SLACK = timedelta(minutes=1)
"""Execute reports the end of an act at its deadline; decide waits this much longer for it."""
STARTS = (Step.QUARANTINE, Step.DRAIN, Step.REPAIR)
"""Steps that a Hold of level NextStep keeps from starting; the way back into service always flows."""


def watch(work: Work) -> None:
    """Follow the running step to its end."""
    if work.current.stage:
        after = work.current.stage == Stage.AFTER
        if not _staged(work):
            return None
        if after:
            return _done(work, hooks_over=True)
    if _lost_to_another(work):
        return None
    report, step = work.report(), work.current.step
    if report is not None and report.state == ReportState.DONE and _visible(work):
        return _done(work)
    if report is not None and report.state == ReportState.UNKNOWN and step == Step.REPAIR:
        return _unknown(work, report.message)
    if report is not None and report.state == ReportState.UNKNOWN and step == Step.VALIDATE:
        return _unconfirmed(work, report.message)
    if report is not None and report.state in (ReportState.FAILED, ReportState.UNKNOWN):
        return _failed(work, report.message or f"{step} failed")
    if _kept_from_acting(work):
        return None
    if step == Step.DRAIN and _left_alone(work):
        return None
    if step == Step.VALIDATE and (_new_fault(work) or entering.taken_out(work)):
        return None
    if report is not None and report.message and work.status.phase in (Phase.RUNNING, Phase.PARKED):
        work.status.message = report.message
    if work.status.phase == Phase.PARKED and faultstate.recovered(work):
        return _done(work)
    deadline = work.moment(work.current.deadline)
    due = deadline + REPAIR_SLACK if step in (Step.REPAIR, Step.VALIDATE) else deadline
    if work.now >= due:
        return _late(work)
    work.wake(due)
    return None


def _lost_to_another(work: Work) -> bool:
    """Another remediator has taken the node's shared Lease from us: what is ours is given back.

    Not after the Repair has acted: then the node returns by its validation, and not before.
    """
    current, report = work.current, work.state(work.current.step).report
    same = (report.attempt, report.plan_generation) == (current.attempt, work.plan.generation)
    held = work.is_state(Step.QUARANTINE, StepState.DONE) and current.step in (Step.DRAIN, Step.REPAIR)
    acts = current.step == Step.REPAIR and report.state == ReportState.IN_PROGRESS
    if not (report.lost_to and same and held) or acts or work.repair.status.step(Step.REPAIR).attempts:
        return False
    cancel(work, Outcome.GAVE_UP, f"rolled back: {report.lost_to} has taken the node's Lease")
    return True


def _staged(work: Work) -> bool:
    """Follow the hooks around the step. True when the step itself is to be looked at again."""
    if stages.needless(work):
        entering.leave(work)
        return False
    before = work.current.stage == Stage.BEFORE
    if before and work.current.step in STARTS and entering.stopped_by_hold(work):
        stages.back(work)
        entering.held(work)
        return False
    if not stages.watch(work):
        return False
    if before:
        work.state(work.current.step).started = rfc3339(work.now)
        starting.run(work)
    return True


def _visible(work: Work) -> bool:
    """A cordon counts as done once we see it ourselves: a reader behind it would take it for a person's uncordon."""
    return work.current.step != Step.QUARANTINE or marked(work.repair, work.node)


def _kept_from_acting(work: Work) -> bool:
    """True while something keeps execute from claiming the step.

    Nothing has happened yet, so nothing can have failed: the wait uses up neither the step's time nor an attempt.
    """
    current, state = work.current, work.state(work.current.step)
    if work.report() is None:
        if denied(work.node, work.repair):
            state.state = StepState.WAITING  # the gate tells what follows
            return True
        if current.step in STARTS and entering.stopped_by_hold(work):
            state.state = StepState.WAITING
            return entering.held(work)
        report = state.report
        if report.waits_for and (report.attempt, report.plan_generation) == (current.attempt, work.plan.generation):
            message = report.message or f"{current.step} waits for {report.waits_for}"
            work.wait_on(Phase.RUNNING, report.waits_for, message, current.waits_for == report.waits_for)
            return True
    if current.on_deadline == REMIND:
        starting.run(work)  # the way is free now, and the step's time begins
    return False


def _left_alone(work: Work) -> bool:
    """A drain stops when the fault is proven gone, and pauses while it is only no longer seen."""
    if faultstate.recovered(work):
        entering.leave(work)
        return True
    current = work.current
    unproven = faultstate.unproven(work.repair) and not group.others_sick(work)
    current.waits_for = WaitsFor.CLEAR_PROOF if unproven else WaitsFor.PODS
    return False


def _new_fault(work: Work) -> bool:
    """A repairable fault that has turned up since the last act: this validation cannot pass, so do not sit it out."""
    if worn_out(work):
        return False
    standing = {f.type: f for f in work.repair.spec.faults if f.cleared_at is None}
    for active in work.view.active:
        fault = standing.get(active.name)
        if fault is None or strength(active.type) == 0 or not faultstate.since_act(work, fault):
            continue
        if _answered(work, fault) or _young(work, fault):
            continue
        plan = work.view.replan(active)
        if plan is None:
            continue
        work.close_attempt(StepState.CANCELLED)
        take_over(work, plan, active.name, f"{active.name} turned up")
        return True
    return False


def _young(work: Work, fault: RepairFault) -> bool:
    """Its `for` is not over yet: until then it only keeps the node from being well."""
    if faultstate.lasts(work, fault):
        return False
    work.wake(faultstate.lasts_at(work, fault))
    return True


def _answered(work: Work, fault: RepairFault) -> bool:
    """The fault leads already, and its plan came to Validate without an act: another plan would do the same again."""
    acts = work.repair.status.step(Step.REPAIR).attempts
    return fault is work.repair.spec.faults[0] and all(a.plan_generation != work.plan.generation for a in acts)


def _done(work: Work, hooks_over: bool = False) -> None:
    current, state = work.current, work.state(work.current.step)
    if not hooks_over and stages.begins(work, Stage.AFTER):
        return
    work.close_attempt(StepState.DONE)
    state.state, state.finished = StepState.DONE, rfc3339(work.now)
    work.note(names.step_reason(current.step, StepState.DONE), _told(work) or f"{current.step} is done")
    withdraw(work)
    work.status.phase = Phase.PENDING
    current.waits_for, current.deadline = "", None


def _told(work: Work) -> str:
    report = work.report()
    return report.message if report is not None else ""


def copied(work: Work, act: Attempt) -> None:
    """An act on the whole domain has ended on the member that led: its result is this member's too."""
    current, state = work.current, work.state(Step.REPAIR)
    current.action = act.action
    proof = {**act.proof, names.GROUP_ATTEMPT: str(act.n)}
    mine = msgspec.structs.replace(act, n=current.attempt, plan_generation=work.plan.generation, proof=proof)
    state.attempts = [*state.attempts, mine][-MOST_ATTEMPTS:]
    state.started, state.finished = act.started, rfc3339(work.now)
    if act.state == StepState.DONE:
        state.state = StepState.DONE
        work.status.phase = Phase.PENDING
        current.waits_for, current.deadline = "", None
        return None
    state.state, message = StepState.FAILED, f"{act.action} of the group did not succeed"
    if act.state == StepState.FAILED:
        return _after(work, act, message)
    return gate.go_to(work, Step.VALIDATE, f"nobody knows what became of {act.action} of the group")


def _failed(work: Work, message: str) -> None:
    step, state = work.current.step, work.state(work.current.step)
    work.close_attempt(StepState.FAILED)
    state.state, state.finished = StepState.FAILED, rfc3339(work.now)
    work.note(names.step_reason(step, StepState.FAILED), message, warning=True)
    withdraw(work)
    if step == Step.REPAIR and faultstate.recovered(work):
        return gate.go_to(work, Step.VALIDATE, message)  # whatever became of the act, nothing is left to repair
    if step == Step.REPAIR:
        return _after(work, state.attempts[-1], message)
    if step == Step.VALIDATE:
        return _not_well(work, message)
    if step == Step.DRAIN:
        return gate.needs_people(work, Needs.DRAIN_BLOCKED, message)
    if step == Step.UNQUARANTINE:
        if state.approved_attempt == work.current.attempt:
            state.approved_attempt += 1  # the return was approved; that the write failed does not undo it
        work.current.attempt += 1
        return gate.go_to(work, step, message)
    return gate.needs_people(work, Needs.REPAIR_FAILED, message)


def _unknown(work: Work, message: str) -> None:
    """Nobody can say what became of the act. Look at the node instead: Validate tells."""
    state = work.state(work.current.step)
    work.close_attempt(ReportState.UNKNOWN)
    state.state, state.finished = StepState.FAILED, rfc3339(work.now)
    work.note(names.step_reason(work.current.step, StepState.FAILED), message, warning=True)
    withdraw(work)
    gate.go_to(work, Step.VALIDATE, message)


def _unconfirmed(work: Work, message: str) -> None:
    """The checks of Validate have found nothing, good or bad: no reason for a stronger act, and none to return."""
    state = work.state(Step.VALIDATE)
    work.close_attempt(ReportState.UNKNOWN)
    state.state, state.finished = StepState.FAILED, rfc3339(work.now)
    work.note(names.step_reason(Step.VALIDATE, StepState.FAILED), message, warning=True)
    withdraw(work)
    gate.needs_people(work, Needs.VALIDATION_FAILED, message)


def _late(work: Work) -> None:
    """The deadline of the step has passed without a report."""
    step, report = work.current.step, work.report()
    if step == Step.DRAIN:
        return _drain_late(work)
    cordoned = report is not None and report.state == ReportState.DONE
    if step == Step.QUARANTINE and (cordoned or _visible(work)):
        return _done(work)
    return _failed(work, f"{step} did not end in time: {work.status.message}")


def _drain_late(work: Work) -> None:
    choice = work.step(Step.DRAIN).on_timeout or DrainTimeout.ESCALATE
    message = f"the drain did not end in time: {_told(work) or 'pods are left'}"
    state = work.state(Step.DRAIN)
    if choice == DrainTimeout.ROLL_BACK and work.acted:
        return gate.to_validate(work, Outcome.GAVE_UP, message)
    if choice == DrainTimeout.ROLL_BACK:
        work.note(names.step_reason(Step.DRAIN, StepState.FAILED), message, warning=True)
        again = format_duration(work.view.pause())
        cancel(work, Outcome.GAVE_UP, f"given up and rolled back: {message}; tried again {again} after its end")
        return None
    if choice != DrainTimeout.CONTINUE:
        return _failed(work, message)
    work.close_attempt(StepState.FAILED)
    withdraw(work)
    state.state, state.finished = StepState.SKIPPED, rfc3339(work.now)
    work.note(names.step_reason(Step.DRAIN, StepState.FAILED), f"{message}; going on as the rule says", warning=True)
    return entering.next_step(work)


def _not_well(work: Work, message: str) -> None:
    """Validate did not pass. After a repair the next rung follows; a fault that only seemed gone takes up its plan."""
    outcome = work.status.outcome
    if outcome == Outcome.SELF_RECOVERED and faultstate.all_clear(work.repair):
        return gate.needs_people(work, Needs.VALIDATION_FAILED, message)
    if outcome == Outcome.SELF_RECOVERED:
        work.status.outcome = ""
        work.current.attempt += 1
        for name in (Step.DRAIN, Step.REPAIR, Step.VALIDATE):
            if work.is_state(name, StepState.CANCELLED, StepState.SKIPPED, StepState.FAILED):
                work.state(name).state = StepState.WAITING
        undone = first_undone(work)
        if undone != Step.VALIDATE:
            return gate.go_to(work, undone, f"the fault came back: {message}")
    if outcome in (Outcome.DENIED, Outcome.GAVE_UP):
        return gate.needs_people(work, Needs.VALIDATION_FAILED, message)
    if unseen := faultstate.out_of_sight(work):
        why = f"{message}; {', '.join(unseen)} reads Unknown, which is no reason for a stronger act"
        return gate.needs_people(work, Needs.CLEAR_PROOF_MISSING, why)
    return _next_rung(work, Needs.VALIDATION_FAILED, message)


def _after(work: Work, act: Attempt, message: str) -> None:
    """An act has failed. One that was never handed over is no reason for a harsher one."""
    if names.WITHHELD in act.proof:
        return gate.needs_people(work, Needs.REPAIR_FAILED, message)
    return _next_rung(work, Needs.REPAIR_FAILED, message)


def _next_rung(work: Work, needs: Needs, message: str) -> None:
    if work.plan.step(Step.REPAIR) is None or next_rung(work.repair) is None:
        unknown = work.repair.status.step(Step.REPAIR).attempts[-1:]
        if unknown and unknown[0].state == ReportState.UNKNOWN:
            needs = Needs.UNKNOWN_RESULT
        return gate.needs_people(work, needs, message)
    work.current.attempt += 1
    work.state(Step.VALIDATE).state = StepState.WAITING
    return gate.go_to(work, Step.REPAIR, f"next remedy, since {message}")
