"""The condition WouldQuarantine: a node that would be out of service, were it not for a limit or a job.

The job loop reads it as an exclusion: a gang that is released meanwhile does not land there.
"""

from __future__ import annotations

from sickbay.api import names
from sickbay.decide.work import Work

LIMIT, JOB, ADMITTED = "LimitReached", "NextInterruption", "Admitted"
"""Reasons of the condition."""


def mark(work: Work, reason: str) -> None:
    """Set the condition; `ADMITTED` takes it back."""
    found = work.status.condition(names.WOULD_QUARANTINE)
    status = "False" if reason == ADMITTED else "True"
    if found is None and reason == ADMITTED:
        return
    if found is not None and (found.status, found.reason) == (status, reason):
        return
    work.set_condition(names.WOULD_QUARANTINE, status, reason)
