"""The start of a step, and the time it is given."""

from __future__ import annotations

from datetime import timedelta

from sickbay.api.actions import ACTIONS
from sickbay.api.duration import parse_duration
from sickbay.api.words import BEFORE, Phase, Stage, Step, StepState, WaitsFor
from sickbay.clock import rfc3339
from sickbay.decide import stages
from sickbay.decide.plan import validation_times
from sickbay.decide.work import Work

QUARANTINE_TIME = timedelta(minutes=10)
"""How long the cordon itself may take: one write, repeated on conflicts."""


def start(work: Work) -> None:
    """Begin the current step: from here on execute carries it out."""
    current, state = work.current, work.state(work.current.step)
    state.state, state.started, state.finished = StepState.RUNNING, rfc3339(work.now), None
    current.since, current.plan_generation = rfc3339(work.now), work.plan.generation
    if current.step == Step.VALIDATE:
        current.args = _validation(work)
    if current.step == Step.DRAIN and work.view.provider_date is not None:
        current.args = {BEFORE: rfc3339(work.view.provider_date)}
    if not stages.begins(work, Stage.BEFORE):
        run(work)


def run(work: Work) -> None:
    """Let the step's time begin."""
    current = work.current
    known = ACTIONS.get(current.action)
    phase = Phase.PARKED if current.step == Step.REPAIR and known is not None and known.parks else Phase.RUNNING
    act = f" ({current.action})" if current.action else ""
    work.wait(phase, waits_for(current.step), f"{current.step}{act} runs", _on_deadline(work), work.now + _time(work))


def _validation(work: Work) -> dict[str, str]:
    """What Validate has to know: how long all must stay well, and which checks belong to it."""
    settings = work.step(Step.VALIDATE)
    args = {"soak": validation_times(work.plan, last_action(work))[1], "level": str(settings.level or 0)}
    return args | ({"checks": ",".join(settings.checks)} if settings.checks else {})


def waits_for(step: str) -> str:
    """What a running step waits for."""
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
