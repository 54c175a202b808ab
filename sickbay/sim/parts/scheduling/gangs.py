"""Gangs: pods that are placed together or not at all.

Read are the marks that gang schedulers use: `spec.schedulingGroup` of Kubernetes itself, the label of the coscheduling
plug-in, the annotations of Volcano and KAI. How many make a gang stands in the PodGroup of that name, in the pod's own
mark, or follows from its Job; without any of these it is as many as there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.store import Store
from sickbay.sim.hand import JOBS, labels_of
from sickbay.sim.parts.disruption import controller_of
from sickbay.sim.parts.scheduling.picture import ENDED

SCHEDULERS = ("default-scheduler", "scheduler-plugins-scheduler", "volcano", "kai-scheduler", "runai-scheduler")
"""Names under which this scheduler is meant."""
LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io/name", "runai/pod-group-name")
ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name", "pod-group-name")
SIZES = ("pod-group.scheduling.sigs.k8s.io/min-available", "scheduling.volcano.sh/group-min-member")
POD_GROUPS = (
    "podgroups.scheduling.k8s.io",
    "podgroups.scheduling.x-k8s.io",
    "podgroups.scheduling.volcano.sh",
    "podgroups.scheduling.run.ai",
)


def gang_of(pod: Obj) -> str:
    """Name of the pod's gang in its namespace; empty for a pod of its own."""
    own = ((pod.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName")
    if own:
        return str(own)
    labels, annotations = labels_of(pod), pod["metadata"].get("annotations") or {}
    found = [labels[key] for key in LABELS if labels.get(key)]
    found += [annotations[key] for key in ANNOTATIONS if annotations.get(key)]
    return str(found[0]) if found else ""


def least(gang: str, pods: list[Obj], store: Store) -> int:
    """How many members must be placed together."""
    namespace = pods[0]["metadata"]["namespace"]
    for resource in POD_GROUPS:
        group = store.find(resource, gang, namespace)
        if group is not None:
            return _size_of_group(group, len(pods))
    marked = [size for pod in pods if (size := _marked_size(pod))]
    return max(marked) if marked else _size_by_jobs(pods, store)


def _size_of_group(group: Obj, pods: int) -> int:
    spec = group.get("spec") or {}
    native = ((spec.get("schedulingPolicy") or {}).get("gang") or {}).get("minCount")
    return int(spec.get("minMember") or native or pods)


def _marked_size(pod: Obj) -> int:
    marks = {**(pod["metadata"].get("annotations") or {}), **labels_of(pod)}
    given = [marks[key] for key in SIZES if str(marks.get(key, "")).isdecimal()]
    return int(given[0]) if given else 0


def _size_by_jobs(pods: list[Obj], store: Store) -> int:
    """As many as their Jobs run at a time; pods without one count for themselves."""
    sizes: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod)
        job = store.find(JOBS, owner["name"], pod["metadata"]["namespace"]) if owner.get("kind") == "Job" else None
        if job is None:
            sizes[pod["metadata"]["uid"]] = 1
        else:
            spec, done = job["spec"], int((job.get("status") or {}).get("succeeded") or 0)
            parallel = int(spec.get("parallelism", 1))
            wanted = spec.get("completions")
            sizes[job["metadata"]["uid"]] = parallel if wanted is None else min(parallel, int(wanted) - done)
    return sum(sizes.values())


def members(gang: str, namespace: str, pods: Iterable[Obj]) -> list[Obj]:
    """The living pods of a gang."""
    return [
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == namespace
        and (pod.get("status") or {}).get("phase") not in ENDED
        and not pod["metadata"].get("deletionTimestamp")
        and gang_of(pod) == gang
    ]
