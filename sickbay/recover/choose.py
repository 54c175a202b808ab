"""From a verdict to what is done, within the budgets of the policy.

A budget counts retries. It lives in the JobRecovery, not in the job, which may be deleted and made again. Every attempt
that failed counts by its verdict, whoever restarted the job; a decision of somebody's costs nothing. Progress restores
it: attempts before the job last got further do not count. The record holds the last attempts only. How many of
those before them count is estimated by their rate: a limit that is larger than the record must end all the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sickbay.api.duration import parse_duration
from sickbay.api.job_recovery import JobAttempt
from sickbay.api.recovery_policy import RecoveryBudget
from sickbay.api.words import JobAction, JobVerdict
from sickbay.recover.evidence import Verdict
from sickbay.recover.signs import moment

PAUSE_FIRST, PAUSE_MOST = timedelta(minutes=1), timedelta(minutes=10)
"""How long a job is held after a shared cause before it is tried again: doubled from the first to the most."""


@dataclass(frozen=True)
class Choice:
    action: JobAction
    message: str
    pause: timedelta = timedelta(0)


def choose(
    verdict: Verdict,
    attempts: Sequence[JobAttempt],
    step: int | None,
    budget: RecoveryBudget,
    now: datetime,
    forgotten: int = 0,
) -> Choice:
    """What to do after this failure.

    `attempts` are the earlier ones that count, `forgotten` how many were before them and are on record no longer;
    `step` is how far this one got.
    """
    first = verdict.reasons[0] if verdict.reasons else "no reason is known"
    match verdict.verdict:
        case JobVerdict.POLICY:
            if verdict.final:
                return Choice(JobAction.NONE, f"not restarted: {first}")
            return Choice(JobAction.RESTART_IN_PLACE, f"restarted at no cost: {first}")
        case JobVerdict.WORKLOAD:
            return _workload(verdict, first)
    allowed = {
        JobVerdict.HARDWARE: budget.hardware,
        JobVerdict.UNKNOWN: budget.unknown,
    }.get(verdict.verdict, budget.transient)
    kinds = (JobVerdict.TRANSIENT, JobVerdict.SHARED_CAUSE)
    counted = kinds if verdict.verdict in kinds else (verdict.verdict,)
    used = spent(attempts, counted, step, parse_duration(budget.window), now, forgotten)
    if used >= allowed:
        return Choice(JobAction.ESCALATE, f"the budget for {verdict.verdict} ({allowed} retries) is used up: {first}")
    retry = f"retry {used + 1} of {allowed}"
    if verdict.verdict == JobVerdict.HARDWARE:
        named = ", ".join(suspect.node for suspect in verdict.suspects)
        return Choice(JobAction.RESCHEDULE, f"moved away from {named} ({retry}): {first}")
    if verdict.verdict == JobVerdict.SHARED_CAUSE:
        pause = min(PAUSE_FIRST * (1 << min(used, 10)), PAUSE_MOST)
        return Choice(JobAction.HOLD, f"held, since many nodes fail at once ({retry}): {first}", pause)
    if verdict.verdict == JobVerdict.TRANSIENT:
        return Choice(JobAction.RESTART_IN_PLACE, f"restarted in place ({retry}): {first}")
    return Choice(JobAction.RETRY, f"tried again ({retry}): {first}")


def _workload(verdict: Verdict, first: str) -> Choice:
    if verdict.final or verdict.established:
        return Choice(JobAction.STOP, f"stopped; the owner has to look: {first}")
    return Choice(JobAction.RETRY, f"tried once more to confirm that it is the program: {first}")


def spent(
    attempts: Sequence[JobAttempt],
    verdicts: Sequence[JobVerdict],
    step: int | None,
    window: timedelta,
    now: datetime,
    forgotten: int = 0,
) -> int:
    """Retries used for these verdicts within the window, since the job last got further than ever before."""
    recent = list(itertools.takewhile(lambda a: _within(a, window, now), reversed(since_further(attempts, step))))
    used = sum(attempt.verdict in verdicts for attempt in recent)
    if not forgotten or len(recent) < len(attempts):
        return used
    reached = max(now - (moment(recent[-1].ended) or now), timedelta(seconds=1))
    before = min(float(forgotten), len(recent) * ((window - reached) / reached))
    return used + int(before * used / len(recent))


def _within(attempt: JobAttempt, window: timedelta, now: datetime) -> bool:
    ended = moment(attempt.ended)
    return ended is not None and now - ended <= window


def since_further(attempts: Sequence[JobAttempt], step: int | None) -> Sequence[JobAttempt]:
    """The attempts since the job last got further than ever before; `step` is how far the present one got.

    Measured by the best of all earlier ones: a job that begins at zero each time comes further than the last one now
    and then, without getting anywhere.
    """
    best, first = None, 0
    for number, reached in enumerate([*(a.step for a in attempts), step]):
        if reached is None:
            continue
        if best is not None and reached > best:
            first = number
        best = reached if best is None else max(best, reached)
    return attempts[first:]
