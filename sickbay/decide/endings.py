"""How a repair ends: cancelled by a person, rolled back, or over."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from sickbay.api import names
from sickbay.api.nodemarks import CORDON, FOREIGN, cordoned_anew
from sickbay.api.words import Outcome, Phase, Step, StepState
from sickbay.clock import rfc3339
from sickbay.decide.approval import withdraw_ops
from sickbay.decide.hand import holds_node, marked, node_lost
from sickbay.decide.work import Work

ROLLBACK_PATIENCE = timedelta(minutes=10)
"""How long taking back our marks may take before it counts as a new attempt."""

PHASE_OF = {
    Outcome.REPAIRED: Phase.SUCCEEDED,
    Outcome.REPLACED: Phase.SUCCEEDED,
    Outcome.LEFT_QUARANTINED: Phase.SUCCEEDED,
    Outcome.SELF_RECOVERED: Phase.CANCELLED,
    Outcome.CANCELLED_BY_PERSON: Phase.CANCELLED,
    Outcome.DENIED: Phase.CANCELLED,
    Outcome.NODE_GONE: Phase.CANCELLED,
    Outcome.GAVE_UP: Phase.FAILED,
    Outcome.OBSERVED: Phase.WOULD_ACT,
}


def withdraw(work: Work) -> None:
    """Take our question off the node, where it stands."""
    if not node_lost(work.repair, work.view.node):
        work.node_ops = withdraw_ops(work.node, work.repair.metadata.uid, work.plan.form)


def end(work: Work, outcome: Outcome, message: str) -> Work:
    """Close the record. Nothing happens for this incident after this."""
    status = work.status
    if outcome in (Outcome.CANCELLED_BY_PERSON, Outcome.DENIED) and work.plan.steps:
        _keep_boot(work)
    status.phase, status.outcome, status.message = PHASE_OF[outcome], outcome, message
    status.needs = ""
    status.current.stage = ""
    status.ended_at = rfc3339(work.now)
    work.repair.spec.plan = msgspec.structs.replace(work.plan, isolate=[])
    status.current.waits_for = status.current.on_deadline = ""
    status.current.deadline = None
    withdraw(work)
    work.note(names.REPAIR_ENDED, f"{outcome}: {message}", warning=outcome == Outcome.GAVE_UP)
    return work


def _keep_boot(work: Work) -> None:
    """What a person's word is about: the faults as they stand in this boot, whatever our own acts have changed."""
    if not node_lost(work.repair, work.view.node) and work.node.boot_id:
        for fault in work.repair.spec.faults:
            if fault.cleared_at is None:
                fault.boot_id = work.node.boot_id


def cancel(work: Work, outcome: Outcome, message: str) -> Work:
    """Stop for good: what runs is cancelled, what we hold is given back, and only then is the record closed."""
    current = work.current
    if current.step:
        state = work.state(current.step)
        if state.state in (StepState.RUNNING, StepState.WAITING, ""):
            if state.state == StepState.RUNNING:
                work.close_attempt(StepState.CANCELLED)
            if current.step != Step.QUARANTINE or state.state != StepState.RUNNING:
                state.state = StepState.CANCELLED
                state.finished = rfc3339(work.now)
                work.note(names.step_reason(current.step, StepState.CANCELLED), message)
    work.status.outcome = outcome
    work.status.needs = ""
    if not holds_node(work.repair):
        return end(work, outcome, message)
    withdraw(work)
    start_rollback(work, message, not _cordon_is_ours(work))
    return work


def _cordon_is_ours(work: Work) -> bool:
    """The cordon that stands now is the one that Quarantine has set. Once it was lifted, the next one is not.

    Until Quarantine is done we may not have seen our own cordon yet.
    """
    if node_lost(work.repair, work.view.node) or not work.is_state(Step.QUARANTINE, StepState.DONE):
        return True
    return work.node.unschedulable and not cordoned_anew(work.node)


def unvalidated(work: Work) -> str:
    """What people should know of a node that they take back: nobody has found it well, and what it has behind it."""
    if work.is_state(Step.VALIDATE, StepState.DONE):
        return ""
    sick = work.repair.uncleared
    still = f"; not cleared: {', '.join(sick[:4])}" if sick else ""
    history = work.view.history()
    return f"; returned without a passed validation{still}" + (f"; {history}" if history else "")


def start_rollback(work: Work, message: str, foreign_cordon: bool) -> None:
    """Have execute give back what we hold (Unquarantine under phase Cancelling).

    foreign_cordon   a cordon that stands there by then is somebody else's
    """
    current, state = work.current, work.state(Step.UNQUARANTINE)
    current.step = Step.UNQUARANTINE
    current.attempt += 1
    current.action, current.stage, current.plan_generation = "", "", work.plan.generation
    current.args = {CORDON: FOREIGN} if foreign_cordon else {}
    current.since = rfc3339(work.now)
    state.state, state.started = StepState.RUNNING, rfc3339(work.now)
    work.wait(Phase.CANCELLING, "", message, "Retry", work.now + ROLLBACK_PATIENCE)


def cancelling(work: Work) -> Work:
    """Wait for execute to have given everything back; try again when that fails, without end: releases always flow."""
    report = work.report()
    outcome = Outcome(work.status.outcome or Outcome.CANCELLED_BY_PERSON)
    if report is not None and report.state == "Done":
        work.close_attempt(StepState.DONE)
        step = work.state(Step.UNQUARANTINE)
        step.state, step.finished = StepState.DONE, rfc3339(work.now)
        quarantine = work.state(Step.QUARANTINE)
        if quarantine.state == StepState.RUNNING:
            quarantine.state, quarantine.finished = StepState.CANCELLED, rfc3339(work.now)
        return end(work, outcome, work.status.message)
    deadline = work.moment(work.current.deadline)
    if (report is not None and report.state == "Failed") or work.now >= deadline:
        work.close_attempt(StepState.FAILED)
        foreign = work.current.args.get(CORDON) == FOREIGN
        start_rollback(work, work.status.message, foreign or not marked(work.repair, work.node))
        return work
    work.wake(deadline)
    return work
