"""The node lifecycle controller and the taint evictor.

A node whose kubelet has not been heard of for the grace period turns Unknown, by what this controller itself observed
and never by times in objects. Conditions become taints, those that end pods one node after the other (`disruptions`);
pods that do not tolerate a NoExecute taint, or no longer, are deleted. Cordons become the `unschedulable` taint.
"""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.clock import rfc3339
from sickbay.sim.hand import NODES, PODS, Hand, condition_of, with_condition
from sickbay.sim.machine import Machine
from sickbay.sim.parts.base import NODE_CONTROLLER, Part, pod_key
from sickbay.sim.parts.disruptions import Disruptions
from sickbay.sim.parts.kubelet import LEASE_SECONDS
from sickbay.sim.parts.taints import taints_of, tolerates
from sickbay.sim.stage import Stage

SILENT_SECONDS = 45.0
"""Of a kubelet until its node turns Unknown. --node-monitor-grace-period was 40 s and is 50 s, looked at every 5 s."""

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
OWN_TAINTS = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)


class NodeLifecycle(Part):
    """Keys are node names."""

    name = "node-controller"
    user = NODE_CONTROLLER

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._heard: dict[str, float] = {}
        self._disruptions = Disruptions()

    def adopt(self, machine: Machine) -> None:
        """Watch a machine: a heartbeat that stays away is no write."""
        machine.listeners.append(lambda what: self.wake(machine.name))

    def heeds(self) -> Iterable[str]:
        return (NODES,)

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource != NODES:
            return ()
        if write.verb == "create" or write.user.startswith("system:node:"):
            self._heard[write.name] = self.clock.monotonic()
        if self._disruptions.note(write.name, write.new):
            return (write.name, *self._disruptions.unready())
        return (write.name,)

    def step(self, key: str) -> float | None:
        node = self.store.find(NODES, key)
        if node is None:
            return None
        silent = self._silent(key)
        if silent is not None and silent >= SILENT_SECONDS:
            node = self._mark_unknown(key, node)
            self._unready_pods(key)
        again = self._taint(key, node)
        return SILENT_SECONDS - silent if silent is not None and silent < SILENT_SECONDS else again

    def _silent(self, name: str) -> float | None:
        """Seconds since the kubelet was last heard of; None while it works: its heartbeats are taken as read."""
        now, machine = self.clock.monotonic(), self.stage.machines.get(name)
        heard = self._heard.setdefault(name, now)
        if machine is None:
            return now - heard
        if machine.beating_until is None:
            return None
        # The last of its heartbeats was up to one period before it fell silent.
        last = machine.beating_until - machine.beating_until % LEASE_SECONDS
        return now - max(heard, last)

    def _mark_unknown(self, name: str, node: Obj) -> Obj:
        known = [
            c
            for c in (node.get("status") or {}).get("conditions") or ()
            if c["type"] in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure") and c["status"] != "Unknown"
        ]
        if not known:
            return node
        now = rfc3339(self.clock.now())
        unknown = [
            {
                "type": c["type"],
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastHeartbeatTime": c.get("lastHeartbeatTime"),
                "lastTransitionTime": now,
            }
            for c in known
        ]
        return self.hand.strategic(NODES, name, {"status": {"conditions": unknown}}, subresource="status")

    def _unready_pods(self, node: str) -> None:
        for pod in self.store.list(PODS, fields=f"spec.nodeName={node}"):
            ready = condition_of(pod, "Ready")
            if ready.get("status") != "True":
                continue
            meta = pod["metadata"]
            changed = {**ready, "status": "False", "lastTransitionTime": rfc3339(self.clock.now())}
            conditions = with_condition(pod["status"]["conditions"], changed)
            self.hand.merge(PODS, meta["name"], {"status": {"conditions": conditions}}, meta["namespace"], "status")

    def _taint(self, name: str, node: Obj) -> float | None:
        """Returns the seconds after which the node may be given up, where it may not yet."""
        present = taints_of(node)
        wanted, wait = self._taints_wanted(name, node, present)
        kept = [t for t in present if t["key"] not in OWN_TAINTS or (t["key"], t["effect"]) in wanted]
        have = {(t["key"], t["effect"]) for t in kept}
        added: list[Obj] = [{"key": key, "effect": effect} for key, effect in wanted if (key, effect) not in have]
        for taint in added:
            if taint["effect"] == "NoExecute" or taint["key"] == UNSCHEDULABLE:
                taint["timeAdded"] = rfc3339(self.clock.now())
        if added or len(kept) != len(present):
            self.hand.merge(NODES, name, {"spec": {"taints": [*kept, *added] or None}})
        return wait

    def _taints_wanted(self, name: str, node: Obj, present: list[Obj]) -> tuple[list[tuple[str, str]], float | None]:
        ready = condition_of(node, "Ready").get("status", "Unknown")
        wanted: list[tuple[str, str]] = []
        wait: float | None = None
        if ready != "True":
            key = NOT_READY if ready == "False" else UNREACHABLE
            wanted.append((key, "NoSchedule"))
            given_up, wait = self._given_up(name, present)
            wanted += [(key, "NoExecute")] if given_up else []
        if (node.get("spec") or {}).get("unschedulable"):
            wanted.append((UNSCHEDULABLE, "NoSchedule"))
        return wanted, wait

    def _given_up(self, name: str, present: list[Obj]) -> tuple[bool, float | None]:
        """Whether its pods shall go; otherwise after how many seconds to ask again."""
        if any(t["effect"] == "NoExecute" and t["key"] in (NOT_READY, UNREACHABLE) for t in present):
            return not self._disruptions.total, None
        now = self.clock.monotonic()
        wait = self._disruptions.wait(name, now)
        if wait is None or wait > 0:
            return False, wait
        self._disruptions.given_up(name, now)
        return True, None


class TaintEviction(Part):
    """Deletes pods that do not tolerate a NoExecute taint of their node. Keys are `namespace/name` of pods."""

    name = "taint-eviction-controller"
    user = NODE_CONTROLLER

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._since: dict[str, float] = {}
        """Since when a pod bears its taints for a while only, as seen here: `timeAdded` is not asked."""

    def heeds(self) -> Iterable[str]:
        return (NODES, PODS)

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == PODS:
            return (f"{write.namespace}/{write.name}",)
        if write.resource != NODES or write.new is None:
            return ()
        if write.old is not None and taints_of(write.old) == taints_of(write.new):
            return ()
        return [pod_key(p["metadata"]) for p in self.store.list(PODS, fields=f"spec.nodeName={write.name}")]

    def step(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        pod = self.store.find(PODS, name, namespace)
        left = None if pod is None or pod["metadata"].get("deletionTimestamp") else self._seconds_left(key, pod)
        if pod is None or left is None:
            self._since.pop(key, None)
            return None
        if left > 0:
            return left
        self._since.pop(key, None)
        self._mark(pod)
        self.hand.discard(PODS, name, namespace, uid=pod["metadata"]["uid"])
        return None

    def _seconds_left(self, key: str, pod: Obj) -> float | None:
        """None = for ever. Of several tolerations of one taint the first counts, of several taints the strictest."""
        node = self.store.find(NODES, (pod.get("spec") or {}).get("nodeName", ""))
        limits = []
        for taint in taints_of(node) if node is not None else ():
            if taint.get("effect") != "NoExecute":
                continue
            matching = [t for t in pod["spec"].get("tolerations") or () if tolerates(t, taint)]
            if not matching:
                return 0.0
            if matching[0].get("tolerationSeconds") is not None:
                limits.append(float(matching[0]["tolerationSeconds"]))
        if not limits:
            return None
        now = self.clock.monotonic()
        return self._since.setdefault(key, now) + max(0.0, min(limits)) - now

    def _mark(self, pod: Obj) -> None:
        meta = pod["metadata"]
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": rfc3339(self.clock.now()),
        }
        conditions = with_condition((pod.get("status") or {}).get("conditions") or [], target)
        self.hand.merge(PODS, meta["name"], {"status": {"conditions": conditions}}, meta["namespace"], "status")


def node_controller(stage: Stage) -> Hand:
    """A hand of the controller that deletes Nodes whose instance is gone."""
    return Hand(stage.store, "system:serviceaccount:kube-system:cloud-node-lifecycle", "sim-cloud-controller")
