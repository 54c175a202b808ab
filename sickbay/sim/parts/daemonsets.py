"""The DaemonSet controller: one pod on every node it may run on, cordoned ones included."""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.sim.hand import DAEMON_SETS, NODES, PODS
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.owned import ENDED, is_ready, key_of_owner, own_pods, phase_of, pod_from
from sickbay.sim.parts.taints import fits_affinity, taints_of, untolerated

_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""What the controller adds to every pod it makes (util.AddOrUpdateDaemonPodTolerations)."""


class DaemonSets(Part):
    """Keys are `namespace/name`."""

    name = "daemon-set-controller"

    def heeds(self) -> Iterable[str]:
        return (DAEMON_SETS, PODS, NODES)

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == DAEMON_SETS:
            return (f"{write.namespace}/{write.name}",)
        if write.resource == PODS:
            return [k for k in {key_of_owner(write.old, "DaemonSet"), key_of_owner(write.new, "DaemonSet")} if k]
        if write.resource != NODES or not _matters(write):
            return ()
        return [f"{d['metadata']['namespace']}/{d['metadata']['name']}" for d in self.store.list(DAEMON_SETS)]

    def step(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        daemon_set = self.store.find(DAEMON_SETS, name, namespace)
        if daemon_set is None or daemon_set["metadata"].get("deletionTimestamp"):
            return None
        spec = _tolerant(daemon_set["spec"]["template"].get("spec") or {})
        nodes = {node["metadata"]["name"]: node for node in self.store.list(NODES)}
        by_node: dict[str, list[Obj]] = {}
        for pod in own_pods(self.store, daemon_set):
            by_node.setdefault(_target(pod), []).append(pod)
        for node_name, pods in by_node.items():
            node = nodes.get(node_name)
            if node is None or not _may_stay(spec, node):
                self._delete(pods)
            else:
                self._delete([pod for pod in pods if phase_of(pod) in ENDED])
        wanted = [name for name, node in nodes.items() if _may_run(spec, node)]
        for node_name in wanted:
            if not by_node.get(node_name):
                self._create(daemon_set, spec, node_name)
        self._report(daemon_set, wanted)
        return None

    def _create(self, daemon_set: Obj, spec: Obj, node: str) -> None:
        pod = pod_from(daemon_set["spec"]["template"], daemon_set)
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        pod["spec"] = {**spec, "affinity": {**(spec.get("affinity") or {}), "nodeAffinity": required}}
        pod["metadata"]["name"] = f"{daemon_set['metadata']['name']}-{self.stage.randomness.hex(5)}"
        self.hand.create(PODS, pod, daemon_set["metadata"]["namespace"])

    def _delete(self, pods: list[Obj]) -> None:
        for pod in pods:
            meta = pod["metadata"]
            if not meta.get("deletionTimestamp"):
                self.hand.discard(PODS, meta["name"], meta["namespace"], uid=meta["uid"])

    def _report(self, daemon_set: Obj, wanted: list[str]) -> None:
        pods = own_pods(self.store, daemon_set)
        ready = sum(1 for pod in pods if is_ready(pod))
        status = {
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len({_target(pod) for pod in pods} & set(wanted)),
            "numberReady": ready,
            "numberAvailable": ready,
            "numberUnavailable": len(wanted) - ready,
            "numberMisscheduled": 0,
            "observedGeneration": daemon_set["metadata"].get("generation", 0),
        }
        if status != daemon_set.get("status"):
            meta = daemon_set["metadata"]
            self.hand.merge(DAEMON_SETS, meta["name"], {"status": status}, meta["namespace"], "status")


def _matters(write: Write) -> bool:
    if write.old is None or write.new is None:
        return True
    old, new = write.old, write.new
    labels_differ = old["metadata"].get("labels") != new["metadata"].get("labels")
    return bool(labels_differ or old.get("spec") != new.get("spec"))


def _tolerant(spec: Obj) -> Obj:
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED]
    return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *added]}


def _target(pod: Obj) -> str:
    """The node a pod is on or made for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def _may_run(spec: Obj, node: Obj) -> bool:
    return fits_affinity(spec, node) and not untolerated(spec, taints_of(node), ("NoSchedule", "NoExecute"))


def _may_stay(spec: Obj, node: Obj) -> bool:
    return fits_affinity(spec, node) and not untolerated(spec, taints_of(node), ("NoExecute",))
