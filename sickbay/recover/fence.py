"""Fence before release: isolated or excluded, the old gang proved gone, then let go, and where it lands looked at."""

from __future__ import annotations

from datetime import timedelta

from sickbay.api import names
from sickbay.api.words import RecoveryPhase
from sickbay.clock import parse_time, rfc3339
from sickbay.recover import suspects
from sickbay.recover.held import resumed
from sickbay.recover.live import adopt
from sickbay.recover.stops import TEARDOWN_PATIENCE, hold, tear_down
from sickbay.recover.view import RankPod, View, Work

RELEASE_PATIENCE = timedelta(minutes=10)
"""How long the job object may take to be changed, or to be deleted and made again."""


def isolating(work: Work) -> None:
    """Wait until the scheduler cannot see the suspects any more, or until it is clear that it will."""
    status = work.status
    open_ = [s for s in status.suspects if not suspects.isolated(work.view.nodes.get(s.node), s.uid)]
    if not work.view.fence or not open_:
        work.incident.times.isolated = rfc3339(work.now)
        return tear_down(work, status.message)
    crowded = suspects.too_many(work)
    if crowded:
        return hold(work, crowded)
    reasons = {s.node: suspects.stays_open(work.view, s.node) for s in open_}
    if all(reasons.values()):
        told = "; ".join(f"{node} stays open: {why}" for node, why in sorted(reasons.items()))
        return tear_down(work, f"{told}; the job alone keeps away from it")
    deadline = parse_time(status.deadline) if status.deadline else work.now
    if work.now < deadline:
        work.wake(deadline)
        return None
    return tear_down(work, f"{', '.join(sorted(reasons))} not isolated in time; the job alone keeps away from it")


def tearing_down(work: Work) -> None:
    """Wait until nothing of the old gang can run any more."""
    job = work.view.job
    if job is None or (not job.finished and not job.suspended):
        return _late(work, "the job has not been stopped yet")
    left = lingering(work.view)
    if left:
        return _late(work, f"{len(left)} pods of the old gang are left, such as {left[0].pod.name}")
    work.incident.times.torn_down = rfc3339(work.now)
    attempt = work.begin(max(work.attempt.n, job.attempt) + 1, job.restarts)
    work.enter(RecoveryPhase.RELEASING, f"attempt {attempt.n} is let go", RELEASE_PATIENCE, "held for people")
    return None


def lingering(view: View) -> list[RankPod]:
    """Pods that may still run a process.

    On a node that is not ready and out of the scheduler's sight pods count as gone once all of the job's there were
    told to go: nobody there may be able to confirm it, their peers are gone, and a job must not wait for days for a
    machine to come back.
    """
    return [p for p in view.pods if p.lingers and not _unreachable(view, p)]


def _unreachable(view: View, pod: RankPod) -> bool:
    node = view.nodes.get(pod.pod.node_name)
    if node is None or node.ready or not pod.pod.deleting or not suspects.isolated(node, node.uid):
        return False
    return all(p.pod.deleting for p in view.pods if p.lingers and p.pod.node_name == node.name)


def _late(work: Work, why: str) -> None:
    deadline = parse_time(work.status.deadline) if work.status.deadline else work.now + TEARDOWN_PATIENCE
    if work.now >= deadline:
        return hold(work, why)
    work.wake(deadline)
    return None


def releasing(work: Work) -> None:
    """Wait until the job object is the new attempt and runs."""
    job, attempt = work.view.job, work.attempt
    made_again = names.NEXT_ATTEMPT in work.record.metadata.annotations
    if job is None and not made_again:
        work.attempt.ended = rfc3339(work.now)
        work.enter(RecoveryPhase.STOPPED, "the job was deleted while it was restarted")
        return None
    if job is not None and job.attempt != attempt.n and job.uid != work.record.spec.job.uid:
        return adopt(work, job)
    if job is not None and job.attempt != attempt.n and resumed(work):
        return None
    if job is None or job.deleting or job.attempt != attempt.n or job.suspended:
        return _late(work, "the job could not be let go")
    work.record.spec.job.uid = job.uid
    attempt.restarts = job.restarts
    work.incident.times.queued = rfc3339(work.now)
    work.consumed |= {end.uid for end in work.view.ends}
    work.enter(RecoveryPhase.PLACING, f"attempt {attempt.n} is being placed")
    work.note("JobReleased", f"attempt {attempt.n} was let go{_kept_away(work)}")
    return None


def _kept_away(work: Work) -> str:
    away = sorted({e.node for e in work.status.excluded})
    return f", keeping away from {', '.join(away[:8])}" if away else ""
