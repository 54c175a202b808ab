"""Pod specs: defaults, what admission adds, QoS class, and which fields a running pod may still change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sickbay.apiserver.errors import Cause, Obj

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store

DEFAULT_GRACE = 30
"""Seconds; `terminationGracePeriodSeconds` of a pod that names none (core/v1 defaults)."""
NOT_READY_SECONDS = 300
"""Seconds; what the DefaultTolerationSeconds admission plug-in gives pods against not-ready and unreachable."""
SYSTEM_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
"""Classes every cluster has (scheduling/v1)."""


def with_defaults(spec: Obj) -> Obj:
    """The defaults of core/v1, as pods and pod templates get them."""
    spec = dict(spec)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", DEFAULT_GRACE)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    for field in ("containers", "initContainers"):
        if spec.get(field):
            spec[field] = [_container(container) for container in spec[field]]
    return spec


def _container(container: Obj) -> Obj:
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    latest = "@" not in image and tag in ("", "latest")
    defaults = {
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always" if latest else "IfNotPresent",
    }
    return {**defaults, **container}


def admitted(spec: Obj, store: Store) -> Obj:
    """What the default admission plug-ins add to a pod: service account, tolerations, priority."""
    spec = dict(spec)
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec["tolerations"] = _with_default_tolerations(spec.get("tolerations") or [])
    spec.update(_priority(spec, store))
    return spec


def _with_default_tolerations(tolerations: list[Obj]) -> list[Obj]:
    def tolerated(key: str) -> bool:
        return any(
            entry.get("key", key) == key and entry.get("effect") in (None, "", "NoExecute") for entry in tolerations
        )

    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": NOT_READY_SECONDS}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if not tolerated(key)
    ]
    return [*tolerations, *added]


def _priority(spec: Obj, store: Store) -> Obj:
    name = spec.get("priorityClassName", "")
    found: Any = store.find("priorityclasses.scheduling.k8s.io", name) if name else None
    if found is not None:
        value, policy = int(found.get("value", 0)), found.get("preemptionPolicy", "PreemptLowerPriority")
    else:
        value, policy = SYSTEM_PRIORITIES.get(name, 0), "PreemptLowerPriority"
    return {"priority": value, "preemptionPolicy": policy}


def qos_class(spec: Obj) -> str:
    """Guaranteed, Burstable or BestEffort, by the containers' requests and limits of CPU and memory."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    relevant = ("cpu", "memory")
    any_set, guaranteed = False, True
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        any_set = any_set or any(key in limits or key in requests for key in relevant)
        guaranteed = guaranteed and all(
            key in limits and requests.get(key, limits[key]) == limits[key] for key in relevant
        )
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


_IMMUTABLE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing"
    " tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_change(new: Obj, old: Obj) -> list[Cause]:
    """What an update of a pod may not do (core/validation, ValidatePodUpdate)."""
    if new == old:
        return []
    gated = bool(old.get("schedulingGates"))
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    free |= {"nodeSelector", "affinity"} if gated else set()
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        free |= {"terminationGracePeriodSeconds"}
    kept_tolerations = all(entry in (new.get("tolerations") or ()) for entry in old.get("tolerations") or ())
    if kept_tolerations and _without(new, free) == _without(old, free):
        return []
    return [Cause("FieldValueForbidden", _IMMUTABLE, "spec")]


def _without(spec: Obj, fields: set[str]) -> Obj:
    rest = {key: value for key, value in spec.items() if key not in fields}
    for field in ("containers", "initContainers"):
        if rest.get(field):
            rest[field] = [{**container, "image": ""} for container in rest[field]]
    return rest
