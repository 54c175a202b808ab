"""A hand on the API server: requests of one identity, answered on the spot.

People, other controllers and the simulated parts of Kubernetes act through it. It calls the store directly: every rule
of the API holds, but there is no wire, and between two calls nobody else runs, so what a part reads and writes in one
go is one step of the world. Our own components never use it; they go over the wire.

What it hands out is shared with the store: never change it in place.
"""

from __future__ import annotations

from typing import Any

from sickbay.apiserver.errors import Obj, StatusError
from sickbay.apiserver.store import JSON, MERGE, STRATEGIC, Store
from sickbay.apiserver.writes import Caller

NODES, PODS, LEASES, EVENTS, NAMESPACES = "nodes", "pods", "leases.coordination.k8s.io", "events", "namespaces"
JOBS, BUDGETS = "jobs.batch", "poddisruptionbudgets.policy"
JOB_SETS, SERVICES = "jobsets.jobset.x-k8s.io", "services"
DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS = "daemonsets.apps", "deployments.apps", "replicasets.apps"
STATEFUL_SETS = "statefulsets.apps"
POOLS, RULES, FAULT_TYPES = "repairpools.sickbay.dev", "repairrules.sickbay.dev", "faulttypes.sickbay.dev"
HOLDS, REPAIRS, TASKS = "holds.sickbay.dev", "noderepairs.sickbay.dev", "nodetasks.sickbay.dev"
INFRA_EVENTS, RECOVERIES = "infraevents.sickbay.dev", "jobrecoveries.sickbay.dev"

Refused = StatusError


class Hand:
    """See the module. Every call raises `Refused` (the server's own StatusError) where the server refuses."""

    def __init__(self, store: Store, user: str, user_agent: str = "", groups: tuple[str, ...] = ()) -> None:
        self.store = store
        self.caller = Caller(user, (*groups, "system:authenticated"), user_agent or user)

    def get(self, resource: str, name: str, namespace: str = "") -> Obj:
        return self.store.get(resource, name, namespace)

    def find(self, resource: str, name: str, namespace: str = "") -> Obj | None:
        return self.store.find(resource, name, namespace)

    def select(self, resource: str, namespace: str = "", labels: str = "") -> list[Obj]:
        return self.store.list(resource, namespace, labels=labels)

    def create(self, resource: str, obj: Obj, namespace: str = "") -> Obj:
        return self.store.create(resource, obj, namespace, caller=self.caller)

    def merge(self, resource: str, name: str, patch: Obj, namespace: str = "", subresource: str = "") -> Obj:
        return self._patch(resource, name, patch, MERGE, namespace, subresource)

    def strategic(self, resource: str, name: str, patch: Obj, namespace: str = "", subresource: str = "") -> Obj:
        return self._patch(resource, name, patch, STRATEGIC, namespace, subresource)

    def json(self, resource: str, name: str, patch: list[Obj], namespace: str = "", subresource: str = "") -> Obj:
        return self._patch(resource, name, patch, JSON, namespace, subresource)

    def _patch(self, resource: str, name: str, patch: Any, kind: str, namespace: str, subresource: str) -> Obj:
        return self.store.patch(resource, name, patch, kind, namespace, subresource=subresource, caller=self.caller)

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        uid: str = "",
        grace: int | None = None,
        propagation: str = "",
    ) -> None:
        self.store.delete(resource, name, namespace, uid=uid, grace=grace, propagation=propagation, caller=self.caller)

    def discard(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        uid: str = "",
        grace: int | None = None,
        propagation: str = "",
    ) -> None:
        """Delete; that it is gone already, or another object of that name, is fine too."""
        try:
            self.delete(resource, name, namespace, uid, grace, propagation)
        except Refused as error:
            if error.code not in (404, 409):
                raise

    def evict(self, name: str, namespace: str, uid: str = "") -> None:
        """Refused with code 429 where a disruption budget forbids it."""
        self.store.evict(name, namespace, uid=uid, caller=self.caller)

    def bind(self, name: str, namespace: str, node: str, uid: str = "") -> None:
        self.store.bind(name, namespace, node, uid=uid, caller=self.caller)


def labels_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def condition_of(obj: Obj, type_: str) -> Obj:
    """The condition of that type, or an empty dict."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == type_), {})


def with_condition(conditions: list[Obj], new: Obj) -> list[Obj]:
    """The conditions with `new` in the place of its type, or at the end."""
    if any(condition.get("type") == new["type"] for condition in conditions):
        return [new if condition.get("type") == new["type"] else condition for condition in conditions]
    return [*conditions, new]
