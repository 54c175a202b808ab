"""Before a step: is it still needed, is it allowed, is there room? Then it starts."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from sickbay.api.words import HoldLevel, Needs, Origin, Outcome, Phase, Step, StepState, WaitsFor
from sickbay.clock import rfc3339
from sickbay.decide import domains, faultstate, gate, group, mandate, rungs, starting, together, urgency, withheld
from sickbay.decide.arbitration import rank, strength
from sickbay.decide.endings import end, withdraw
from sickbay.decide.hand import holds_node, untouched
from sickbay.decide.replan import take_over, taken_out_too, worn_out
from sickbay.decide.wants import wanted_slot
from sickbay.decide.work import Work

CORDONS_WITHIN = timedelta(seconds=30)
"""How long a drain waits for the cordons of other nodes: usually they stand within a second."""
CLEAR_PROOF_PATIENCE = timedelta(minutes=30)
"""How long a plan pauses for the proof that a fault which is no longer seen is gone, before people are asked."""


def enter(work: Work) -> None:
    """Bring the repair as far towards its next step as the moment allows."""
    if not work.current.step:
        _first(work)
    if work.is_state(work.current.step, StepState.DONE, StepState.SKIPPED, StepState.CANCELLED):
        return next_step(work)
    if _joined(work) or together.left(work):
        return None
    step = work.current.step
    if step in (Step.QUARANTINE, Step.DRAIN, Step.REPAIR):
        if needless(work):
            return leave(work)
        if mandate.missing(work):
            return None
        if _young(work) or _paused(work) or _replanned(work) or _stepped_back(work) or _off_limits(work) or held(work):
            return None
        if taken_out(work):
            return None
        urgency.raised(work)
    if step == Step.UNQUARANTINE and _sick_again(work):
        return None
    if step == Step.REPAIR and not rungs.chosen(work):
        return None
    if together.waits(work) or _others_first(work) or urgency.waits(work):
        return None
    if not gate.passed(work) or urgency.granted(work) or _no_slot(work):
        return None
    return starting.start(work)


def _first(work: Work) -> None:
    work.current.attempt = 1
    first = work.plan.steps[0].step if work.plan.steps else Step.VALIDATE
    gate.go_to(work, first)


def needless(work: Work) -> bool:
    """All faults are proven gone, and nothing is left to repair."""
    return faultstate.recovered(work) and not _found_unwell(work) and group.acting(work) is None


def leave(work: Work) -> None:
    """The fault is gone by its proof before anything was repaired: leave gracefully."""
    if work.repair.status.step(Step.REPAIR).attempts:
        gate.to_validate(work, Outcome.REPAIRED, "the fault is gone; no further remedy is needed")
    elif holds_node(work.repair):
        gate.to_validate(work, Outcome.SELF_RECOVERED, "the fault cleared by itself")
    else:
        end(work, Outcome.SELF_RECOVERED, "the fault cleared before anything was done")


def _found_unwell(work: Work) -> bool:
    """The last repair was validated and the node was not well, although its faults are gone: the next rung is due."""
    validated = work.repair.status.step(Step.VALIDATE).attempts
    acted = work.repair.status.step(Step.REPAIR).attempts
    if not validated or not acted or work.current.step != Step.REPAIR:
        return False
    return validated[-1].state == StepState.FAILED and validated[-1].n >= acted[-1].n


def _others_first(work: Work) -> bool:
    """Nodes that have just been admitted are cordoned before this one is drained: its pods must not move to them."""
    pool, current = work.view.pool, work.current
    if current.step != Step.DRAIN or pool is None or work.now - work.moment(current.since) >= CORDONS_WITHIN:
        return False
    name = work.repair.spec.node.name
    coming = [s.node for s in pool.status.slots if s.kind == "Unavailable" and s.node != name and _new(work, s.since)]
    if not coming:
        return False
    message = f"Drain waits until {', '.join(sorted(coming)[:3])} are cordoned too"
    work.wait(Phase.PENDING, WaitsFor.SLOT, message, "GoOn", work.moment(current.since) + CORDONS_WITHIN)
    work.wake(work.now + timedelta(seconds=1))
    return True


def _new(work: Work, since: str | None) -> bool:
    return work.now - work.moment(since) < CORDONS_WITHIN


def _stepped_back(work: Work) -> bool:
    """A step before this one has not been done: the plan has grown, and its status was not written any more."""
    for step in work.plan.steps:
        if step.step == work.current.step:
            return False
        if not work.is_state(step.step, StepState.DONE, StepState.SKIPPED):
            work.current.attempt += 1
            gate.go_to(work, step.step, work.plan.reason)
            return True
    return False


def _off_limits(work: Work) -> bool:
    """The node has been opted out, or another system is taking it away: start nothing on it."""
    if not work.view.hands_off:
        return False
    message = f"{work.current.step} waits: {work.view.hands_off}"
    work.wait_on(Phase.PENDING, WaitsFor.OTHER_OWNER, message, work.current.waits_for == WaitsFor.OTHER_OWNER)
    return True


def _sick_again(work: Work) -> bool:
    """A fault has come since the node was validated, while its return waited for an approval: validate again."""
    sick = work.repair.uncleared
    if not sick or not holds_node(work.repair):
        return False
    withdraw(work)
    work.current.attempt += 1
    gate.go_to(work, Step.VALIDATE, f"{', '.join(sick)} has to be gone before the node returns")
    return True


def _joined(work: Work) -> bool:
    """Another member's fault concerns the whole domain: before anything has begun this repair becomes part of it."""
    leader = work.view.claimed_by
    if leader is None or not domains.joins(work.repair, leader):
        return False
    withdraw(work)
    work.repair = domains.adopted(work.repair, leader, work.node, work.view.active)
    work.note("RepairReplanned", f"joins the group {leader.spec.group.id}")
    _first(work)
    return True


def _young(work: Work) -> bool:
    """The match has not lasted for the type's `for` yet; the repair in phase Pending is the timer."""
    faults = work.repair.spec.faults
    if not untouched(work.repair) or not faults or faultstate.lasts(work, faults[0]):
        return False
    if _led_by_another(work):
        return True
    known = work.view.types[faults[0].type]
    due = faultstate.lasts_at(work, faults[0])
    work.wait(Phase.PENDING, "", f"{faults[0].type} must last for {known.spec.for_}", "Start", due)
    return True


def _led_by_another(work: Work) -> bool:
    """A fault that rides along has lasted long enough: it need not wait for the leading one."""
    recorded = {fault.type: fault for fault in work.repair.spec.faults[1:]}
    for active in work.view.active:
        fault = recorded.get(active.name)
        plan = work.view.replan(active) if fault is not None and faultstate.lasts(work, fault) else None
        if plan is not None:
            take_over(work, plan, active.name, f"{active.name} need not wait")
            return True
    return False


def _paused(work: Work) -> bool:
    """A fault is no longer seen but not proven gone, or cannot be seen: neither act on it nor take it for recovered."""
    alone, current = not group.others_sick(work), work.current
    unseen = faultstate.out_of_sight(work) if alone else []
    missing = faultstate.unproven(work.repair) if alone and not unseen else []
    if not missing and not unseen:
        if current.waits_for == WaitsFor.CLEAR_PROOF:
            current.waits_for, current.deadline = "", None
        return False
    if unseen:
        going_on = current.waits_for == WaitsFor.CLEAR_PROOF and current.deadline
        deadline = work.moment(current.deadline) if going_on else work.now + CLEAR_PROOF_PATIENCE
        message = f"{', '.join(unseen)} reads Unknown, or has no FaultType any more: nobody can see whether it is there"
    else:
        since = max(work.moment(f.gone_since) for f in work.repair.spec.faults if f.gone_since)
        deadline = since + CLEAR_PROOF_PATIENCE
        message = f"{', '.join(missing)} is no longer seen, but nothing proves that it is gone"
    if work.now >= deadline:
        gate.needs_people(work, Needs.CLEAR_PROOF_MISSING, message)
    else:
        phase = Phase(work.status.phase) if work.status.phase in list(Phase) else Phase.PENDING
        work.wait(phase, WaitsFor.CLEAR_PROOF, message, "Escalate", deadline)
    return True


def _replanned(work: Work) -> bool:
    """A stronger fault has joined: between two steps the plan follows it."""
    faults = work.repair.spec.faults
    if worn_out(work):
        return False
    if group.of(work) is not None:
        return False  # the domain's fault comes first; the node's own has to be gone before it returns
    ready = {fault.type for fault in faults if fault.cleared_at is None and faultstate.lasts(work, fault)}
    lead = next((active for active in work.view.active if active.name in ready), None)
    if lead is None or lead.name == faults[0].type or not strength(lead.type):
        return False  # one without a remedy has no plan of its own to follow: it has to be gone in Validate
    primary = work.view.types.get(faults[0].type)
    still_there = faults[0].cleared_at is None
    if primary is None or (still_there and rank(lead.type) <= rank(primary)):
        return False
    plan = work.view.replan(lead)
    if plan is None:
        return False
    take_over(work, plan, lead.name, f"{lead.name} leads now")
    return True


def taken_out(work: Work) -> bool:
    """A fault that rides along asks for a Quarantine, and the plan at hand has none: the union of both holds."""
    if work.plan.step(Step.QUARANTINE) is not None or work.repair.spec.origin == Origin.MANUAL:
        return False
    recorded = {fault.type: fault for fault in work.repair.spec.faults[1:]}
    for active in work.view.active:
        fault = recorded.get(active.name)
        if fault is None or fault.cleared_at is not None or not faultstate.lasts(work, fault):
            continue
        plan = work.view.replan(active)
        if plan is not None and plan.step(Step.QUARANTINE) is not None:
            taken_out_too(work, plan, active.name)
            return True
    return False


def stopped_by_hold(work: Work) -> bool:
    """A Hold keeps a repair from beginning (NewRepairs), or each further step from starting (NextStep)."""
    steps = work.status.steps.values()
    begun = any(step.attempts or step.state in (StepState.DONE, StepState.SKIPPED) for step in steps)
    return work.view.hold == HoldLevel.NEXT_STEP or (work.view.hold != "" and not begun)


def held(work: Work) -> bool:
    if not stopped_by_hold(work):
        return False
    message = f"{work.current.step} waits for a Hold to end: {work.view.hold_reason}"
    work.wait_on(Phase.PENDING, WaitsFor.HOLD, message, work.current.waits_for == WaitsFor.HOLD)
    return True


def _no_slot(work: Work) -> bool:
    """Ask for the slot this step needs, and wait for it."""
    probe = msgspec.structs.replace(work.status, phase=Phase.WAITING_SLOT)
    wanted = wanted_slot(msgspec.structs.replace(work.repair, status=probe))
    if not wanted or wanted in work.view.slots:
        withheld.mark(work, withheld.ADMITTED)
        return False
    work.wants = wanted
    waiting = work.status.phase == Phase.WAITING_SLOT
    if not waiting:
        work.current.since = rfc3339(work.now)
    work.wait_on(Phase.WAITING_SLOT, WaitsFor.SLOT, f"{work.current.step} waits for a slot ({wanted})", waiting)
    withheld.mark(work, withheld.LIMIT if wanted == "Unavailable" else withheld.ADMITTED)
    return True


def next_step(work: Work) -> None:
    """The current step is over: stand before the next one, or close the record."""
    names_ = [s.step for s in work.plan.steps]
    current = work.current.step
    after = names_[names_.index(current) + 1 :] if current in names_ else []
    following = next((n for n in after if not work.is_state(n, StepState.DONE, StepState.SKIPPED)), None)
    if following is not None:
        return gate.go_to(work, following)
    if _nothing_more_to_do(work):
        return None
    outcome = Outcome(work.status.outcome) if work.status.outcome else Outcome.REPAIRED
    if work.is_state(Step.UNQUARANTINE, StepState.DONE) or not holds_node(work.repair):
        end(work, outcome, _farewell(work, outcome))
        return None
    end(work, Outcome.LEFT_QUARANTINED, "the rule does not return nodes: uncordon it when it is well")
    return None


def _nothing_more_to_do(work: Work) -> bool:
    """The plan is through, and nobody looked whether it helped: a rule that only drains, or whose steps were skipped.

    Closed with its fault still there, the repair would be opened again at once, and the node drained without end.
    """
    faults = work.repair.uncleared
    judged = work.is_state(Step.VALIDATE, StepState.DONE) or work.status.outcome
    if not faults or judged or holds_node(work.repair):
        return False
    done = ", ".join(s.step for s in work.plan.steps if work.is_state(s.step, StepState.DONE)) or "none"
    message = f"the rule has no further step (done: {done}) and {', '.join(faults)} is still there"
    gate.needs_people(work, Needs.REPAIR_FAILED, message)
    return True


def _farewell(work: Work, outcome: Outcome) -> str:
    done = "repaired and validated" if outcome == Outcome.REPAIRED else "not repaired"
    prior = work.status.prior
    where = "cordoned as it was before" if prior is not None and prior.unschedulable else "back in service"
    return f"{done}; {where}"
