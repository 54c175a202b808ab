"""What a person should know about one job: where it stands, what ended it, what is done, until when, and what to do.

A pure function over the record and the job as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sickbay.api.job_recovery import JobAttempt, JobRecovery
from sickbay.api.words import JobAction, RecoveryPhase
from sickbay.recover.job import Job
from sickbay.recover.stops import PEOPLE, RELEASE, resume_command

SHOWN = 8
"""Attempts that are shown, the latest ones."""


@dataclass
class JobExplanation:
    job: str
    namespace: str
    summary: str = ""
    policy: str = ""
    phase: str = ""
    attempts: list[str] = field(default_factory=list)
    suspects: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """What the job has answered to gates and to drains."""
    message: str = ""
    since: str = ""
    until: str = ""
    then: str = ""
    command: str = ""
    """What a person may type to move it on; empty when nothing has to be done."""


def explain(record: JobRecovery, now_there: Job | None) -> JobExplanation:
    """`now_there`: the job object, None for one that is gone."""
    status, job = record.status, record.spec.job
    told = JobExplanation(f"{job.kind} {job.name}", record.namespace, _summary(record), record.spec.policy)
    told.phase, told.message = status.phase, status.message
    told.since, told.until, told.then = status.since or "", status.deadline or "", status.on_deadline
    told.attempts = [_attempt(a) for a in status.attempts[-SHOWN:]]
    told.suspects = [f"{s.node}: {s.reason}" for s in status.suspects]
    told.excluded = [f"{e.node} until {e.until or 'further notice'}: {e.reason}" for e in status.excluded]
    told.answers = [
        *(f"{g.repair}: {g.step}: {g.state}{f' until {g.until}' if g.until else ''}" for g in status.gates),
        *(f"{m.repair}: move: {m.state}" for m in status.moves),
    ]
    told.command = next_command(record, now_there)
    return told


def needs_person(record: JobRecovery) -> str:
    """Why somebody has to do something, in a word; "" while nobody has to."""
    status = record.status
    last = status.attempts[-1] if status.attempts else JobAttempt()
    if status.phase == RecoveryPhase.STOPPED:
        return "JobStopped" if last.action == JobAction.STOP else ""
    if status.on_deadline != PEOPLE:
        return ""
    return {RecoveryPhase.HELD: "JobHeld", RecoveryPhase.WAITING_CAPACITY: "NoCapacity"}.get(
        RecoveryPhase(status.phase), ""
    )


def next_command(record: JobRecovery, job: Job | None) -> str:
    """The command by which a person lets a job go on that waits for people; "" where none would do."""
    if needs_person(record) not in ("JobHeld", "JobStopped") or job is None or job.finished:
        return ""
    return resume_command(*job.id)


_SUMMARY = {
    RecoveryPhase.FAILING: "has failed, and is judged",
    RecoveryPhase.ISOLATING: "is brought back: its suspects are isolated first",
    RecoveryPhase.TEARING_DOWN: "is brought back: the old gang is torn down",
    RecoveryPhase.RELEASING: "is brought back: it is let go",
    RecoveryPhase.PLACING: "is brought back: it is being placed",
    RecoveryPhase.WAITING_CAPACITY: "waits for room",
    RecoveryPhase.STOPPED: "is over",
    RecoveryPhase.RECOVERED: "runs again",
}


def _summary(record: JobRecovery) -> str:
    status = record.status
    match needs_person(record):
        case "JobHeld":
            return "is held until people act"
        case "JobStopped":
            return "is stopped: its owner has to look"
        case "NoCapacity":
            return "waits for room, and for people to make some"
    if status.phase == RecoveryPhase.HELD:
        return f"is held for a while, then {RELEASE}"
    if status.phase == RecoveryPhase.FAILING and status.attempts and status.attempts[-1].verdict:
        return "has failed; this is advice, and nothing is done"
    runs = bool(status.attempts and status.attempts[-1].started)
    return _SUMMARY.get(RecoveryPhase(status.phase), "runs" if runs else "does not run yet")


def _attempt(attempt: JobAttempt) -> str:
    if not attempt.verdict:
        state = f"runs since {attempt.started}" if attempt.started and not attempt.ended else "not running"
        return f"{attempt.n}: {state if not attempt.ended else f'ended {attempt.ended}'}"
    ended = f", ended {attempt.ended}" if attempt.ended else ""
    return f"{attempt.n}: {attempt.verdict}, {attempt.action}{ended}: {'; '.join(attempt.evidence[:2])}"
