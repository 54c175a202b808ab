"""The condition WouldQuarantine: a node that would be out of service, were it not for a limit or a job.

The job loop reads it as an exclusion: a gang that is released meanwhile does not land there.
"""

from __future__ import annotations

from sickbay.api import names
from sickbay.api.meta import Condition
from sickbay.clock import rfc3339
from sickbay.decide.work import Work

LIMIT, JOB, ADMITTED = "LimitReached", "NextInterruption", "Admitted"
"""Reasons of the condition."""


def mark(work: Work, reason: str) -> None:
    """Set the condition; `ADMITTED` takes it back."""
    conditions, kind = work.status.conditions, names.WOULD_QUARANTINE
    found = work.status.condition(kind)
    status = "False" if reason == ADMITTED else "True"
    if found is None and reason == ADMITTED:
        return
    if found is not None and (found.status, found.reason) == (status, reason):
        return
    since = found.last_transition_time if found is not None and found.status == status else rfc3339(work.now)
    rest = [c for c in conditions if c.type != kind]
    rest.append(Condition(type=kind, status=status, reason=reason, last_transition_time=since))
    work.status.conditions = rest
