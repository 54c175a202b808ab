"""Faults that may wait for the job: when the node leaves.

    Now                  at once
    AtNextInterruption   the node stays in service until a job on it stops for whatever reason, and leaves in that stop
    AtJobEnd             the node is quarantined (nothing new comes); what would disturb the job waits for its end

Each wait has a ceiling, at the latest the provider's own date. When it is over, people are asked at the gate of the
step; their yes makes the next stronger urgency the one in force. A job that stops meanwhile ends the wait as well.
What is waited for stands in `status.urgency`: a look after a restart goes on from there.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from sickbay.api.actions import ACTIONS
from sickbay.api.duration import parse_duration
from sickbay.api.node_repair import UrgencyStatus, WaitedJob
from sickbay.api.repair_rule import Approval
from sickbay.api.words import ApprovalBy, Phase, Step, Urgency, WaitsFor
from sickbay.clock import parse_time, rfc3339
from sickbay.decide import faultstate, gangs, withheld
from sickbay.decide.endings import withdraw
from sickbay.decide.gangs import Tenants
from sickbay.decide.plan import CEILING, PEOPLE_GATE, gate_of
from sickbay.decide.work import Work

ORDER = (Urgency.AT_JOB_END, Urgency.AT_NEXT_INTERRUPTION, Urgency.NOW)
"""From the mildest to the strongest."""
ASKS = "AskPeople"
"""What happens at the ceiling."""
FELT = ("RestartService", "RestartApplication")
"""Acts that take nothing down and that a job may feel all the same. What a device plug-in has handed out stays with its
pods when it is restarted."""
BLIND_AGAIN = timedelta(seconds=30)
"""How soon to look again while the pods of the node are not known yet."""


def strength(level: str) -> int:
    """A word of a newer version counts as the mildest: the job is not disturbed for what we do not understand."""
    return ORDER.index(Urgency(level)) if level in list(Urgency) else 0


def waits(work: Work) -> bool:
    """True while the current step has to wait for the jobs of the node."""
    known = work.status.urgency
    done = known is not None and (known.over is not None or known.level == Urgency.NOW)
    if done or work.plan.urgency == Urgency.NOW or not _disturbs(work):
        return False
    state = _state(work)
    if work.view.tenants is None:
        _wait(work, state, "the pods of the node are not known yet", min(work.now + BLIND_AGAIN, _due(work, state)))
        return True
    if refresh(work):
        return False
    due = _due(work, state)
    if work.now >= due:
        _ask(work, state)
        return False
    if state.asks:
        state.asks = False  # the provider has put off its date
        withdraw(work)
    state.until = rfc3339(due)
    if state.level == Urgency.AT_NEXT_INTERRUPTION and work.current.step == Step.QUARANTINE:
        withheld.mark(work, withheld.JOB)
    _wait(work, state, _message(work, state), due)
    return True


def refresh(work: Work) -> bool:
    """Take in what the jobs have done. True when nothing is waited for any more."""
    state, tenants = work.status.urgency, work.view.tenants
    if state is None or state.over or state.level == Urgency.NOW:
        return True
    if tenants is None:
        return False
    had = _open(state)
    if state.level == Urgency.AT_NEXT_INTERRUPTION:
        state.jobs = _watched(state, tenants)
    else:
        state.jobs = [gangs.recorded(job, tenants.gang(job)) for job in tenants.jobs[: gangs.MOST]]
    if _open(state):
        return False
    if state.asks and gate_of(work.step(work.current.step), work.current.action) is None:
        withdraw(work)
    state.over, state.asks = rfc3339(work.now), False
    if had:
        work.note(f"{work.current.step}Starts", f"{', '.join(had[:3])} has stopped: the node leaves now")
    return True


def with_people(work: Work, gate: Approval | None) -> Approval | None:
    """The gate of the step, with people beside whoever else it asks, while the urgency wants their word."""
    state = work.status.urgency
    if state is None or not state.asks or not _disturbs(work):
        return gate
    if gate is None:
        return PEOPLE_GATE
    if gate.by == ApprovalBy.JOBS:
        return msgspec.structs.replace(gate, by=ApprovalBy.PEOPLE_AND_JOBS.value)
    return gate


def granted(work: Work) -> bool:
    """People have said yes: the stronger urgency is in force. True when that one has to be waited for as well."""
    state = work.status.urgency
    if state is None or not state.asks or state.over:
        return False
    level = Urgency.NOW if _provider_due(work) else ORDER[min(strength(state.level) + 1, len(ORDER) - 1)]
    _begin(work, level.value)
    work.note(f"{work.current.step}Urgency", f"its ceiling is over and people agreed: {level} from now on")
    if level != Urgency.NOW:
        work.status.phase = Phase.PENDING
    return level != Urgency.NOW


def raised(work: Work) -> None:
    """A fault of the incident that cannot wait makes the whole node not wait, whichever of them leads."""
    faults = work.repair.spec.faults
    recorded = {f.type for f in faults if f.cleared_at is None and faultstate.lasts(work, f)}
    for active in work.view.active:
        level = active.type.spec.urgency or Urgency.NOW
        if active.name not in recorded or strength(level) <= strength(work.plan.urgency):
            continue
        plan = msgspec.structs.replace(
            work.plan,
            urgency=str(level),
            ceiling=active.type.spec.ceiling or CEILING,
            reason=f"{work.plan.reason}; {active.name} cannot wait as long",
        )
        work.follow(plan)
        work.status.urgency = None
        work.note("RepairReplanned", f"{active.name} is to be treated {level}")


def _disturbs(work: Work) -> bool:
    """Whether the current step is one that this urgency keeps waiting."""
    step, level = work.current.step, work.plan.urgency
    state = work.status.urgency
    level = state.level if state is not None else level
    if step == Step.QUARANTINE:
        return level == Urgency.AT_NEXT_INTERRUPTION
    if step == Step.REPAIR:
        first = work.step(step).ladder[:1]
        act = ACTIONS.get(work.current.action or (first[0].action if first else ""))
        return act is None or act.disruptive or act.name in FELT
    return step == Step.DRAIN


def _state(work: Work) -> UrgencyStatus:
    if work.status.urgency is None or strength(work.status.urgency.level) < strength(work.plan.urgency):
        _begin(work, work.plan.urgency)
    state = work.status.urgency
    assert state is not None
    return state


def _begin(work: Work, level: str) -> None:
    tenants = work.view.tenants
    state = UrgencyStatus(level=level, since=rfc3339(work.now))
    if tenants is not None:
        state.jobs = [gangs.recorded(job, tenants.gang(job)) for job in tenants.jobs[: gangs.MOST]]
    if level == Urgency.NOW:
        state.over = rfc3339(work.now)
    work.status.urgency = state


def _watched(state: UrgencyStatus, tenants: Tenants) -> list[WaitedJob]:
    """The jobs that are waited for, each with whether it has stopped since; and those that have come to the node."""
    known = {job.job for job in state.jobs}
    old = [
        msgspec.structs.replace(job, stopped=job.stopped or gangs.stopped(job, tenants.gang(job.job)))
        for job in state.jobs
    ]
    new = [gangs.recorded(job, tenants.gang(job)) for job in tenants.jobs if job not in known]
    if len(old) + len(new) > gangs.MOST:  # those that have come and gone make room for those that are there
        old = [job for job in old if not job.stopped or job.job in tenants.jobs]
    return [*old, *new][: gangs.MOST]


def _open(state: UrgencyStatus) -> list[str]:
    """The jobs that are still waited for."""
    return [job.job for job in state.jobs if not job.stopped]


def _due(work: Work, state: UrgencyStatus) -> datetime:
    """When the wait ends: its ceiling, at the latest the date on which the provider acts by itself."""
    due = work.moment(state.since) + parse_duration(work.plan.ceiling or CEILING)
    return min(due, work.view.provider_date) if work.view.provider_date is not None else due


def _provider_due(work: Work) -> bool:
    return work.view.provider_date is not None and work.view.provider_date <= work.now


def _ask(work: Work, state: UrgencyStatus) -> None:
    """The ceiling is over: the gate asks people, under an attempt of its own where that gate was opened before."""
    if state.asks:
        return
    state.asks = True
    if work.state(work.current.step).approved_attempt == work.current.attempt:
        work.current.attempt += 1
    work.note(f"{work.current.step}Urgency", f"{state.level} has reached its ceiling: people are asked", warning=True)


def _wait(work: Work, state: UrgencyStatus, message: str, until: datetime) -> None:
    if work.status.phase != Phase.WAITING_JOB:
        work.current.since = state.since
    work.wait(Phase.WAITING_JOB, WaitsFor.JOB, message, ASKS, max(until, work.now + timedelta(seconds=1)))


def _message(work: Work, state: UrgencyStatus) -> str:
    jobs = _open(state)
    more = f" and {len(jobs) - 3} more" if len(jobs) > 3 else ""
    named = ", ".join(jobs[:3]) + more
    if state.level == Urgency.AT_NEXT_INTERRUPTION:
        return f"{work.current.step} waits until {named} stops for whatever reason ({state.level})"
    return f"{work.current.step} waits for the end of {named} ({state.level})"


def provider_date(dates: list[str | None]) -> datetime | None:
    """The earliest of the moments at which a provider acts by itself; None when there is none."""
    found = []
    for text in dates:
        try:
            found += [parse_time(text)] if text else []
        except ValueError:
            continue
    return min(found, default=None)
