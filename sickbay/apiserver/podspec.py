"""Pod specs: what admission adds, QoS class, and which fields a running pod may still change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sickbay.apiserver.errors import Cause, Obj

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store

NOT_READY_SECONDS = 300
"""Seconds; what the DefaultTolerationSeconds admission plug-in gives pods against not-ready and unreachable."""
SYSTEM_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
"""Classes every cluster has (scheduling/v1)."""


def admitted(spec: Obj, store: Store) -> Obj:
    """What the default admission plug-ins add to a pod: service account, tolerations, priority."""
    spec = dict(spec)
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec["tolerations"] = with_default_tolerations(spec.get("tolerations") or [])
    spec.update(_priority(spec, store))
    return spec


def with_default_tolerations(tolerations: list[Obj]) -> list[Obj]:
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
    if causes := _check_parts(new, old):
        return causes
    gated = bool(old.get("schedulingGates"))
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    free |= {"nodeSelector", "affinity"} if gated else set()
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        free |= {"terminationGracePeriodSeconds"}
    kept_tolerations = all(entry in (new.get("tolerations") or ()) for entry in old.get("tolerations") or ())
    if kept_tolerations and _without(new, free) == _without(old, free):
        return []
    return [Cause("FieldValueForbidden", _IMMUTABLE, "spec")]


def _check_parts(new: Obj, old: Obj) -> list[Cause]:
    known = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    causes = [
        Cause(
            "FieldValueForbidden",
            f"Forbidden: only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
            f"spec.schedulingGates[{index}].name",
        )
        for index, gate in enumerate(new.get("schedulingGates") or ())
        if gate.get("name") not in known
    ]
    if len(new.get("containers") or ()) != len(old.get("containers") or ()):
        text = "Forbidden: pod updates may not add or remove containers"
        causes.append(Cause("FieldValueForbidden", text, "spec.containers"))
    return causes


def _without(spec: Obj, fields: set[str]) -> Obj:
    rest = {key: value for key, value in spec.items() if key not in fields}
    for field in ("containers", "initContainers"):
        if rest.get(field):
            rest[field] = [{**container, "image": ""} for container in rest[field]]
    return rest
