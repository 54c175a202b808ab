"""Gangs on a node that is drained: offered to the job loop for a move as a whole instead of being evicted rank by rank.

The offer stands in the drain's report, the answer in `JobRecovery.status.moves`. While a move is accepted or under way,
or the job loop is tearing the job down, the drain touches none of its pods, so that never two layers delete the same
ones. Declined, or not answered within a minute: the pods are evicted like any others. So are those that are left when
the move is over, or when the drain's own time runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sickbay.api.core import Pod
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.joblabels import job_of
from sickbay.api.objectnames import job_recovery_name
from sickbay.api.repair_step import Offer, OfferedJob
from sickbay.api.words import MoveState, RecoveryPhase
from sickbay.clock import parse_time, rfc3339
from sickbay.execute.progress import Look

ANSWER_WITHIN = timedelta(seconds=60)
"""How long the job loop may take to answer (api.md, Moves)."""
LEFT_FOR_EVICTION = 5
"""The last part of a drain's time is kept for evicting what a move has left: one in so many."""

Recoveries = Callable[[str, str], JobRecovery | None]
"""Name and namespace to the record."""


@dataclass(frozen=True)
class Offered:
    """What stands in the report, and which pods are the job loop's to move, by UID: until when."""

    offers: list[Offer] = field(default_factory=list)
    kept: dict[str, datetime] = field(default_factory=dict)


def offered(look: Look, pods: Iterable[Pod], recoveries: Recoveries) -> Offered:
    """Pure: from the pods that would leave, the records of their jobs, and the offers that stand."""
    standing = {offer.job.uid: offer for offer in look.report.offers}
    result = Offered()
    for record, ranks in _gangs(pods, recoveries):
        known = standing.get(record.spec.job.uid)
        first = known.until if known is not None and known.until else rfc3339(look.now + ANSWER_WITHIN)
        until = _kept_until(look, record, parse_time(first))
        keep = until is not None and look.now < until
        shown = rfc3339(until) if keep and until is not None else first
        result.offers.append(Offer(job=_named(record), until=shown))
        if keep and until is not None:
            result.kept.update(dict.fromkeys((pod.uid for pod in ranks), until))
    return result


def _gangs(pods: Iterable[Pod], recoveries: Recoveries) -> list[tuple[JobRecovery, list[Pod]]]:
    """The pods by the job that the job loop keeps a record of; all others are nobody's gang."""
    found: dict[str, tuple[JobRecovery, list[Pod]]] = {}
    for pod in pods:
        kind, name = job_of(pod)
        record = recoveries(job_recovery_name(kind, name), pod.namespace) if name else None
        if record is None or not record.spec.job.uid or record.status.phase == RecoveryPhase.STOPPED:
            continue
        found.setdefault(record.spec.job.uid, (record, []))[1].append(pod)
    return list(found.values())


def _kept_until(look: Look, record: JobRecovery, answer_by: datetime) -> datetime | None:
    """Until when the job's pods are left to the job loop; None when they are not."""
    wanted = look.repair.metadata.name, look.current.attempt
    state = next((m.state for m in record.status.moves if (m.repair, m.attempt) == wanted), "")
    if state in (MoveState.ACCEPTED, MoveState.MOVING) or record.status.phase == RecoveryPhase.TEARING_DOWN:
        return _end_of_moves(look)
    if state:
        return None
    return min(answer_by, _end_of_moves(look))


def _end_of_moves(look: Look) -> datetime:
    started = look.repair.status.step(look.current.step).started
    whole = look.deadline - (parse_time(started) if started else look.now)
    return look.deadline - whole / LEFT_FOR_EVICTION


def _named(record: JobRecovery) -> OfferedJob:
    job = record.spec.job
    return OfferedJob(
        api_version=job.api_version, kind=job.kind, namespace=record.namespace, name=job.name, uid=job.uid
    )
