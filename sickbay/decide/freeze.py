"""A Hold of level EveryAct: everything stays as it is, and no time passes for the repair.

What is frozen keeps its step and its place. Deadlines move on by as long as the Hold lasts, so that its end finds an
approval, a drain or a validation with the time they had left, not with a row of time-outs. Since when that has to be
made up for stands in the condition `Frozen`.
"""

from __future__ import annotations

from datetime import timedelta

from sickbay.api import names
from sickbay.api.meta import Condition
from sickbay.api.words import Phase, StepState, WaitsFor
from sickbay.clock import parse_time, rfc3339
from sickbay.decide.starting import waits_for
from sickbay.decide.work import TOLD_AGAIN, Work

MARGIN = timedelta(minutes=1)
"""How long before a deadline it is moved."""


def hold_still(work: Work) -> Work:
    """Stay frozen. The wait's deadline is moved before it passes, so it is never in the past."""
    current, frozen = work.current, _condition(work)
    if frozen is None:
        _set(work, "True")
    elif current.deadline and parse_time(current.deadline) <= work.now + MARGIN:
        _make_up(work, frozen)
    if current.deadline is None:
        current.deadline = rfc3339(work.now + TOLD_AGAIN)
    elif parse_time(current.deadline) <= work.now:
        current.deadline = rfc3339(work.now + MARGIN)  # nobody looked when the Hold came; it was not late then
    current.waits_for = WaitsFor.HOLD
    if work.status.phase != Phase.CANCELLING:  # there the message tells why, to the end
        work.status.message = f"frozen by a Hold: {work.view.hold_reason}"
    work.wake(work.moment(current.deadline) - MARGIN)
    return work


def thaw(work: Work) -> None:
    """Go on where the Hold came, with the time that was left."""
    frozen = _condition(work)
    if frozen is None:
        return
    _make_up(work, frozen)
    _set(work, "False")
    phase, step = work.status.phase, work.current.step
    if phase == Phase.NEEDS_HUMAN:
        work.current.waits_for = WaitsFor.PEOPLE
    elif phase in (Phase.RUNNING, Phase.PARKED) and work.is_state(step, StepState.RUNNING):
        work.current.waits_for = WaitsFor.HOOK if work.current.stage else waits_for(step)
    else:
        work.current.waits_for = ""


def _condition(work: Work) -> Condition | None:
    """The condition while the repair is frozen."""
    found = work.status.condition(names.FROZEN)
    return found if found is not None and found.status == "True" else None


def _make_up(work: Work, frozen: Condition) -> None:
    lost = work.now - work.moment(frozen.last_transition_time)
    frozen.last_transition_time = rfc3339(work.now)
    current = work.current
    if current.since:
        current.since = rfc3339(parse_time(current.since) + lost)
    if current.deadline:
        current.deadline = rfc3339(parse_time(current.deadline) + lost)


def _set(work: Work, status: str) -> None:
    work.set_condition(names.FROZEN, status, "EveryAct" if status == "True" else "HoldEnded")
