"""Before a step: is it still needed, is it allowed, is there room? Then it starts."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from sickbay.api import names
from sickbay.api.actions import ACTIONS
from sickbay.api.duration import parse_duration
from sickbay.api.meta import Condition
from sickbay.api.words import HoldLevel, Needs, Outcome, Phase, Step, StepState, WaitsFor
from sickbay.clock import rfc3339
from sickbay.decide import faultstate, gate
from sickbay.decide.arbitration import rank
from sickbay.decide.endings import end
from sickbay.decide.hand import holds_node
from sickbay.decide.ladder import next_rung
from sickbay.decide.plan import validation_times, with_empty_node
from sickbay.decide.replan import first_undone, take_over
from sickbay.decide.wants import wanted_slot
from sickbay.decide.work import Work

CLEAR_PROOF_PATIENCE = timedelta(minutes=30)
"""How long a plan pauses for the proof that a fault which is no longer seen is gone, before people are asked."""
SLOT_REMINDER = timedelta(hours=24)
HOLD_REMINDER = timedelta(hours=24)
QUARANTINE_TIME = timedelta(minutes=10)
"""How long the cordon itself may take: one write, repeated on conflicts."""
REPAIR_SLACK = timedelta(minutes=1)
"""Execute reports the end of an act at its deadline; decide waits this much longer for it."""


def enter(work: Work) -> None:
    """Bring the repair as far towards its next step as the moment allows."""
    if not work.current.step:
        _first(work)
    if work.is_state(work.current.step, StepState.DONE, StepState.SKIPPED, StepState.CANCELLED):
        return next_step(work)
    step = work.current.step
    if step in (Step.QUARANTINE, Step.DRAIN, Step.REPAIR):
        if faultstate.all_clear(work.repair):
            return leave(work)
        if _young(work) or _paused(work) or _replanned(work) or _held(work):
            return None
    if step == Step.REPAIR and not _rung_chosen(work):
        return None
    if not gate.passed(work) or _no_slot(work):
        return None
    return _start(work)


def _first(work: Work) -> None:
    work.current.attempt = 1
    first = work.plan.steps[0].step if work.plan.steps else Step.VALIDATE
    gate.go_to(work, first)


def leave(work: Work) -> None:
    """The fault is gone by its proof before anything was repaired: leave gracefully."""
    if not holds_node(work.repair):
        end(work, Outcome.SELF_RECOVERED, "the fault cleared before anything was done")
        return
    gate.to_validate(work, Outcome.SELF_RECOVERED, "the fault cleared by itself")


def _young(work: Work) -> bool:
    """The match has not lasted for the type's `for` yet; the repair in phase Pending is the timer."""
    if work.current.step != work.plan.steps[0].step or holds_node(work.repair):
        return False
    primary = work.repair.spec.faults[0] if work.repair.spec.faults else None
    known = work.view.types.get(primary.type) if primary is not None else None
    if primary is None or known is None or not known.spec.for_:
        return False
    due = work.moment(work.status.started_at) + parse_duration(known.spec.for_)
    if work.now >= due:
        return False
    work.wait(Phase.PENDING, "", f"{primary.type} must last for {known.spec.for_}", "Start", due)
    return True


def _paused(work: Work) -> bool:
    """A fault is no longer seen but not proven gone: neither act on it nor take it for recovered."""
    missing = faultstate.unproven(work.repair)
    current = work.current
    if not missing:
        if current.waits_for == WaitsFor.CLEAR_PROOF:
            current.waits_for, current.deadline = "", None
        return False
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
    lead = next((a for a in work.view.active if a.name in {f.type for f in work.repair.spec.faults}), None)
    faults = work.repair.spec.faults
    if lead is None or not faults or lead.name == faults[0].type:
        return False
    primary = work.view.types.get(faults[0].type)
    still_there = faults[0].cleared_at is None
    if primary is None or (still_there and rank(lead.type) <= rank(primary)):
        return False
    plan = work.view.replan(lead)
    if plan is None:
        return False
    take_over(work, plan, lead.name, f"{lead.name} leads now")
    return True


def _held(work: Work) -> bool:
    """A Hold keeps the first step (NewRepairs) or any further one (NextStep) from starting."""
    first = not holds_node(work.repair) and work.current.step == work.plan.steps[0].step
    if work.view.hold == HoldLevel.NEXT_STEP or (work.view.hold and first):
        message = f"{work.current.step} waits for a Hold to end: {work.view.hold_reason}"
        work.wait(Phase.PENDING, WaitsFor.HOLD, message, "Remind", work.now + HOLD_REMINDER)
        return True
    return False


def _rung_chosen(work: Work) -> bool:
    """Decide on the act of this attempt. False when that changed the plan, or when there is none left."""
    if work.current.action:
        return True
    rung = next_rung(work.repair)
    tried = work.repair.status.step(Step.REPAIR).attempts
    if rung is None and not tried and not (work.plan.step(Step.REPAIR) or work.step(Step.REPAIR)).ladder:
        gate.to_validate(work, Outcome.REPAIRED, "this fault has no remedy of its own")
        return False
    if rung is None:
        last = tried[-1].action if tried else "nothing"
        gate.needs_people(work, Needs.REPAIR_FAILED, f"all remedies are used up (last: {last})")
        return False
    if rung.action == "ContactSupport":
        gate.needs_people(work, Needs.CONTACT_SUPPORT, "the vendor's support has to be asked")
        return False
    plan = with_empty_node(work.plan, rung.action) if tried else work.plan
    if plan is not work.plan:
        work.repair.spec.plan = plan
        first = first_undone(work)
        work.current.attempt += 1
        gate.go_to(work, first, plan.reason)
        return False
    work.current.action, work.current.args = rung.action, dict(rung.args)
    return True


def _no_slot(work: Work) -> bool:
    """Ask for the slot this step needs, and wait for it."""
    probe = msgspec.structs.replace(work.status, phase=Phase.WAITING_SLOT)
    wanted = wanted_slot(msgspec.structs.replace(work.repair, status=probe))
    if not wanted or wanted in work.view.slots:
        _set_condition(work, False)
        return False
    work.wants = wanted
    if work.status.phase != Phase.WAITING_SLOT:
        work.current.since = rfc3339(work.now)
    message = f"{work.current.step} waits for a slot ({wanted})"
    work.wait(Phase.WAITING_SLOT, WaitsFor.SLOT, message, "Remind", work.now + SLOT_REMINDER)
    _set_condition(work, wanted == "Unavailable")
    return True


def _set_condition(work: Work, waiting: bool) -> None:
    """WouldQuarantine: the node is left in service only because a limit forbids to take it out."""
    conditions, kind = work.status.conditions, names.WOULD_QUARANTINE
    found = work.status.condition(kind)
    status = "True" if waiting else "False"
    if found is None and not waiting:
        return
    if found is None or found.status != status:
        rest = [c for c in conditions if c.type != kind]
        reason = "LimitReached" if waiting else "Admitted"
        rest.append(Condition(type=kind, status=status, reason=reason, last_transition_time=rfc3339(work.now)))
        work.status.conditions = rest


def _start(work: Work) -> None:
    current, state = work.current, work.state(work.current.step)
    state.state, state.started, state.finished = StepState.RUNNING, rfc3339(work.now), None
    current.since = rfc3339(work.now)
    if current.step == Step.VALIDATE:
        current.args = _validation(work)
    known = ACTIONS.get(current.action)
    phase = Phase.PARKED if current.step == Step.REPAIR and known is not None and known.parks else Phase.RUNNING
    act = f" ({current.action})" if current.action else ""
    work.wait(phase, _waits_for(current.step), f"{current.step}{act} runs", _on_deadline(work), work.now + _time(work))


def _validation(work: Work) -> dict[str, str]:
    """What Validate has to know: how long all must stay well, and which checks belong to it."""
    settings = work.step(Step.VALIDATE)
    args = {"soak": validation_times(work.plan, last_action(work))[1], "level": str(settings.level or 0)}
    return args | ({"checks": ",".join(settings.checks)} if settings.checks else {})


def _waits_for(step: str) -> str:
    return {Step.DRAIN: WaitsFor.PODS, Step.REPAIR: WaitsFor.PROVIDER, Step.VALIDATE: WaitsFor.CHECKS}.get(
        Step(step), ""
    )


def _on_deadline(work: Work) -> str:
    if work.current.step == Step.DRAIN:
        return work.step(Step.DRAIN).on_timeout or "Escalate"
    return {Step.REPAIR: "NextRung", Step.VALIDATE: "NextRung"}.get(Step(work.current.step), "Escalate")


def _time(work: Work) -> timedelta:
    """How long the step may run."""
    step, settings = work.current.step, work.step(work.current.step)
    if step == Step.DRAIN:
        return parse_duration(settings.timeout or "30m")
    if step == Step.VALIDATE:
        return parse_duration(validation_times(work.plan, last_action(work))[0])
    if step == Step.REPAIR:
        rung = next((r for r in settings.ladder if r.action == work.current.action), None)
        known = ACTIONS.get(work.current.action)
        default = known.timeout if known is not None else timedelta(minutes=15)
        return parse_duration(rung.timeout) if rung is not None and rung.timeout else default
    return QUARANTINE_TIME


def last_action(work: Work) -> str:
    attempts = work.repair.status.step(Step.REPAIR).attempts
    return attempts[-1].action if attempts else ""


def next_step(work: Work) -> None:
    """The current step is over: stand before the next one, or close the record."""
    names_ = [s.step for s in work.plan.steps]
    current = work.current.step
    after = names_[names_.index(current) + 1 :] if current in names_ else []
    following = next((n for n in after if not work.is_state(n, StepState.DONE, StepState.SKIPPED)), None)
    if following is not None:
        return gate.go_to(work, following)
    outcome = Outcome(work.status.outcome) if work.status.outcome else Outcome.REPAIRED
    if work.is_state(Step.UNQUARANTINE, StepState.DONE) or not holds_node(work.repair):
        end(work, outcome, _farewell(outcome))
        return None
    end(work, Outcome.LEFT_QUARANTINED, "the rule does not return nodes: uncordon it when it is well")
    return None


def _farewell(outcome: Outcome) -> str:
    if outcome == Outcome.REPAIRED:
        return "repaired, validated and back in service"
    return "back in service without a repair"
