"""The jobs' part of a gate: which jobs on the node have been asked for a checkpoint, and what they have answered.

A job is asked when its RecoveryPolicy is in Act with `checkpoint` set. Which jobs are on the node stands in their
JobRecovery (the placement of the present attempt), their answers in its `gates`. The job loop asks them; where it does
not within a minute, it is not there, and what it has not asked for does not hold the repair up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sickbay.api.job_recovery import Gate, JobRecovery
from sickbay.api.recovery_policy import RecoveryPolicy
from sickbay.api.words import GateState, Mode
from sickbay.clock import parse_time

SILENCE = timedelta(seconds=60)
"""How long the job loop may take to ask, the same as for answering a drain's offer (api.md, Moves)."""
SLACK = timedelta(seconds=30)
"""How long beyond a job's own time its answer is waited for."""


@dataclass(frozen=True)
class JobsWait:
    """Jobs whose answer is still missing."""

    jobs: tuple[str, ...]
    until: datetime
    """When the last of them will have had its time."""

    def __str__(self) -> str:
        more = f" and {len(self.jobs) - 3} more" if len(self.jobs) > 3 else ""
        return f"waits for the checkpoint of {', '.join(self.jobs[:3])}{more}"


Policies = Callable[[str, str], RecoveryPolicy | None]
"""Namespace and name to the policy."""


def waiting(
    node: str,
    repair: str,
    step: str,
    attempt: int,
    records: Iterable[JobRecovery],
    policies: Policies,
    asked: datetime,
    now: datetime,
) -> JobsWait | None:
    """What the jobs' part of this gate waits for; None when it is answered."""
    open_: list[tuple[str, datetime]] = []
    for record in records:
        if not _is_there(record, node) or not _asks(record, policies):
            continue
        until = _until(record, repair, step, attempt, asked)
        if until is not None and now < until:
            open_.append((f"{record.spec.job.kind} {record.namespace}/{record.spec.job.name}", until))
    if not open_:
        return None
    return JobsWait(tuple(sorted(name for name, _ in open_)), max(until for _, until in open_))


def _is_there(record: JobRecovery, node: str) -> bool:
    present = record.status.attempts[-1:]
    return any(not attempt.ended and node in attempt.placement.values() for attempt in present)


def _asks(record: JobRecovery, policies: Policies) -> bool:
    policy = policies(record.namespace, record.spec.policy)
    return policy is not None and policy.spec.mode == Mode.ACT and policy.spec.checkpoint is not None


def _until(record: JobRecovery, repair: str, step: str, attempt: int, asked: datetime) -> datetime | None:
    """Until when this job's answer is waited for; None when it has been given."""
    entry = _entry(record, repair, step, attempt)
    if entry is None:
        return asked + SILENCE
    if entry.state != GateState.ASKED or not entry.until:
        return None
    return parse_time(entry.until) + SLACK


def _entry(record: JobRecovery, repair: str, step: str, attempt: int) -> Gate | None:
    wanted = (repair, step, attempt)
    return next((g for g in record.status.gates if (g.repair, g.step, g.attempt) == wanted), None)
