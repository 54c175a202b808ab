"""ReplicaSets and StatefulSets: so many pods, replaced elsewhere when one goes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.sim.hand import PODS, REPLICA_SETS, STATEFUL_SETS
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.owned import (
    ENDED,
    is_active,
    is_ready,
    key_of_owner,
    own_pods,
    phase_of,
    pod_from,
)

POD_INDEX, POD_NAME = "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"


def replicas_of(obj: Obj) -> int:
    wanted = (obj.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


class _PodsOwner(Part):
    """A controller whose keys are `namespace/name` of one kind, woken by its pods."""

    resource = ""
    kind = ""

    def heeds(self) -> Iterable[str]:
        return (self.resource, PODS)

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

    @abstractmethod
    def fill(self, owner: Obj, pods: list[Obj]) -> None:
        """Bring the pods to the number and the template that the owner asks for."""

    def delete(self, pod: Obj) -> None:
        meta = pod["metadata"]
        self.hand.discard(PODS, meta["name"], meta["namespace"], uid=meta["uid"])


class ReplicaSets(_PodsOwner):
    name = "replicaset-controller"
    resource = REPLICA_SETS
    kind = "ReplicaSet"

    def fill(self, owner: Obj, pods: list[Obj]) -> None:
        active = [pod for pod in pods if is_active(pod)]
        for _ in range(replicas_of(owner) - len(active)):
            pod = pod_from(owner["spec"]["template"], owner)
            pod["metadata"]["name"] = f"{owner['metadata']['name']}-{self.stage.randomness.hex(5)}"
            self.hand.create(PODS, pod, owner["metadata"]["namespace"])
        # Pods that do not run go first, as upstream ranks them.
        for pod in sorted(active, key=is_ready)[: max(0, len(active) - replicas_of(owner))]:
            self.delete(pod)


class StatefulSets(_PodsOwner):
    """Pods in order; one that is going keeps its name until it is gone."""

    name = "statefulset-controller"
    resource = STATEFUL_SETS
    kind = "StatefulSet"

    def fill(self, owner: Obj, pods: list[Obj]) -> None:
        name, namespace = owner["metadata"]["name"], owner["metadata"]["namespace"]
        present = {pod["metadata"]["name"]: pod for pod in pods}
        for ordinal in range(replicas_of(owner)):
            pod = present.get(f"{name}-{ordinal}")
            if pod is not None and phase_of(pod) in ENDED:
                self.delete(pod)
                return
            if pod is None:
                marks = {POD_INDEX: str(ordinal), POD_NAME: f"{name}-{ordinal}"}
                made = pod_from(owner["spec"]["template"], owner, marks)
                made["metadata"]["name"] = f"{name}-{ordinal}"
                self.hand.create(PODS, made, namespace)
                return
            if not is_ready(pod):
                return  # one after the other
        for pod_name, pod in sorted(present.items(), reverse=True):
            if int(pod_name.rpartition("-")[2]) >= replicas_of(owner) and is_active(pod):
                self.delete(pod)
                return
