"""What shows that the present attempt is over: ranks that failed, vanished or were lost with their node, or a stall.

A gang needs all its ranks, so the first one that is gone is the end of the attempt, whatever the others still do. A
node that is briefly NotReady is no symptom: its pods run on.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sickbay.api.core import Node
from sickbay.api.duration import format_duration, parse_duration
from sickbay.recover.ends import End
from sickbay.recover.signs import moment
from sickbay.recover.view import RankPod, Work, current, newest

LOST_AFTER = timedelta(seconds=20)
"""After which a node that the control plane has lost (Ready=Unknown) counts as lost. Its kubelet has then been silent
for a minute: the node lifecycle controller waits 40 s (node-monitor-grace-period) before it says Unknown."""
STARTS_WITHIN = timedelta(minutes=10)
"""How long a rank that has a node may take to run there: pulling a large image takes minutes, ten are too many."""
OF_THE_JOB = (
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"
)  # fmt: skip
"""Why containers wait, in the kubelet's words, for which no node is to blame."""


def ended(work: Work) -> list[End]:
    """The ends of the present attempt, in no order."""
    view, job = work.view, work.view.job
    if job is None:
        return []
    pods = newest(current(view))
    there = {p.pod.uid for p in view.pods}
    latest = {p.pod.uid for p in pods.values()}
    mine = [e for e in view.ends if _belongs(work, e)]
    found = [e for e in mine if e.restart < job.restarts or e.uid in latest or e.uid not in there]
    known = {e.uid for e in found}
    rest = [rank for rank in pods.values() if rank.pod.uid not in known]
    lost = [end for rank in rest if (end := _lost(work, rank) or _never_started(work, rank)) is not None]
    return [*found, *lost]


def _belongs(work: Work, end: End) -> bool:
    job = work.view.job
    assert job is not None
    return end.attempt == job.attempt and end.restart >= work.attempt.restarts and end.rank in job.ranks


def _lost(work: Work, rank: RankPod) -> End | None:
    """The rank's node is lost, and the job has not come any further since."""
    if not rank.active or not rank.pod.node_name:
        return None
    node = work.view.nodes.get(rank.pod.node_name)
    since = unknown_since(node) if node is not None else None
    if since is None:
        return None
    if work.now - since < LOST_AFTER:
        work.wake(since + LOST_AFTER)
        return None
    standing = work.view.standing
    if standing.step is not None and standing.since is not None and standing.since > since:
        return None
    pod = rank.pod
    return End(rank.rank, pod.node_name, pod.name, pod.uid, since, rank.attempt, rank.restart, how="NodeLost")


def _never_started(work: Work, rank: RankPod) -> End | None:
    """The rank has a node, and its containers do not come up there."""
    scheduled = rank.pod.condition("PodScheduled")
    since = moment(scheduled.last_transition_time) if scheduled is not None and scheduled.status == "True" else None
    if not rank.active or rank.pod.phase != "Pending" or since is None:
        return None
    if work.now - since < STARTS_WITHIN:
        work.wake(since + STARTS_WITHIN)
        return None
    waiting = next((s.state.waiting.reason for s in rank.pod.status.container_statuses if s.state.waiting), "")
    how = "Refused" if waiting in OF_THE_JOB else "Missing"
    pod, told = rank.pod, f"not started within {format_duration(STARTS_WITHIN)}{f': {waiting}' if waiting else ''}"
    return End(rank.rank, pod.node_name, pod.name, pod.uid, work.now, rank.attempt, rank.restart, how=how, reason=told)


def unknown_since(node: Node | None) -> datetime | None:
    ready = node.condition("Ready") if node is not None else None
    return moment(ready.last_transition_time) if ready is not None and ready.status == "Unknown" else None


def stalled(work: Work) -> str:
    """Why the job stands still, "" while it does not or nobody can tell."""
    standing, job = work.view.standing, work.view.job
    started = moment(work.attempt.started)
    if job is None or not standing.expected or standing.since is None or started is None:
        return ""
    since, limit = max(standing.since, started), parse_duration(work.policy.hang.stall)
    if work.now - since < limit:
        work.wake(since + limit)
        return ""
    last = "there was none yet" if standing.step is None else f"the last one was {standing.step}"
    behind = f"; behind the others: ranks {', '.join(standing.behind[:4])}" if standing.behind else ""
    return f"no step for {work.policy.hang.stall}, {last}{behind}"
