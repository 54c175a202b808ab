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

from sickbay.api import names
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import CORDON, FOREIGN, cordoned_anew
from sickbay.api.words import HoldLevel, Origin, Outcome, Phase, ReportState, Step, StepState
from sickbay.clock import rfc3339
from sickbay.decide import (
    entering,
    faultstate,
    freeze,
    group,
    isolation,
    mandate,
    people,
    replan,
    resolve,
    restoring,
    running,
    together,
)
from sickbay.decide.endings import cancel, cancelling, end, unvalidated, withdraw
from sickbay.decide.hand import by_whom, holds_node, marked, node_lost, persons_hand
from sickbay.decide.work import View, Work

_DECODE = msgspec.json.Decoder(NodeRepair).decode
_ENCODE = msgspec.json.Encoder().encode

HOPS = 8
"""Transitions within one look (step done, next step needs no gate, ...). More than five steps have cannot happen."""

REPLACES = ("ReplaceNode", "ReprovisionNode")
"""Acts after which the Node of the incident is no more."""


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
    replan.finish(work)
    if repair.spec.origin != Origin.MANUAL and not work.plan.steps:
        return end(work, Outcome.CANCELLED_BY_PERSON, work.plan.reason)  # a tombstone: see memory.py
    if view.withdrawn:
        mandate.put_back(work)
    if view.observe and mandate.not_begun(work):
        return _observing(work)
    if work.status.phase == Phase.WOULD_ACT:
        why = view.unowned or "the pool acts now"
        return end(work, Outcome.OBSERVED, f"{why}: what is still wrong becomes a repair of its own")
    if work.status.phase != Phase.CANCELLING and _cancelled(work) and repair.ended:
        return work
    if view.hold == HoldLevel.EVERY_ACT:
        return freeze.hold_still(work)
    freeze.thaw(work)
    if work.status.phase == Phase.CANCELLING:
        return cancelling(work)
    if restoring.pending(work):
        return work
    if mandate.over(work):
        return work
    together.keep_up(work)
    faultstate.refresh(work)
    isolation.follow(work)
    if resolve.follow(work) and (repair.ended or work.status.phase == Phase.CANCELLING):
        return work
    return _steps(work)


def _cancelled(work: Work) -> bool:
    """A person has deleted the record, or taken the node back; or that of another member before anything was done."""
    if work.repair.metadata.deletion_timestamp is not None:
        cancel(work, Outcome.CANCELLED_BY_PERSON, "the record was deleted by a person")
        return True
    hand = persons_hand(work.repair, work.node)
    if hand and restoring.handled(work, hand):
        return False
    if hand:
        told = f"cancelled by a person: {hand}{by_whom(work.node)}{unvalidated(work)}"
        work.note(names.RETURNED_BY_HAND, told, warning=True)
        cancel(work, Outcome.CANCELLED_BY_PERSON, told)
        return True
    other = group.stopped(work)
    if other is not None:
        text = f"member {other.spec.node.name} of the group: {other.status.message}"
        cancel(work, Outcome(other.status.outcome), text)
    return other is not None


def _steps(work: Work) -> Work:
    for _ in range(HOPS):
        before = (work.status.phase, work.current.step, work.current.attempt, _step_state(work))
        if work.status.phase == Phase.NEEDS_HUMAN:
            people.stand(work)
        elif _step_state(work) == StepState.RUNNING:
            running.watch(work)
        elif (act := group.uncopied(work)) is not None:
            running.copied(work, act)
        else:
            entering.enter(work)
        after = (work.status.phase, work.current.step, work.current.attempt, _step_state(work))
        over = work.repair.ended or work.wants or work.status.phase == Phase.CANCELLING
        if over or after == before or _cancelled(work):
            break
    return work


def _step_state(work: Work) -> str:
    return work.state(work.current.step).state if work.current.step else ""


def _gone(work: Work) -> Work:
    """The node of the incident is no more: nothing is left to give back, and nothing is retried."""
    current = work.current
    replaced = _replaced(work)
    if current.step and _step_state(work) == StepState.RUNNING:
        state = StepState.DONE if replaced and current.step == Step.REPAIR else StepState.CANCELLED
        work.close_attempt(state)
        work.state(current.step).state = state
    if replaced:
        return end(work, Outcome.REPLACED, "the old node and its machine are gone")
    return end(work, Outcome.NODE_GONE, "the node is gone, or another one has its name")


def _replaced(work: Work) -> bool:
    """Our own act was to replace the node, and it runs or has been done."""
    if work.current.step == Step.REPAIR and _step_state(work) == StepState.RUNNING:
        return work.current.action in REPLACES
    acted = work.repair.status.step(Step.REPAIR).attempts
    return bool(acted) and acted[-1].action in REPLACES and acted[-1].state == StepState.DONE


def _observing(work: Work) -> Work:
    """Observe mode: say what would be done, touch nothing, close when the faults are gone or become ours to treat."""
    faultstate.refresh(work)
    withdraw(work)
    if work.repair.metadata.deletion_timestamp is not None:
        return end(work, Outcome.OBSERVED, "the record was deleted by a person")
    if work.view.acting:
        return end(work, Outcome.OBSERVED, f"{work.view.acting} is treated now")
    if all(f.gone_since is not None or f.cleared_at is not None for f in work.repair.spec.faults):
        return end(work, Outcome.OBSERVED, work.status.message or "observed only")
    steps = [s.step + (f" ({s.action})" if s.action else "") for s in work.plan.steps]
    gates = [s.step for s in work.plan.steps if s.approval is not None]
    asked = f", asking before {', '.join(gates)}" if gates else ""
    message = f"would run {', '.join(steps)}{asked}"
    if work.status.phase != Phase.WOULD_ACT:
        work.note("RepairWouldAct", f"observed only; {message}")
    work.status.phase, work.status.message = Phase.WOULD_ACT, message
    return work


def _left_quarantined(work: Work) -> Work:
    """After LeftQuarantined our marks wait for a person's uncordon, which lets execute remove the rest."""
    if work.status.outcome != Outcome.LEFT_QUARANTINED or not holds_node(work.repair):
        return work
    if node_lost(work.repair, work.view.node):
        work.state(Step.UNQUARANTINE).state = StepState.DONE
        return work
    report = work.report() if work.is_state(Step.UNQUARANTINE, StepState.RUNNING) else None
    if report is not None and report.state == ReportState.DONE:
        step = work.state(Step.UNQUARANTINE)
        step.state, step.finished = StepState.DONE, rfc3339(work.now)
        return work
    failed = report is not None and report.state in (ReportState.FAILED, ReportState.UNKNOWN)
    if failed or persons_hand(work.repair, work.node):
        again = failed and (work.current.args.get(CORDON) == FOREIGN or not marked(work.repair, work.node))
        theirs = again or not work.node.unschedulable or cordoned_anew(work.node)
        work.current.step, work.current.args = Step.UNQUARANTINE, {CORDON: FOREIGN} if theirs else {}
        work.current.attempt += 1
        work.current.plan_generation = work.plan.generation
        step = work.state(Step.UNQUARANTINE)
        step.state, step.started = StepState.RUNNING, rfc3339(work.now)
        if not failed:
            told = f"taken back by a person{by_whom(work.node)}{unvalidated(work)}"
            work.note(names.RETURNED_BY_HAND, told, warning=True)
    return work
