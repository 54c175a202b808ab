"""Which disruption budgets hold a pod, and whether they can ever let it go."""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.api.core import Pod, PodDisruptionBudget


def covering(pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> list[PodDisruptionBudget]:
    return [budget for budget in budgets if budget.selects(pod)]


def never_allows(budget: PodDisruptionBudget) -> bool:
    """True when the budget, as it is written, allows no disruption however healthy its pods are.

    `maxUnavailable: 0`, `minAvailable: 100%`, or `minAvailable` of at least as many pods as there are: waiting for
    such a budget is waiting for ever.
    """
    spec, expected = budget.spec, budget.status.expected_pods
    if spec.max_unavailable is not None:
        return str(spec.max_unavailable) in ("0", "0%")
    if spec.min_available is None:
        return False
    if str(spec.min_available) == "100%":
        return True
    return isinstance(spec.min_available, int) and expected > 0 and spec.min_available >= expected


def kept_although_unready(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """True when the pod is not ready, so that the budget gains nothing by it, and the budget keeps such pods too."""
    ready = pod.condition("Ready")
    is_ready = ready is not None and ready.status == "True"
    return not is_ready and budget.spec.unhealthy_pod_eviction_policy != "AlwaysAllow"
