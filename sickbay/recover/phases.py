"""One job, one moment: its record as it should be.

    live      Running, Recovered, Placing, WaitingCapacity: is the attempt over? where did it land?
    judge     Failing: what was it? what now?
    fence     Isolating, TearingDown, Releasing
    held      Held, Stopped, and advice that was given

The same record and the same view always give the same result. What has to be done to the job object is not decided
here but follows from the record (`acts`).
"""

from __future__ import annotations

import msgspec

from sickbay.api.job_recovery import JobRecovery
from sickbay.api.words import RecoveryPhase
from sickbay.recover import fence, gates, held, judge, late, live, moves, suspects
from sickbay.recover.view import HOLDING, View, Work

_DECODE = msgspec.json.Decoder(JobRecovery).decode
_ENCODE = msgspec.json.Encoder().encode

HOPS = 6
"""Phases passed within one look; a failure whose evidence is conclusive passes through most of them at once."""


def copied(record: JobRecovery) -> JobRecovery:
    return _DECODE(_ENCODE(record))


def advance(record: JobRecovery, view: View) -> Work:
    """The record as it should be at `view.now`. The argument is not changed."""
    work = Work(copied(record), view)
    if view.job is not None and not work.record.spec.job.uid:
        live.adopt(work, view.job)
    suspects.tidy(work)
    gates.answer_gates(work)
    moves.answer_offers(work)
    late.revise(work)
    for _ in range(HOPS):
        before = _stage(work)
        _look(work)
        if _stage(work) == before:
            break
    return work


def _stage(work: Work) -> tuple[str, list[int]]:
    """The phase, and the number of the present attempt where there is one; the list of attempts does not grow for
    ever."""
    return work.phase, [attempt.n for attempt in work.status.attempts[-1:]]


def _look(work: Work) -> None:
    if work.phase in HOLDING:
        if work.phase == RecoveryPhase.STOPPED and work.view.job is None:
            return None
        if held.persons_hand(work):
            return None
    match work.phase:
        case RecoveryPhase.FAILING:
            return held.advised(work) if work.attempt.verdict else judge.judge(work)
        case RecoveryPhase.ISOLATING:
            return fence.isolating(work)
        case RecoveryPhase.TEARING_DOWN:
            return fence.tearing_down(work)
        case RecoveryPhase.RELEASING:
            return fence.releasing(work)
        case RecoveryPhase.HELD:
            return held.held(work)
        case RecoveryPhase.STOPPED:
            return None
    if work.view.policy is not None:
        return live.live(work)
    return None
