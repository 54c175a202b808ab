"""The eviction subresource: a deletion that asks the pod's disruption budget first.

After kubernetes/pkg/registry/core/pod/rest/eviction.go, texts included: kubectl and drain controllers show them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sickbay.apiserver.deletion import DeleteOptions, check_preconditions
from sickbay.apiserver.errors import Obj, StatusError, forbidden, internal, too_many_requests
from sickbay.apiserver.selectors import selector_matches
from sickbay.apiserver.writes import Write
from sickbay.clock import rfc3339

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store

BUDGETS = "poddisruptionbudgets.policy"
MAX_DISRUPTED = 2000
"""Evictions that may stand unconfirmed by the disruption controller in one budget (upstream's MaxDisruptedPodSize)."""
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(store: Store, write: Write, options: DeleteOptions) -> None:
    """Raises StatusError: 404, 409, 429 when the budget is used up, 500 when two budgets select the pod."""
    kind = store.type("pods")
    pod = store.get("pods", write.name, write.namespace)
    if not _ends_anyway(pod):
        budget = _budget_of(store, pod)
        if budget is not None and not _unhealthy_may_go(pod, budget):
            _take(store, budget, pod, options.dry_run)
    # Upstream looks at the preconditions only now: a wrong UID costs the budget one disruption.
    check_preconditions(kind, pod, options)
    if not options.dry_run:
        pod = _mark_disrupted(store, pod)
    store.deletion.delete(kind, write, replace(options, uid=pod["metadata"]["uid"], resource_version=""))


def _ends_anyway(pod: Obj) -> bool:
    """Pods that count for no budget: ended, not started, or on their way out."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


def is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions)


def _budget_of(store: Store, pod: Obj) -> Obj | None:
    meta = pod["metadata"]
    labels = meta.get("labels") or {}
    matching = [
        budget
        for budget in store.list(BUDGETS, meta["namespace"])
        if selector_matches((budget.get("spec") or {}).get("selector"), labels)
    ]
    if len(matching) > 1:
        raise internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    return matching[0] if matching else None


def _unhealthy_may_go(pod: Obj, budget: Obj) -> bool:
    """A pod that is not ready adds nothing to the budget's healthy ones."""
    if is_ready(pod):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _blocked(budget: Obj, message: str, retry_after: int) -> StatusError:
    cause = {"reason": "DisruptionBudget", "message": message}
    return too_many_requests(_VIOLATES, retry_after, [cause])


def _take(store: Store, budget: Obj, pod: Obj, dry_run: bool) -> None:
    """Take one disruption from the budget, or refuse."""
    meta, status = budget["metadata"], budget.get("status") or {}
    name = meta["name"]
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        raise _blocked(budget, f"The disruption budget {name} is still being processed by the server.", 10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden("poddisruptionbudget", name, "pdb disruptions allowed is negative")
    disrupted = dict(status.get("disruptedPods") or {})
    if len(disrupted) > MAX_DISRUPTED:
        raise forbidden(
            "poddisruptionbudget",
            name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )
    if allowed == 0:
        raise _blocked(
            budget,
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has"
            f" {status.get('currentHealthy', 0)} currently",
            0,
        )
    if dry_run:
        return
    disrupted[pod["metadata"]["name"]] = rfc3339(store.clock.now())
    taken = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    if allowed == 1:
        taken["conditions"] = _insufficient(status.get("conditions") or [], meta, rfc3339(store.clock.now()))
    store.put(store.type(BUDGETS), {**budget, "status": taken})


def _insufficient(conditions: list[Obj], meta: Obj, now: str) -> list[Obj]:
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": meta.get("generation", 0),
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    }
    return [*(entry for entry in conditions if entry.get("type") != "DisruptionAllowed"), condition]


def _mark_disrupted(store: Store, pod: Obj) -> Obj:
    status = pod.get("status") or {}
    if any(entry.get("type") == "DisruptionTarget" for entry in status.get("conditions") or ()):
        return pod
    others = [entry for entry in status.get("conditions") or () if entry.get("type") != "DisruptionTarget"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": rfc3339(store.clock.now()),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    marked = {**pod, "status": {**status, "conditions": [*others, condition]}}
    return store.put(store.type("pods"), marked)
