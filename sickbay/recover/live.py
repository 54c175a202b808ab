"""The job runs, or is on its way there: watch for the first sign that the attempt is over."""

from __future__ import annotations

from sickbay.api.words import JobAction, JobVerdict, RecoveryPhase
from sickbay.clock import rfc3339
from sickbay.recover.ends import End
from sickbay.recover.hang import stalled
from sickbay.recover.job import Job
from sickbay.recover.judge import fail
from sickbay.recover.place import place
from sickbay.recover.symptoms import ended, whole_gang_is_younger
from sickbay.recover.view import Work, current, newest


def live(work: Work) -> None:
    job = work.view.job
    if job is None or job.deleting:
        gone(work)
        return
    if work.record.spec.job.uid != job.uid:
        adopt(work, job)
    if job.finished == "Complete":
        complete(work)
        return
    if job.suspended:
        _set_aside(work)
        return
    ends = ended(work)
    if ends or (job.finished == "Failed" and not work.attempt.ended):
        _over(work, job, ends)
        return
    _count_own_restart(work, job)
    place(work, job)
    _caught_up(work)
    _first_step(work)
    runs = work.phase in (RecoveryPhase.RUNNING, RecoveryPhase.RECOVERED) and not work.attempt.ended
    stall = stalled(work) if runs else None  # one that was set aside, and is just resumed, is no attempt yet
    if stall is not None:
        fail(work, stall.missing, "" if stall.missing else stall.why)


def _over(work: Work, job: Job, ends: list[End]) -> None:
    if work.attempt.ended:
        work.begin(work.attempt.n + 1, job.restarts)
    fail(work, ends)


def _count_own_restart(work: Work, job: Job) -> None:
    """Its own controller, or a person, has restarted the job while nobody looked: that was an attempt too."""
    attempt = work.attempt
    anew = whole_gang_is_younger(work, newest(current(work.view)).values())
    if attempt.ended or (job.restarts <= attempt.restarts and not anew) or _pods_lag(work, job):
        return
    attempt.verdict, attempt.action = JobVerdict.UNKNOWN.value, JobAction.RESTART_IN_PLACE.value
    attempt.evidence = ["restarted by somebody else; what ended it was not seen"]
    attempt.ended = rfc3339(work.now)
    work.begin(attempt.n + 1, job.restarts)


def _pods_lag(work: Work, job: Job) -> bool:
    """Pods of before the restart are still seen alive: jobs and pods come by two watches, and what ended the ranks is
    about to be seen."""
    return any(p.active and p.attempt == job.attempt and p.restart < job.restarts for p in work.view.pods)


def _first_step(work: Work) -> None:
    if work.attempt.first_step is None and work.attempt.started:
        work.attempt.first_step = work.view.standing.step


def _caught_up(work: Work) -> None:
    """The lost progress has been made up for."""
    incident, step = work.incident, work.view.standing.step
    if step is None or incident.step is None or not incident.times.started or incident.times.caught_up:
        return
    if step > incident.step:
        incident.times.caught_up = rfc3339(work.now)


def gone(work: Work) -> None:
    """The job object is gone, by somebody's will: there is nothing to recover."""
    if not work.attempt.ended:
        work.attempt.ended = rfc3339(work.now)
    if work.phase != RecoveryPhase.STOPPED:
        work.enter(RecoveryPhase.STOPPED, "the job was deleted")


def complete(work: Work) -> None:
    if not work.attempt.ended or work.phase not in (RecoveryPhase.RUNNING, RecoveryPhase.RECOVERED):
        work.attempt.ended = work.attempt.ended or rfc3339(work.now)
        again = len(work.status.attempts) > 1
        work.enter(RecoveryPhase.RECOVERED if again else RecoveryPhase.RUNNING, "the job has completed")


def adopt(work: Work, job: Job) -> None:
    """Another object has the job's name. The same program goes on with the budgets it has; another one begins anew."""
    status, old = work.status, work.record.spec.job.uid
    work.record.spec.job.uid = job.uid
    if old:
        if not work.attempt.ended:
            work.attempt.ended = rfc3339(work.now)
        attempt = work.begin(max(work.attempt.n + 1, job.attempt), job.restarts)
        if status.template and status.template != job.template:
            status.counted_from, status.fingerprint = attempt.n, ""
        work.enter(RecoveryPhase.RUNNING, "the job was made again by somebody else")
    status.template = job.template


def _set_aside(work: Work) -> None:
    """Suspended by somebody else: no failure, and not ours to undo."""
    attempt = work.attempt
    if not attempt.started or attempt.ended:
        return
    attempt.verdict, attempt.action = JobVerdict.POLICY.value, JobAction.NONE.value
    attempt.ended = rfc3339(work.now)
    work.consumed |= {pod.pod.uid for pod in work.view.pods}
    work.enter(RecoveryPhase.RUNNING, "suspended by somebody else")
