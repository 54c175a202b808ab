"""What shows that the present attempt is over: ranks that failed, vanished, were replaced or lost with their node.

A gang needs all its ranks, so the first one that is gone is the end of the attempt, whatever the others still do. A
node that is briefly NotReady is no symptom: its pods run on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from sickbay.api.core import Node
from sickbay.api.duration import format_duration
from sickbay.recover.ends import End, normalise
from sickbay.recover.signs import moment
from sickbay.recover.view import RankPod, Work, current, newest, scheduling_since

LOST_AFTER = timedelta(seconds=20)
"""After which a node that the control plane has lost (Ready=Unknown) counts as lost. Its kubelet has then been silent
for a minute: the node lifecycle controller waits 40 s (node-monitor-grace-period) before it says Unknown."""
REJOINS = 2
"""Failed starts of one rank alone, while the others run on, after which it is clear that it cannot join them."""
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
    told = {e.rank for e in found}
    rest = [pod for rank, pod in pods.items() if rank not in told]
    rest_ends = [end for rank in rest if (end := _end_of_live(work, rank, pods)) is not None]
    return [*found, *rest_ends]


def _belongs(work: Work, end: End) -> bool:
    job = work.view.job
    assert job is not None
    same = end.job in ("", job.uid) and end.attempt == job.attempt
    return same and end.restart >= work.attempt.restarts and end.rank in job.ranks


def _end_of_live(work: Work, rank: RankPod, gang: Mapping[str, RankPod]) -> End | None:
    """How a rank has ended whose pod is there, and has not failed."""
    return (
        _lost(work, rank)
        or _never_started(work, rank)
        or _replaced(work, rank, gang)
        or _cannot_rejoin(work, rank, gang)
    )


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
    placed = scheduled is not None and scheduled.status == "True"
    since = scheduling_since(work.view, rank) if placed else None
    if not rank.active or rank.pod.phase != "Pending" or since is None:
        return None
    if work.now - since < STARTS_WITHIN:
        work.wake(since + STARTS_WITHIN)
        return None
    waiting = next((s.state.waiting.reason for s in rank.pod.status.container_statuses if s.state.waiting), "")
    how = "Refused" if waiting in OF_THE_JOB else "Missing"
    pod, told = rank.pod, f"not started within {format_duration(STARTS_WITHIN)}{f': {waiting}' if waiting else ''}"
    return End(rank.rank, pod.node_name, pod.name, pod.uid, work.now, rank.attempt, rank.restart, how=how, reason=told)


def _replaced(work: Work, rank: RankPod, gang: Mapping[str, RankPod]) -> End | None:
    """Its pod is younger than the attempt: the rank ended while nobody looked, and was replaced alone.

    The others do not know the newcomer: it cannot join them, or they wait for one that is gone (the host of the
    rendezvous, say). Ages are compared by one clock, the API server's. A rank that the attempt began without replaces
    none: the owner has given the job more.
    """
    added = rank.rank not in work.attempt.placement
    if added or not is_younger(work, rank) or whole_gang_is_younger(work, gang.values()):
        return None
    pod, made = rank.pod, moment(rank.pod.metadata.creation_timestamp)
    node = work.attempt.placement.get(rank.rank, pod.node_name)
    end = End(rank.rank, node, pod.name, pod.uid, made or work.now, rank.attempt, rank.restart, how="Deleted")
    return replace(end, reason="its pod was replaced")


def is_younger(work: Work, rank: RankPod) -> bool:
    """The pod was made after the last of those with which this attempt began to run."""
    attempt = work.attempt
    born, made = moment(attempt.youngest), moment(rank.pod.metadata.creation_timestamp)
    if attempt.ended or born is None or made is None or not rank.active or rank.restart > attempt.restarts:
        return False
    return made > born


def whole_gang_is_younger(work: Work, pods: Iterable[RankPod]) -> bool:
    """Every rank was replaced: somebody has restarted the whole gang, and nothing is wrong with it."""
    job, found = work.view.job, list(pods)
    return job is not None and len(found) == len(job.ranks) and all(is_younger(work, pod) for pod in found)


def youngest(pods: Iterable[RankPod]) -> str | None:
    return max((made for p in pods if (made := p.pod.metadata.creation_timestamp)), default=None)


def _cannot_rejoin(work: Work, rank: RankPod, gang: Mapping[str, RankPod]) -> End | None:
    """Its kubelet has started it again, and it has failed again, while the others wait for it."""
    failed = [s for s in rank.pod.status.container_statuses if s.state.waiting and s.last_state.terminated]
    fewest = min((_restarts(other) for other in gang.values()), default=0)
    if not rank.active or not failed or _restarts(rank) < fewest + REJOINS:
        return None
    last = failed[0].last_state.terminated
    assert last is not None
    over, standing = moment(last.finished_at) or work.now, work.view.standing
    if standing.step is not None and standing.since is not None and standing.since > over:
        return None
    code, signal = normalise(last.exit_code, last.signal)
    pod, told = rank.pod, f"started again {_restarts(rank)} times, and failed each time"
    return End(
        rank.rank, pod.node_name, pod.name, pod.uid, over, rank.attempt, rank.restart, code, signal,
        reason=told, log=last.message,
    )  # fmt: skip


def _restarts(rank: RankPod) -> int:
    return max((s.restart_count for s in rank.pod.status.container_statuses), default=0)


def unknown_since(node: Node | None) -> datetime | None:
    ready = node.condition("Ready") if node is not None else None
    return moment(ready.last_transition_time) if ready is not None and ready.status == "Unknown" else None
