"""What a drain does with each pod on the node: a pure judgement, pod by pod.

left       mirror and DaemonSet pods, finished pods: not ours to move, nothing to wait for
protected  exempted by the rule, or critical to the system: stays, and does not keep the drain from ending
waits      asks to be let finish
bound      can run nowhere else: keeps the drain waiting (`volumes`)
goes       is evicted, with the grace it asks for within the rule's bounds
ending     is terminating already
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sickbay.api import names
from sickbay.api.core import Node, Pod, Taint
from sickbay.api.duration import parse_duration
from sickbay.api.repair_rule import DrainOptions
from sickbay.clock import parse_time
from sickbay.execute.accelerators import devices_of, holds_accelerator

CRITICAL = ("system-node-critical", "system-cluster-critical")
"""Built-in priority classes of Kubernetes; what carries them keeps the cluster itself running."""
DEFAULT_GRACE = 30
"""Seconds; Kubernetes' default for terminationGracePeriodSeconds."""
UNREACHABLE_GRACE = 1
"""Seconds of grace on a node whose kubelet cannot answer (Cluster API does the same): nobody would use more."""
SHORTEST = timedelta(seconds=1)
JOB_TRACKING = "batch.kubernetes.io/job-tracking"
"""The Job controller's own, which it takes off once it has counted the pod."""
FORGOTTEN = timedelta(hours=1)
"""A finalizer that has kept an ended pod for so long before the drain will not come off by waiting."""
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class Fate(StrEnum):
    LEFT = "Left"
    PROTECTED = "Protected"
    WAITS = "Waits"
    BOUND = "Bound"
    GOES = "Goes"
    ENDING = "Ending"


@dataclass(frozen=True, slots=True)
class Judged:
    pod: Pod
    fate: Fate
    grace: int = 0
    """Seconds, for a pod that goes."""
    priority: int = 0
    """Lower goes first; the next group begins when the one before is gone."""
    until: datetime | None = None
    """Until when a pod that waits is waited for; None = as long as the drain may take."""


@dataclass(frozen=True)
class Drain:
    """What the judgement depends on beside the pod."""

    options: DrainOptions
    started: datetime
    now: datetime
    unreachable: bool
    fenced: bool = False
    """The node is out of service: Kubernetes ends its pods without the kubelet."""
    before: datetime | None = None
    """When the provider takes the machine: no grace is longer than the time left."""
    devices: frozenset[str] = frozenset()
    """UUIDs of the cards that all of it is about; empty where that is not known, or where it is about the node."""


def unreachable(node: Node) -> bool:
    """The control plane has lost the kubelet (Ready is Unknown)."""
    ready = node.condition("Ready")
    return ready is None or ready.status == "Unknown"


def judge(pod: Pod, drain: Drain) -> Judged:
    if pod.is_mirror or pod.is_daemonset or (pod.finished and not _held(pod, drain)):
        return Judged(pod, Fate.LEFT)
    if drain.options.scope == "GPUPods" and not _concerned(pod, drain.devices):
        return Judged(pod, Fate.LEFT)
    if _protected(pod, drain.options):
        return Judged(pod, Fate.PROTECTED)
    if pod.deleting:
        # Nobody on the node will confirm the end; waiting for it would only use up the deadline.
        fate = Fate.LEFT if drain.unreachable and not drain.fenced else Fate.ENDING
        return Judged(pod, fate, priority=_priority(pod, drain.options))
    if _came_back(pod, drain.started):
        return Judged(pod, Fate.LEFT)
    waits, until = _waits(pod, drain)
    if waits:
        return Judged(pod, Fate.WAITS, until=until)
    return Judged(pod, Fate.GOES, grace=_grace(pod, drain), priority=_priority(pod, drain.options))


def _concerned(pod: Pod, devices: frozenset[str]) -> bool:
    """It holds a GPU, and is not known to hold others only than those that are sick."""
    if not holds_accelerator(pod):
        return False
    its = devices_of(pod) if devices else None
    return its is None or bool(its & devices)


def _held(pod: Pod, drain: Drain) -> bool:
    """Its processes have ended, and somebody's finalizer still keeps it: whoever that is has not finished with what the
    pod leaves on the node. `kubectl drain` waits for such a pod too. What has been kept for long is forgotten."""
    keepers = set(pod.metadata.finalizers) - {JOB_TRACKING}
    since = pod.metadata.deletion_timestamp
    return bool(keepers) and since is not None and parse_time(since) >= drain.started - FORGOTTEN


def _protected(pod: Pod, options: DrainOptions) -> bool:
    if pod.spec.priority_class_name in CRITICAL:
        return True
    for each in options.protect:
        if each.selector is None and not each.namespaces and not each.priority_classes:
            continue  # an empty protection names nothing; taken literally it would protect everything
        if each.selector is not None and not each.selector.matches(pod.labels):
            continue
        if each.namespaces and pod.namespace not in each.namespaces:
            continue
        if each.priority_classes and pod.spec.priority_class_name not in each.priority_classes:
            continue
        return True
    return False


def _came_back(pod: Pod, started: datetime) -> bool:
    """Made after the drain began by something that tolerates the cordon: evicting it again and again ends nothing.

    Both moments are in whole seconds; one made in the drain's first second counts as made after.
    """
    made = pod.metadata.creation_timestamp
    return made is not None and parse_time(made) >= started and pod.tolerates(CORDON)


def _waits(pod: Pod, drain: Drain) -> tuple[bool, datetime | None]:
    """Pods that are let finish: by label, or by the rule with a time of its own."""
    for each in drain.options.wait_for:
        if each.selector.empty or not each.selector.matches(pod.labels):
            continue
        if each.timeout is None:
            return True, None
        until = drain.started + parse_duration(each.timeout)
        return drain.now < until, until
    return pod.labels.get(names.WAIT_FOR_COMPLETION) == "true", None


def _grace(pod: Pod, drain: Drain) -> int:
    if drain.unreachable:
        return UNREACHABLE_GRACE
    asked = pod.spec.termination_grace_period_seconds
    wanted = timedelta(seconds=DEFAULT_GRACE if asked is None else asked)
    low, high = parse_duration(drain.options.grace.min), parse_duration(drain.options.grace.max)
    grace = min(max(wanted, low), max(low, high))
    if drain.before is not None:
        # Never 0: that would take the pod out of the API while it may still run.
        grace = max(SHORTEST, min(grace, drain.before - drain.now))
    return int(grace.total_seconds())


def _priority(pod: Pod, options: DrainOptions) -> int:
    found = [each.priority for each in options.order if each.selector.matches(pod.labels)]
    return min(found, default=0)
