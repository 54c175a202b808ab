"""What has to be done to the job object, by the record and the job as they are.

Nothing is remembered between a decision and its act: the record says what phase the job is in, the object shows how far
that is true, and the difference is the act. So a crash in between, or a second look, does nothing twice.
"""

from __future__ import annotations

from enum import StrEnum

from sickbay.api import names
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.words import RecoveryPhase
from sickbay.recover.view import HOLDING, LIVE, View


class Act(StrEnum):
    NOTHING = ""
    HOLD = "Hold"
    """Suspend the job, with our mark."""
    UNMARK = "Unmark"
    """Take our mark off a job that somebody else has resumed."""
    RELEASE = "Release"
    """Let the suspended job go as the next attempt."""
    KEEP = "Keep"
    """Write down the next attempt before the old object is deleted."""
    DELETE = "Delete"
    CREATE = "Create"
    FORGET = "Forget"
    """The next attempt is there: what was written down is not needed any more."""


def next_act(record: JobRecovery, view: View, excluded: list[str]) -> Act:
    """`excluded`: host names that the next attempt keeps away from."""
    job, phase = view.job, record.status.phase
    kept = names.NEXT_ATTEMPT in record.metadata.annotations
    if phase == RecoveryPhase.RELEASING:
        return _release(record, view, excluded, kept)
    if kept:
        return Act.FORGET
    if job is None or job.deleting or job.foreign:
        return Act.NOTHING
    if phase in HOLDING and view.acting and not job.finished and not job.suspended and not job.marked:
        return Act.HOLD
    if phase in LIVE and job.marked and not job.suspended:
        return Act.UNMARK
    return Act.NOTHING


def _release(record: JobRecovery, view: View, excluded: list[str], kept: bool) -> Act:
    job, attempt = view.job, record.status.attempts[-1].n
    if job is None:
        return Act.CREATE if kept else Act.NOTHING
    if job.attempt == attempt or job.deleting or job.foreign or job.uid != record.spec.job.uid:
        return Act.NOTHING
    if kept:
        return Act.DELETE
    if job.finished or view.blocked_by_lost_pods or view.resumes_late:
        return Act.KEEP
    if not view.excludes_in_place and set(excluded) != set(job.excluded):
        return Act.KEEP
    return Act.RELEASE if job.suspended and view.settled else Act.NOTHING
