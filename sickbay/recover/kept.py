"""What is kept of how ranks ended, so that a verdict does not hang on this process living on.

Pods are deleted within moments of a failure, and what they told goes with them. So the ends stand in the record from
the first look on: few, since an object is bounded, and those that a verdict needs first. They are dropped when the
attempt after the next begins: until then late evidence may still change the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sickbay.api.job_recovery import JobAttempt, RankEnd
from sickbay.clock import parse_time, rfc3339
from sickbay.recover.ends import End
from sickbay.recover.evidence import Evidence
from sickbay.recover.logs import Reading, read

MOST = 8
"""Ends that are kept of an attempt."""
LINE = 400
"""Characters that are kept of a log's line."""


def keep(evidence: Evidence) -> list[RankEnd]:
    """The root, then causes before victims, in the order of time."""
    rest = sorted((e for e in evidence.ends if e is not evidence.root), key=lambda e: (e.terminated, e.at))
    chosen = [*([evidence.root] if evidence.root is not None else ()), *rest][:MOST]
    return [_kept(end, evidence.readings.get(end.uid, Reading())) for end in chosen]


def _kept(end: End, reading: Reading) -> RankEnd:
    return RankEnd(
        rank=end.rank,
        node=end.node,
        pod=end.pod,
        uid=end.uid,
        at=rfc3339(end.at),
        code=end.code,
        signal=end.signal,
        how=end.how,
        reason=end.reason[:128],
        line=reading.line[:LINE],
    )


def with_kept(found: Iterable[End], attempt: JobAttempt) -> list[End]:
    """The ends that are seen, and those that were seen before and are not any more."""
    seen = list(found)
    there = {end.uid for end in seen if not end.terminated}
    kept = [end for end in ends_of(attempt) if end.uid not in there]
    again = {end.uid for end in kept}
    return [*(end for end in seen if end.uid not in again), *kept]


def ends_of(attempt: JobAttempt) -> list[End]:
    return [
        End(
            rank=e.rank,
            node=e.node,
            pod=e.pod,
            uid=e.uid,
            at=parse_time(e.at),
            attempt=attempt.n,
            restart=attempt.restarts,
            code=e.code,
            signal=e.signal,
            how=e.how,
            reason=e.reason,
            log=e.line,
        )
        for e in attempt.ends
        if e.at
    ]


def readings(live: Mapping[str, Reading], ends: Iterable[End]) -> dict[str, Reading]:
    """What logs show, by pod UID: as they were read, or else by the line that was kept."""
    found = {end.uid: read(end.log) for end in ends if end.log}
    return found | {uid: reading for uid, reading in live.items() if reading.line or uid not in found}
