"""Deployments, ReplicaSets and StatefulSets: so many pods, replaced elsewhere when one goes.

Roll-outs are absent: a Deployment has one ReplicaSet, that of its present template.
"""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.sim.hand import DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS, labels_of
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.disruption import controller_of
from sickbay.sim.parts.owned import (
    ENDED,
    is_active,
    is_ready,
    key_of_owner,
    own_pods,
    phase_of,
    pod_from,
    reference_to,
)


def _replicas(obj: Obj) -> int:
    wanted = (obj.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


class _PodsOwner(Part):
    """A controller whose keys are `namespace/name` of one kind, woken by its pods."""

    resource = ""
    kind = ""

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == self.resource:
            return (f"{write.namespace}/{write.name}",)
        if write.resource != PODS:
            return ()
        return [k for k in {key_of_owner(write.old, self.kind), key_of_owner(write.new, self.kind)} if k]

    def step(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        owner = self.store.find(self.resource, name, namespace)
        if owner is None or owner["metadata"].get("deletionTimestamp"):
            return None
        self.fill(owner, own_pods(self.store, owner))
        pods = [pod for pod in own_pods(self.store, owner) if is_active(pod)]
        ready = sum(map(is_ready, pods))
        status = {
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "observedGeneration": owner["metadata"].get("generation", 0),
        }
        if status != owner.get("status"):
            self.hand.merge(self.resource, name, {"status": status}, namespace, "status")
        return None

    def fill(self, owner: Obj, pods: list[Obj]) -> None:
        raise NotImplementedError

    def delete(self, pod: Obj) -> None:
        meta = pod["metadata"]
        self.hand.discard(PODS, meta["name"], meta["namespace"], uid=meta["uid"])


class ReplicaSets(_PodsOwner):
    name = "replicaset-controller"
    resource = REPLICA_SETS
    kind = "ReplicaSet"

    def fill(self, owner: Obj, pods: list[Obj]) -> None:
        active = [pod for pod in pods if is_active(pod)]
        for _ in range(_replicas(owner) - len(active)):
            pod = pod_from(owner["spec"]["template"], owner)
            pod["metadata"]["name"] = f"{owner['metadata']['name']}-{self.stage.randomness.hex(5)}"
            self.hand.create(PODS, pod, owner["metadata"]["namespace"])
        # Pods that do not run go first, as upstream ranks them.
        for pod in sorted(active, key=is_ready)[: max(0, len(active) - _replicas(owner))]:
            self.delete(pod)


class StatefulSets(_PodsOwner):
    """Pods in order; one that is going keeps its name until it is gone."""

    name = "statefulset-controller"
    resource = STATEFUL_SETS
    kind = "StatefulSet"

    def fill(self, owner: Obj, pods: list[Obj]) -> None:
        name, namespace = owner["metadata"]["name"], owner["metadata"]["namespace"]
        present = {pod["metadata"]["name"]: pod for pod in pods}
        for ordinal in range(_replicas(owner)):
            pod = present.get(f"{name}-{ordinal}")
            if pod is not None and phase_of(pod) in ENDED:
                self.delete(pod)
                return
            if pod is None:
                made = pod_from(owner["spec"]["template"], owner, {"apps.kubernetes.io/pod-index": str(ordinal)})
                made["metadata"]["name"] = f"{name}-{ordinal}"
                self.hand.create(PODS, made, namespace)
                return
            if not is_ready(pod):
                return  # one after the other
        for pod_name, pod in sorted(present.items(), reverse=True):
            if int(pod_name.rpartition("-")[2]) >= _replicas(owner) and is_active(pod):
                self.delete(pod)
                return


class Deployments(Part):
    """Keys are `namespace/name`."""

    name = "deployment-controller"

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == DEPLOYMENTS:
            return (f"{write.namespace}/{write.name}",)
        if write.resource != REPLICA_SETS:
            return ()
        return [k for k in {key_of_owner(write.old, "Deployment"), key_of_owner(write.new, "Deployment")} if k]

    def step(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        deployment = self.store.find(DEPLOYMENTS, name, namespace)
        if deployment is None or deployment["metadata"].get("deletionTimestamp"):
            return None
        uid = deployment["metadata"]["uid"]
        own = [r for r in self.store.list(REPLICA_SETS, namespace) if controller_of(r).get("uid") == uid]
        if not own:
            own = [self._create(deployment)]
        replica_set = own[0]
        if _replicas(replica_set) != _replicas(deployment):
            scaled = {"spec": {"replicas": _replicas(deployment)}}
            self.hand.merge(REPLICA_SETS, replica_set["metadata"]["name"], scaled, namespace)
        seen = replica_set.get("status") or {}
        status = {
            "replicas": seen.get("replicas", 0),
            "readyReplicas": seen.get("readyReplicas", 0),
            "availableReplicas": seen.get("availableReplicas", 0),
            "observedGeneration": deployment["metadata"].get("generation", 0),
        }
        if status != deployment.get("status"):
            self.hand.merge(DEPLOYMENTS, name, {"status": status}, namespace, "status")
        return None

    def _create(self, deployment: Obj) -> Obj:
        meta, spec = deployment["metadata"], deployment["spec"]
        hash_label = {"pod-template-hash": self.stage.randomness.hex(10)}
        template = dict(spec["template"])
        template["metadata"] = {**(template.get("metadata") or {}), "labels": {}}
        template["metadata"]["labels"] = {**labels_of({"metadata": spec["template"]["metadata"]}), **hash_label}
        selector = {"matchLabels": {**(spec["selector"].get("matchLabels") or {}), **hash_label}}
        made = {
            "metadata": {
                "name": f"{meta['name']}-{hash_label['pod-template-hash']}",
                "labels": template["metadata"]["labels"],
                "ownerReferences": [reference_to(deployment)],
            },
            "spec": {"replicas": _replicas(deployment), "selector": selector, "template": template},
        }
        return self.hand.create(REPLICA_SETS, made, meta["namespace"])
