"""The jobs on a node, from its pods: whether one runs there, and whether it has stopped since somebody looked.

A job here is what ends by itself: a rank of a known job kind, or a pod that is not restarted for ever. Services are
nobody's gang; a drain moves them at any time.

That a job has stopped is told by comparison with what ran when the wait began, never by a clock: fewer of those pods
run, or their containers have been restarted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sickbay.api.core import Pod
from sickbay.api.joblabels import job_of
from sickbay.api.node_repair import WaitedJob

SERVICES = ("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Node")
"""Owners whose pods are put back wherever they run: moving them interrupts no job."""
MOST = 16
"""Jobs recorded for one node (maxItems)."""


@dataclass(frozen=True)
class Tenants:
    """What runs on one node, and elsewhere of the same jobs."""

    here: tuple[Pod, ...] = ()
    """Pods of jobs on the node."""
    gang: Callable[[str], list[Pod]] = lambda _job: []
    """All pods of a job, wherever they are."""

    @property
    def jobs(self) -> list[str]:
        return sorted({gang_of(pod) for pod in self.here})


def is_job_pod(pod: Pod) -> bool:
    """Whether the pod belongs to something that ends."""
    if pod.is_mirror or pod.is_daemonset or pod.finished:
        return False
    owner = pod.metadata.controller
    if owner is not None and owner.kind in SERVICES:
        return False
    return bool(job_of(pod)[1]) or owner is not None or pod.spec.restart_policy in ("Never", "OnFailure")


def gang_of(pod: Pod) -> str:
    """The job a pod belongs to, as people write it; a pod of nobody is its own."""
    kind, name = job_of(pod)
    owner = pod.metadata.controller
    if not name:
        kind, name = (owner.kind, owner.name) if owner is not None else ("Pod", pod.name)
    return f"{kind} {pod.namespace}/{name}"[:400]


def recorded(job: str, pods: Iterable[Pod]) -> WaitedJob:
    """The job as it runs now."""
    live = [pod for pod in pods if _runs(pod)]
    newest = max((pod.metadata.creation_timestamp or "" for pod in live), default="")
    return WaitedJob(job=job, pods=len(live), restarts=sum(map(_restarts, live)), newest=newest or None)


def stopped(waited: WaitedJob, pods: Iterable[Pod]) -> bool:
    """Whether the job has stopped, in whole or in part, since it was recorded. Growing is no stop."""
    newest = waited.newest or ""
    same = [pod for pod in pods if _runs(pod) and (pod.metadata.creation_timestamp or "") <= newest]
    return len(same) < waited.pods or sum(map(_restarts, same)) > waited.restarts


def _runs(pod: Pod) -> bool:
    return bool(pod.node_name) and not pod.deleting and not pod.finished


def _restarts(pod: Pod) -> int:
    return sum(status.restart_count for status in pod.status.container_statuses)
