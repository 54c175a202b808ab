"""Strategies of built-in kinds that have ways of their own.

Each mirrors the `strategy.go` of its kind in kubernetes/pkg/registry, as far as clients can see it: what a create
resets, what each endpoint may touch, which defaults an object gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.strategy import SpecStatus, Strategy, keep

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store

DEFAULT_GRACE = 30
"""Seconds; `terminationGracePeriodSeconds` of a pod that names none (core/v1 defaults)."""
NOT_READY_SECONDS = 300
"""Seconds; what the DefaultTolerationSeconds admission plug-in gives pods against not-ready and unreachable."""


class NodeStrategy(Strategy):
    """Nodes are registered with their status; they have no generation."""

    has_status = True

    def prepare_create(self, obj: Obj, store: Store) -> None:
        obj.setdefault("spec", {})
        obj.setdefault("status", {})

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        if old is None:
            return []
        before = (old.get("spec") or {}).get("providerID", "")
        after = (new.get("spec") or {}).get("providerID", "")
        if before and before != after:
            return [
                Cause(
                    "FieldValueForbidden",
                    "Forbidden: node updates may only change labels, taints, or capacity"
                    " (or configSource, if the DynamicKubeletConfig feature gate is enabled)",
                    "spec.providerID",
                )
            ]
        return []


class NamespaceStrategy(Strategy):
    has_status = True

    def prepare_create(self, obj: Obj, store: Store) -> None:
        spec = dict(obj.get("spec") or {})
        spec.setdefault("finalizers", ["kubernetes"])
        obj["spec"] = spec
        obj["status"] = {"phase": "Active"}
        labels = dict(obj["metadata"].get("labels") or {})
        labels["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
        obj["metadata"]["labels"] = labels

    def prepare_update(self, new: Obj, old: Obj) -> None:
        keep(new, old, "spec")
        keep(new, old, "status")


class PodStrategy(Strategy):
    """Pods start Pending, are bound by a subresource, and end in two steps: told to stop, then gone."""

    has_status = True
    generation = True
    returns_deleted = True

    def prepare_create(self, obj: Obj, store: Store) -> None:
        obj["spec"] = default_pod_spec(obj.get("spec") or {}, store)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}

    def prepare_status(self, new: Obj, old: Obj) -> None:
        keep(new, old, "spec")
        keep(new["metadata"], old["metadata"], "ownerReferences")
        qos = (old.get("status") or {}).get("qosClass")
        if qos and "qosClass" not in (new.get("status") or {}):
            new["status"] = {**(new.get("status") or {}), "qosClass": qos}

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        spec = new.get("spec") or {}
        if old is None:
            if not spec.get("containers"):
                return [Cause("FieldValueRequired", "Required value", "spec.containers")]
            return []
        before = (old.get("spec") or {}).get("nodeName", "")
        if subresource == "" and before != spec.get("nodeName", ""):
            message = (
                "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
                "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to"
                " existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was"
                " previously negative)"
            )
            return [Cause("FieldValueForbidden", message, "spec")]
        return []

    def grace(self, obj: Obj, asked: int | None) -> int | None:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        period = asked
        if period is None:
            period = spec.get("terminationGracePeriodSeconds")
            period = DEFAULT_GRACE if period is None else int(period)
        if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
            return 0
        return max(period, 0) if period >= 0 else 1


class JobStrategy(SpecStatus):
    """The API server, not the controller, gives a Job its selector and its pods the matching labels."""

    def prepare_create(self, obj: Obj, store: Store) -> None:
        super().prepare_create(obj, store)
        spec = dict(obj.get("spec") or {})
        for field, value in (("parallelism", 1), ("completions", None), ("backoffLimit", 6)):
            if value is not None:
                spec.setdefault(field, value)
        if "parallelism" not in (obj.get("spec") or {}) and "completions" not in (obj.get("spec") or {}):
            spec["completions"] = 1
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("manualSelector", False)
        if not spec["manualSelector"]:
            self._own_selector(obj, spec)
        obj["spec"] = spec
        obj["status"] = {}

    @staticmethod
    def _own_selector(obj: Obj, spec: Obj) -> None:
        uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
        template = dict(spec.get("template") or {})
        metadata = dict(template.get("metadata") or {})
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            "controller-uid": uid,
            "job-name": name,
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
        }
        template["metadata"] = metadata
        spec["template"] = template
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


class LeaseStrategy(Strategy):
    create_on_update = True


class EventStrategy(Strategy):
    create_on_update = True


class ServiceAccountStrategy(Strategy):
    returns_deleted = True


def default_pod_spec(spec: Obj, store: Store) -> Obj:
    """The defaults clients rely on: restart policy, grace, scheduler, tolerations, priority."""
    spec = dict(spec)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", DEFAULT_GRACE)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
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


SYSTEM_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
"""Classes every cluster has (scheduling/v1)."""


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
