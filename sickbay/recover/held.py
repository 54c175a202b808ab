"""Held or stopped: the job waits, for a while or for people. Their hand on it always wins."""

from __future__ import annotations

from sickbay.api.words import RecoveryPhase
from sickbay.clock import parse_time, rfc3339
from sickbay.recover.live import adopt, complete, gone
from sickbay.recover.stops import PEOPLE, RELEASE, REMIND, tear_down
from sickbay.recover.symptoms import ended
from sickbay.recover.view import Work, current, newest


def persons_hand(work: Work) -> bool:
    """Somebody has done something to the job we hold: resumed, deleted, or made it again. True when that settles it."""
    job = work.view.job
    if job is None or job.deleting:
        gone(work)
        return True
    if job.uid != work.record.spec.job.uid:
        adopt(work, job)
        return True
    if job.finished == "Complete":
        complete(work)
        return True
    return resumed(work)


def resumed(work: Work) -> bool:
    """Somebody has resumed the job that we hold: from here on it is as if it had never failed."""
    job = work.view.job
    if job is None or not work.view.acting or job.suspended or job.finished or not job.marked:
        return False
    if not work.attempt.ended:
        work.attempt.ended = rfc3339(work.now)
    work.consumed |= {end.uid for end in work.view.ends}
    attempt = work.begin(work.attempt.n + 1, job.restarts)
    work.status.counted_from = attempt.n
    work.enter(RecoveryPhase.RUNNING, "resumed by a person; the budgets begin anew")
    work.note("JobResumed", "resumed by a person; the budgets begin anew")
    return True


def held(work: Work) -> None:
    deadline = parse_time(work.status.deadline) if work.status.deadline else None
    if deadline is not None and work.now < deadline:
        work.wake(deadline)
    elif deadline is not None and work.status.on_deadline == RELEASE:
        tear_down(work, f"tried again: {work.status.message}")
    elif deadline is not None:
        work.enter(RecoveryPhase.HELD, work.status.message, REMIND, PEOPLE)
        work.note("JobHeld", f"still held: {work.status.message}", warning=True)


def advised(work: Work) -> None:
    """Advice is given; whether the job runs again is for others to see to."""
    job = work.view.job
    assert job is not None
    if job.finished == "Failed":
        work.enter(RecoveryPhase.STOPPED, work.status.message)
        return
    pods = newest(current(work.view))
    if len(pods) == len(job.ranks) and all(pod.active for pod in pods.values()) and not ended(work):
        work.begin(work.attempt.n + 1, job.restarts)
        work.enter(RecoveryPhase.RUNNING, "restarted by its own controller")
