"""How a job comes to stand still: torn down to run again, held for a while, or held until people act."""

from __future__ import annotations

from datetime import timedelta

from sickbay.api.words import RecoveryPhase
from sickbay.recover.view import Work

TEARDOWN_PATIENCE = timedelta(minutes=10)
"""How long the old gang may take to go: twice the longest usual grace."""
REMIND = timedelta(hours=4)
"""Between two calls for people."""
PEOPLE = "people are told again"
"""onDeadline of a job that waits for people."""
RELEASE = "released again"
"""onDeadline of a job that is held only for a while."""


def hold(work: Work, message: str) -> None:
    """Held until people act."""
    work.enter(RecoveryPhase.HELD, f"{message}; {how_to_resume(work)}", REMIND, PEOPLE)
    work.note("JobHeld", work.status.message, warning=True)


def tear_down(work: Work, message: str) -> None:
    work.enter(RecoveryPhase.TEARING_DOWN, message, TEARDOWN_PATIENCE, "held for people")


def how_to_resume(work: Work) -> str:
    """The command that lets the job run again."""
    kind, namespace, name = work.view.id
    job = work.view.job
    if job is None or job.finished:
        return f"to run it again, delete and create {kind.lower()} {name} in namespace {namespace}"
    return f"to run it again: {resume_command(kind, namespace, name)}"


def resume_command(kind: str, namespace: str, name: str) -> str:
    """What a person types to let a suspended job run."""
    patch = '{"spec":{"suspend":false}}'
    return f"kubectl -n {namespace} patch {kind.lower()} {name} --type merge -p '{patch}'"
