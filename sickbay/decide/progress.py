"""One open repair, one moment: what becomes of it now.

    look       node gone? a person's hand? only observed? cancelling? frozen by a hold?
    faults     what is seen, gone, proven gone
    entering   before a step: still needed? proof missing? hold? gate? slot?  -> start
    running    in a step: reported done, failed, unknown? deadline?           -> next step, next rung, people

The same record and the same view always give the same result, so a controller may ask again at any moment, after any
crash, as often as it likes.
"""

from __future__ import annotations

import msgspec

from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import HoldLevel, Needs, Outcome, Phase, Step, StepState
from sickbay.clock import rfc3339
from sickbay.decide import entering, faultstate, gate, running
from sickbay.decide.endings import cancel, cancelling, end
from sickbay.decide.hand import holds_node, node_lost, persons_hand
from sickbay.decide.work import View, Work

_DECODE = msgspec.json.Decoder(NodeRepair).decode
_ENCODE = msgspec.json.Encoder().encode

HOPS = 8
"""Transitions within one look (step done, next step needs no gate, ...). More than five steps have cannot happen."""


def advance(repair: NodeRepair, view: View) -> Work:
    """The repair as it should be at `view.now`. The argument is not changed."""
    work = Work(_DECODE(_ENCODE(repair)), view)
    if repair.ended:
        return _left_quarantined(work)
    if not work.status.started_at:
        work.status.started_at = rfc3339(view.now)
    return _look(work)


def _look(work: Work) -> Work:
    repair, view = work.repair, work.view
    if node_lost(repair, view.node):
        return _gone(work)
    if view.observe and not holds_node(repair):
        return _observing(work)
    if work.status.phase == Phase.WOULD_ACT:
        return end(work, Outcome.OBSERVED, "the pool acts now: what is still wrong becomes a repair of its own")
    if work.status.phase == Phase.CANCELLING:
        return cancelling(work)
    if view.hold == HoldLevel.EVERY_ACT:
        work.status.message = f"frozen by a Hold: {view.hold_reason}"
        return work
    if repair.metadata.deletion_timestamp is not None:
        return cancel(work, Outcome.CANCELLED_BY_PERSON, "the record was deleted by a person")
    hand = persons_hand(repair, work.node)
    if hand:
        return cancel(work, Outcome.CANCELLED_BY_PERSON, f"cancelled by a person: {hand}")
    faultstate.refresh(work)
    return _steps(work)


def _steps(work: Work) -> Work:
    for _ in range(HOPS):
        before = (work.status.phase, work.current.step, work.current.attempt, _step_state(work))
        if work.status.phase == Phase.NEEDS_HUMAN:
            _with_people(work)
        elif _step_state(work) == StepState.RUNNING:
            running.watch(work)
        else:
            entering.enter(work)
        after = (work.status.phase, work.current.step, work.current.attempt, _step_state(work))
        if after == before or work.repair.ended or work.wants or work.status.phase == Phase.CANCELLING:
            break
    return work


def _step_state(work: Work) -> str:
    return work.state(work.current.step).state if work.current.step else ""


def _gone(work: Work) -> Work:
    """The node of the incident is no more: nothing is left to give back, and nothing is retried."""
    current = work.current
    replacing = current.step == Step.REPAIR and current.action in ("ReplaceNode", "ReprovisionNode")
    if current.step and _step_state(work) == StepState.RUNNING:
        work.close_attempt(StepState.DONE if replacing else StepState.CANCELLED)
        work.state(current.step).state = StepState.DONE if replacing else StepState.CANCELLED
    if replacing:
        return end(work, Outcome.REPLACED, "the old node and its machine are gone")
    return end(work, Outcome.NODE_GONE, "the node is gone, or another one has its name")


def _observing(work: Work) -> Work:
    """Observe mode: say what would be done, touch nothing, close when the fault is gone."""
    faultstate.refresh(work)
    if faultstate.all_clear(work.repair) or not work.view.active:
        return end(work, Outcome.OBSERVED, work.status.message or "observed only")
    steps = [s.step + (f" ({s.action})" if s.action else "") for s in work.plan.steps]
    gates = [s.step for s in work.plan.steps if s.approval is not None]
    asked = f", asking before {', '.join(gates)}" if gates else ""
    if work.status.phase != Phase.WOULD_ACT:
        work.note("RepairWouldAct", f"observed only; would run {', '.join(steps)}{asked}")
    work.status.phase = Phase.WOULD_ACT
    work.status.message = f"would run {', '.join(steps)}{asked}"
    return work


def _with_people(work: Work) -> None:
    """NeedsHuman: an approval still opens the gate, proof that the fault is gone leads to Validate; else remind."""
    status, current = work.status, work.current
    if status.needs == Needs.APPROVAL_TIMEOUT:
        if current.step in (Step.QUARANTINE, Step.DRAIN, Step.REPAIR) and faultstate.all_clear(work.repair):
            return entering.leave(work)
        if gate.passed(work):
            status.phase = Phase.PENDING
            return None
        if status.phase != Phase.NEEDS_HUMAN:
            return None
    elif _cleared_since(work) and holds_node(work.repair):
        status.needs = ""
        current.attempt += 1
        return gate.go_to(work, Step.VALIDATE, "the faults are gone; the node is validated before it returns")
    deadline = work.moment(current.deadline)
    if work.now >= deadline:
        work.note(f"{current.step}NeedsHuman", f"still waiting for people: {status.needs}: {status.message}", True)
        gate.needs_people(work, Needs(status.needs), status.message)
    work.wake(work.moment(current.deadline))
    return None


def _cleared_since(work: Work) -> bool:
    """True when all faults are proven gone and at least one of the proofs is younger than the call for people."""
    if not faultstate.all_clear(work.repair):
        return False
    since = work.moment(work.current.since)
    return any(work.moment(f.cleared_at) > since for f in work.repair.spec.faults)


def _left_quarantined(work: Work) -> Work:
    """After LeftQuarantined our marks wait for a person's uncordon, which lets execute remove the rest."""
    if work.status.outcome != Outcome.LEFT_QUARANTINED or not holds_node(work.repair):
        return work
    if node_lost(work.repair, work.view.node):
        work.state(Step.UNQUARANTINE).state = StepState.DONE
        return work
    step = work.state(Step.UNQUARANTINE)
    if step.state == StepState.RUNNING:
        report = work.report()
        if report is not None and report.state == "Done":
            step.state, step.finished = StepState.DONE, rfc3339(work.now)
        return work
    if persons_hand(work.repair, work.node):
        work.current.step = Step.UNQUARANTINE
        work.current.attempt += 1
        step.state, step.started = StepState.RUNNING, rfc3339(work.now)
    return work
