"""The gate before a step: ask, wait, and act on the answer by the outcome table of api.md."""

from __future__ import annotations

from datetime import datetime, timedelta

from sickbay.api import names
from sickbay.api.actions import ACTIONS, needs_empty_node
from sickbay.api.duration import format_duration, parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import Inquiry, changed_by
from sickbay.api.repair_rule import Approval
from sickbay.api.words import ApprovalBy, ApprovalTimeout, Needs, Outcome, Phase, Step, StepState, WaitsFor
from sickbay.clock import rfc3339
from sickbay.decide import group, urgency
from sickbay.decide.approval import Answer, answer, ask_ops
from sickbay.decide.endings import cancel, withdraw
from sickbay.decide.plan import gate_of
from sickbay.decide.work import Work

REMIND_EVERY, REMIND_AT_MOST = timedelta(hours=4), timedelta(hours=24)
"""Between two reminders of a call for people: as the default gate says, and at most."""


def passed(work: Work) -> bool:
    """True when the gate of the current step is open (or there is none). Otherwise the work says what it waits for."""
    current = work.current
    planned = gate_of(work.step(current.step), current.action)
    gate = urgency.with_people(work, planned)
    if gate is None:
        return True
    if gate.by == ApprovalBy.JOBS:
        return _jobs_passed(work, gate)
    asker = group.asker(work) if gate == planned else None  # what only the jobs here wait for is asked here
    if asker is not None:
        return _asked_elsewhere(work, gate, asker)
    inquiry = _inquiry(work, gate)
    given = answer(work.node, inquiry, work.plan.form)
    if work.state(current.step).approved_attempt == current.attempt and given != Answer.DENIED:
        return _jobs_passed(work, gate)
    match given:
        case Answer.APPROVED:
            _open(work)
            return _jobs_passed(work, gate)
        case Answer.DENIED:
            _denied(work, f"{work.current.step} was denied by {_who(work)}")
            return False
        case Answer.NOT_ASKED:
            work.node_ops = ask_ops(work.node, inquiry, work.plan.form)
    _wait(work, gate)
    return False


def _asked_elsewhere(work: Work, gate: Approval, asker: NodeRepair) -> bool:
    """Another member of the group asks for all: its answer is this one's too. The jobs on this node have their own."""
    current, state = work.current, work.state(work.current.step)
    if state.approved_attempt != current.attempt and group.approved(asker, current.step, work):
        theirs = asker.status.step(current.step)
        state.approved_attempt, state.approved_at = current.attempt, theirs.approved_at
        state.approved_by = theirs.approved_by
        withdraw(work)
    if state.approved_attempt == current.attempt:
        return _jobs_passed(work, gate)
    if asker.status.phase == Phase.NEEDS_HUMAN and asker.status.needs != Needs.APPROVAL_TIMEOUT:
        why = f"{current.step} waits for people on {asker.spec.node.name}: {asker.status.message}"
        work.wait_on(Phase.PENDING, WaitsFor.PEOPLE, why[:2048], current.waits_for == WaitsFor.PEOPLE)
        return False
    deadline = work.moment(asker.status.current.deadline)
    if deadline <= work.now:
        deadline = work.now + REMIND_EVERY
    message = f"{current.step} waits for the approval that is asked for the whole group on {asker.spec.node.name}"
    work.wait(Phase.WAITING_APPROVAL, WaitsFor.APPROVAL, message, asker.status.current.on_deadline, deadline)
    return False


def _jobs_passed(work: Work, gate: Approval) -> bool:
    """The jobs' part of the gate: open when each that is asked has its checkpoint, or its time is over."""
    if gate.by == ApprovalBy.PEOPLE:
        return True
    current = work.current
    asked = work.moment(current.since) if work.status.phase == Phase.WAITING_JOB else work.now
    wait = work.view.jobs(current.step, current.attempt, asked)
    if wait is None:
        return True
    if work.status.phase != Phase.WAITING_JOB:
        current.since = rfc3339(asked)
    work.wait(Phase.WAITING_JOB, WaitsFor.JOB, f"{current.step} {wait}", "GoOn", wait.until)
    return False


def _inquiry(work: Work, gate: Approval) -> Inquiry:
    meta, current = work.repair.metadata, work.current
    return Inquiry(
        repair=meta.name,
        uid=meta.uid,
        step=current.step,
        attempt=current.attempt,
        node_uid=work.node.uid,
        groups=list(gate.groups),
        by=gate.by,
    )


def _open(work: Work) -> None:
    state, current = work.state(work.current.step), work.current
    state.approved_attempt = current.attempt
    state.approved_at = rfc3339(work.now)
    state.approved_by = _who(work)
    work.status.needs = ""
    current.since = rfc3339(work.now)


def _who(work: Work) -> str:
    """Who changed the label last, by the stamp of the admission policy; "unknown" where it is not installed."""
    user = changed_by(work.node).user
    return user[:512] if user else "unknown"


def _wait(work: Work, gate: Approval) -> None:
    """Stand at the gate. After an escalated time-out it stays open, and people are reminded."""
    current, status = work.current, work.status
    if status.phase == Phase.NEEDS_HUMAN and status.needs == Needs.APPROVAL_TIMEOUT:
        return
    asked = work.moment(current.since)
    if status.phase != Phase.WAITING_APPROVAL:
        asked = work.now
        current.since = rfc3339(asked)
        work.note(names.awaiting_approval(current.step), _question(work, gate))
    deadline = asked + parse_duration(gate.timeout)
    if work.now >= deadline:
        _timed_out(work, gate)
        return
    work.wait(Phase.WAITING_APPROVAL, WaitsFor.APPROVAL, _question(work, gate), gate.on_timeout, deadline)
    for reminder in _reminders(gate, asked, deadline):
        if reminder > work.now:
            work.wake(reminder)
            break


def _reminders(gate: Approval, asked: datetime, deadline: datetime) -> list[datetime]:
    moments = [asked + parse_duration(text) for text in gate.reminders]
    return [moment for moment in sorted(moments) if moment < deadline]


def _question(work: Work, gate: Approval) -> str:
    step = work.current.step
    form = work.plan.form
    act = f" ({work.current.action})" if work.current.action else ""
    groups = f", by a member of {', '.join(gate.groups)}" if gate.groups else ""
    no = f" (or {form.denied[0]})" if form.denied else ""
    return (
        f"{step}{act} waits for approval{groups}: kubectl label node {work.node.name} "
        f"{form.key_of(step)}={(form.approved or ['approved'])[0]} --overwrite{no}"
    )


def _denied(work: Work, message: str) -> None:
    """The row "denied" of the outcome table; a time-out with Abort ends the same way."""
    step = work.current.step
    if step == Step.QUARANTINE or (step == Step.DRAIN and not work.acted):
        cancel(work, Outcome.DENIED, message)
    elif step in (Step.DRAIN, Step.REPAIR):
        to_validate(work, Outcome.DENIED, message)
    else:
        needs_people(work, Needs.APPROVAL_TIMEOUT, f"{message}: the node stays quarantined; uncordon it to return it")


def _timed_out(work: Work, gate: Approval) -> None:
    step = work.current.step
    message = f"nobody answered within {format_duration(parse_duration(gate.timeout))} whether {step} may run"
    if gate.on_timeout == ApprovalTimeout.ABORT:
        return _denied(work, message)
    if gate.on_timeout == ApprovalTimeout.SKIP and step == Step.REPAIR:
        skip(work, message)
        return to_validate(work, Outcome.SELF_RECOVERED, message)
    if may_be_skipped(work):
        return skip(work, message)
    return needs_people(work, Needs.APPROVAL_TIMEOUT, f"{message}; {_question(work, gate)}")


def may_be_skipped(work: Work) -> bool:
    """The gate of the current step lets it be left out when nobody answers."""
    gate = gate_of(work.step(work.current.step), work.current.action)
    return gate is not None and gate.on_timeout == ApprovalTimeout.SKIP and _may_be_left_out(work)


def skip(work: Work, message: str) -> None:
    step = work.current.step
    state = work.state(step)
    state.state, state.finished = StepState.SKIPPED, rfc3339(work.now)
    withdraw(work)
    work.note(names.step_reason(step, StepState.SKIPPED), message)


def _may_be_left_out(work: Work) -> bool:
    """Nothing that follows relies on the step. The API server refuses other rules; what got past it escalates."""
    if work.current.step == Step.DRAIN:
        return work.plan.step(Step.REPAIR) is None
    repair = work.plan.step(Step.REPAIR)
    acts = [rung.action for rung in repair.ladder] if repair is not None else []
    node_wide = any(action not in ACTIONS or needs_empty_node(action) for action in acts)
    return work.current.step == Step.QUARANTINE and work.plan.step(Step.DRAIN) is None and not node_wide


def to_validate(work: Work, outcome: Outcome, message: str) -> None:
    """Leave out what is left before Validate, and keep in mind how the repair will have ended when it passes."""
    current = work.current
    withdraw(work)
    for step in work.plan.steps:
        state = work.state(step.step)
        over = state.state in (StepState.DONE, StepState.FAILED, StepState.SKIPPED)
        if over or step.step not in (Step.DRAIN, Step.REPAIR):
            continue
        begun = state.state == StepState.RUNNING or step.step == current.step
        if state.state == StepState.RUNNING and step.step == current.step:
            work.close_attempt(StepState.CANCELLED)
        state.state = StepState.CANCELLED if begun else StepState.SKIPPED
        state.finished = rfc3339(work.now)
        work.note(names.step_reason(step.step, state.state), message)
    work.status.outcome, work.status.needs = outcome, ""
    go_to(work, Step.VALIDATE, message)


def go_to(work: Work, step: str, message: str = "") -> None:
    """Stand before a step that has not begun."""
    current = work.current
    current.step, current.action, current.args = step, "", {}
    current.stage, current.plan_generation = "", work.plan.generation
    current.since = rfc3339(work.now)
    current.waits_for = current.on_deadline = ""
    current.deadline = None
    work.state(step).state = StepState.WAITING
    work.status.phase = Phase.PENDING
    work.status.message = message


def needs_people(work: Work, needs: str, message: str) -> None:
    """Hand over to people. The node stays as it is; they are reminded until they act."""
    status, current = work.status, work.current
    first = status.phase != Phase.NEEDS_HUMAN or status.needs != needs
    deadline = work.moment(current.deadline)
    reminded = not first and deadline <= work.now
    if first or reminded:
        deadline = work.now + _reminder_every(work)
    status.needs = needs
    work.wait(Phase.NEEDS_HUMAN, WaitsFor.PEOPLE, message, "Remind", deadline)
    if first:
        current.since = rfc3339(work.now)
        work.note(f"{current.step}NeedsHuman", f"{needs}: {message}", warning=True)
    elif reminded:
        work.note(f"{current.step}NeedsHuman", f"still waiting for people: {needs}: {message}", warning=True)


def _reminder_every(work: Work) -> timedelta:
    """The last interval of the step's gate, repeated; at most a day."""
    gate = urgency.with_people(work, gate_of(work.step(work.current.step), work.current.action))
    last = [parse_duration(text) for text in gate.reminders[-1:]] if gate is not None else []
    return min(last[0], REMIND_AT_MOST) if last and last[0] > timedelta(0) else REMIND_EVERY
