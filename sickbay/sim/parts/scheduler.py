"""The scheduler: binds pending pods to nodes that they fit on.

It filters by resources, taints, cordons, nodeSelector and required node affinity, and prefers nodes without
PreferNoSchedule taints, then the emptiest, then the first by name. Absent: preemption, pod affinity, topology spread.

Its cache of Nodes is as new as the API server, unless `behind` says by how many seconds a change of a Node reaches it
late: what a client has seen the API server accept, a real scheduler need not have seen yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sickbay.api import quantity
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.clock import rfc3339
from sickbay.sim.hand import NODES, PODS, condition_of, with_condition
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.taints import fits_affinity, taints_of, untolerated
from sickbay.sim.stage import Stage

UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_ENDED = ("Succeeded", "Failed")


def requests_of(pod: Obj) -> dict[str, float]:
    """What a pod takes of its node: the sum of its containers' requests (limits where there are none), and one pod."""
    total: dict[str, float] = {"pods": 1.0}
    for container in (pod.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            total[name] = total.get(name, 0.0) + float(quantity.parse(amount))
    return total


class Scheduler(Part):
    """Keys are `namespace/name` of pods."""

    name = "scheduler"
    user = "system:kube-scheduler"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._taken: dict[str, dict[str, dict[str, float]]] = {}
        self._pending: dict[str, None] = {}
        self.behind: Callable[[], float] | None = None
        self._late: dict[str, Obj | None] = {}
        """Nodes as they were before a change that is still on its way here."""

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == NODES:
            return self._node_changed(write) if _matters(write) else ()
        if write.resource != PODS:
            return ()
        self._account(write)
        key = f"{write.namespace}/{write.name}"
        if write.new is None or (write.new.get("status") or {}).get("phase") in _ENDED:
            self._pending.pop(key, None)
            return tuple(self._pending)  # room has become free
        if not (write.new.get("spec") or {}).get("nodeName"):
            self._pending[key] = None
            return (key,)
        self._pending.pop(key, None)
        return ()

    def _node_changed(self, write: Write) -> Iterable[str]:
        if self.behind is None:
            return tuple(self._pending)
        self._late.setdefault(write.name, write.old)
        self.stage.loop.call_later(self.behind(), self._catch_up, write.name)
        return ()

    def _catch_up(self, node: str) -> None:
        self._late.pop(node, None)
        for key in self._pending:
            self.wake(key)

    def _nodes(self) -> list[Obj]:
        """The Nodes as they are known here."""
        nodes = [self._late.get(node["metadata"]["name"], node) for node in self.store.list(NODES)]
        return [node for node in nodes if node is not None]

    def _account(self, write: Write) -> None:
        key = f"{write.namespace}/{write.name}"
        for pod in (write.old, write.new):
            node = "" if pod is None else (pod.get("spec") or {}).get("nodeName", "")
            if node:
                self._taken.setdefault(node, {}).pop(key, None)
        new = write.new
        if new is None or (new.get("status") or {}).get("phase") in _ENDED:
            return
        node = (new.get("spec") or {}).get("nodeName", "")
        if node:
            self._taken.setdefault(node, {})[key] = requests_of(new)

    def step(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        pod = self.store.find(PODS, name, namespace)
        if pod is None or pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            self._pending.pop(key, None)
            return None
        if pod["spec"].get("schedulerName", "default-scheduler") != "default-scheduler":
            return None
        if pod["spec"].get("schedulingGates"):
            return None
        nodes = self._nodes()
        refusals = {node["metadata"]["name"]: self._refusal(pod, node) for node in nodes}
        fitting = [node for node in nodes if not refusals[node["metadata"]["name"]]]
        if not fitting:
            self._mark_unschedulable(pod, list(refusals.values()))
            return None
        best = min(fitting, key=lambda node: self._rank(pod, node))
        self.hand.bind(name, namespace, best["metadata"]["name"], pod["metadata"]["uid"])
        return None

    def _refusal(self, pod: Obj, node: Obj) -> str:
        """Why the pod cannot run there; empty when it can."""
        spec = pod["spec"]
        taints = taints_of(node)
        if (node.get("spec") or {}).get("unschedulable"):
            taints = [*taints, UNSCHEDULABLE_TAINT]
        if untolerated(spec, taints, ("NoSchedule", "NoExecute")):
            return "had untolerated taint(s)"
        if not fits_affinity(spec, node):
            return "didn't match Pod's node affinity/selector"
        free = self._free(node)
        for resource, amount in requests_of(pod).items():
            if amount > free.get(resource, 0.0):
                return f"Insufficient {resource}"
        return ""

    def _free(self, node: Obj) -> dict[str, float]:
        free = {
            name: float(quantity.parse(amount))
            for name, amount in ((node.get("status") or {}).get("allocatable") or {}).items()
        }
        for taken in self._taken.get(node["metadata"]["name"], {}).values():
            for resource, amount in taken.items():
                free[resource] = free.get(resource, 0.0) - amount
        return free

    def _rank(self, pod: Obj, node: Obj) -> tuple[int, int, float, int, str]:
        avoid = untolerated(pod["spec"], taints_of(node), ("PreferNoSchedule",))
        free = self._free(node)
        name = node["metadata"]["name"]
        load = len(self._taken.get(name, {}))
        return (1 if avoid else 0, 0, -free.get("nvidia.com/gpu", 0.0), load, _natural(name))

    def _mark_unschedulable(self, pod: Obj, refusals: list[str]) -> None:
        counts = {why: refusals.count(why) for why in dict.fromkeys(refusals)}
        why = ", ".join(f"{count} node(s) {text}" for text, count in sorted(counts.items()))
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"0/{len(refusals)} nodes are available: {why or 'no nodes'}.",
            "lastTransitionTime": rfc3339(self.clock.now()),
        }
        if condition_of(pod, "PodScheduled").get("message") == condition["message"]:
            return
        meta = pod["metadata"]
        conditions = with_condition((pod.get("status") or {}).get("conditions") or [], condition)
        self.hand.merge(PODS, meta["name"], {"status": {"conditions": conditions}}, meta["namespace"], "status")


def _matters(write: Write) -> bool:
    """Heartbeats make no room."""
    if write.old is None or write.new is None:
        return True
    old, new = write.old, write.new
    return bool(
        old.get("spec") != new.get("spec")
        or old["metadata"].get("labels") != new["metadata"].get("labels")
        or (old.get("status") or {}).get("allocatable") != (new.get("status") or {}).get("allocatable")
    )


def _natural(name: str) -> str:
    """Sorts train-2 before train-10."""
    head, _, tail = name.rpartition("-")
    return f"{head}-{int(tail):08d}" if tail.isdecimal() else name
