"""The disruption controller: keeps the status of PodDisruptionBudgets, which the eviction API takes from.

After kubernetes/pkg/controller/disruption: expected pods come from the controllers' replicas where the budget is a
percentage or a maxUnavailable, else from the pods there are; a pod that was evicted and is still there counts as
unhealthy for two minutes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.selectors import selector_matches
from sickbay.apiserver.writes import Write
from sickbay.clock import parse_time, rfc3339
from sickbay.sim.hand import BUDGETS, PODS, condition_of, labels_of, with_condition
from sickbay.sim.parts.base import Part

DELETION_TIMEOUT = 120.0
"""Seconds after which an eviction that led to no deletion no longer counts (upstream's DeletionTimeout)."""

_SCALED = {
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "Deployment": "deployments.apps",
    "ReplicationController": "replicationcontrollers",
}


class Disruption(Part):
    """Keys are `namespace/name` of budgets."""

    name = "disruption-controller"

    def heeds(self) -> Iterable[str]:
        return (BUDGETS, PODS, *_SCALED.values())

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == BUDGETS:
            return (f"{write.namespace}/{write.name}",)
        if write.resource != PODS and write.resource not in _SCALED.values():
            return ()
        return [f"{write.namespace}/{b['metadata']['name']}" for b in self.store.list(BUDGETS, write.namespace)]

    def step(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        budget = self.store.find(BUDGETS, name, namespace)
        if budget is None:
            return None
        selector = (budget.get("spec") or {}).get("selector")
        pods = [p for p in self.store.list(PODS, namespace) if selector_matches(selector, labels_of(p))]
        live = [p for p in pods if (p.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
        disrupted, again = self._disrupted(budget, pods)
        healthy = sum(1 for p in live if _healthy(p) and p["metadata"]["name"] not in disrupted)
        expected, desired = self._counts(budget["spec"], live)
        self._write(budget, max(0, healthy - desired), healthy, desired, expected, disrupted)
        return again

    def _disrupted(self, budget: Obj, pods: list[Obj]) -> tuple[dict[str, str], float | None]:
        names = {p["metadata"]["name"] for p in pods if not p["metadata"].get("deletionTimestamp")}
        kept, again = {}, None
        for name, since in ((budget.get("status") or {}).get("disruptedPods") or {}).items():
            left = DELETION_TIMEOUT - (self.clock.now() - parse_time(since)).total_seconds()
            if name in names and left > 0:
                kept[name] = since
                again = left if again is None else min(again, left)
        return kept, again

    def _counts(self, spec: Obj, pods: list[Obj]) -> tuple[int, int]:
        """Pods expected, and how many of them must be healthy."""
        if spec.get("maxUnavailable") is not None:
            expected = self._scale(pods)
            return expected, max(0, expected - _amount(spec["maxUnavailable"], expected))
        least = spec.get("minAvailable")
        if isinstance(least, str) and least.endswith("%"):
            expected = self._scale(pods)
            return expected, _amount(least, expected)
        return len(pods), int(least or 0)

    def _scale(self, pods: list[Obj]) -> int:
        """The replicas that the pods' controllers want; a pod whose controller has no scale counts for itself."""
        wanted: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            resource = _SCALED.get(owner.get("kind", "")) if owner else None
            found = self.store.find(resource, owner["name"], pod["metadata"]["namespace"]) if resource else None
            if found is None:
                wanted[pod["metadata"]["uid"]] = 1
            else:
                wanted[found["metadata"]["uid"]] = int((found.get("spec") or {}).get("replicas", 1))
        return sum(wanted.values())

    def _write(
        self, budget: Obj, allowed: int, healthy: int, desired: int, expected: int, disrupted: dict[str, str]
    ) -> None:
        meta, old = budget["metadata"], budget.get("status") or {}
        condition = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
            "observedGeneration": meta.get("generation", 0),
            "lastTransitionTime": rfc3339(self.clock.now()),
        }
        before = condition_of(budget, "DisruptionAllowed")
        if before.get("status") == condition["status"]:
            condition["lastTransitionTime"] = before.get("lastTransitionTime")
        status = {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "observedGeneration": meta.get("generation", 0),
            "conditions": with_condition(old.get("conditions") or [], condition),
        }
        gone = dict.fromkeys(old.get("disruptedPods") or {})
        patch = {**status, "disruptedPods": {**gone, **disrupted}}
        if {**old, **status, "disruptedPods": disrupted or None} != {**old, "disruptedPods": old.get("disruptedPods")}:
            self.hand.merge(BUDGETS, meta["name"], {"status": patch}, meta["namespace"], "status")


def _healthy(pod: Obj) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and condition_of(pod, "Ready").get("status") == "True"


def _amount(value: int | str, total: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return math.ceil(int(value[:-1]) * total / 100)
    return int(value)


def controller_of(obj: Obj) -> Obj:
    """The owner reference of the controller, or an empty dict."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})
