"""Hollow kubelets: they show their machines to the API server.

One part serves all nodes. A kubelet renews its Lease every 10 s and posts its status every 5 min and at each change,
as the real one does. It registers its Node when it starts: an object that is deleted under a running kubelet stays
away until the next start. A kubelet that is down, hung or stopped posts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.renewal import renewed
from sickbay.apiserver.writes import Write
from sickbay.clock import rfc3339, rfc3339_micro
from sickbay.sim.hand import LEASES, NODES, Hand, condition_of
from sickbay.sim.machine import Machine
from sickbay.sim.parts.base import Part
from sickbay.sim.stage import Stage

GPU = "nvidia.com/gpu"
LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 10.0
"""nodeLeaseDurationSeconds / 4."""
STATUS_SECONDS = 300.0
"""nodeStatusReportFrequency."""
VERSION = "v1.34.1"

_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


class Kubelets(Part):
    """Keys are node names."""

    name = "kubelet"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._hands: dict[str, Hand] = {}
        self._renewed: dict[str, float] = {}
        self._posted: dict[str, float] = {}
        self._silent_until: dict[str, float] = {}
        self._shown: dict[str, Obj] = {}
        """The Nodes that show their machines as they are: while neither changes there is nothing to post."""

    # --- registration

    def register(self, machine: Machine, labels: dict[str, str], taints: Iterable[Obj], provider_id: str) -> Obj:
        """Create the Node of a machine whose kubelet starts; Ready follows with its first report."""
        name = machine.name
        self._hands[name] = Hand(self.store, f"system:node:{name}", "sim-kubelet", ("system:nodes",))
        not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        node: Obj = {
            "metadata": {
                "name": name,
                "labels": {**_own_labels(machine), **labels},
                "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            },
            "spec": {"providerID": provider_id, "taints": [*taints, not_ready]},
            "status": self._status(machine, {}, ready=False),
        }
        created = self._hands[name].create(NODES, node)
        self._posted.pop(name, None)
        return created

    def silence(self, name: str, seconds: float) -> None:
        """The kubelet of this node posts nothing for so long: it is still starting."""
        self._silent_until[name] = self.clock.monotonic() + seconds
        self.wake(name)

    def adopt(self, machine: Machine) -> None:
        """Watch a machine for changes of what its kubelet reports."""
        machine.listeners.append(lambda what: self._changed(machine.name))
        self.wake(machine.name)

    def _changed(self, name: str) -> None:
        self._shown.pop(name, None)
        self.wake(name)

    # --- heartbeats

    def heeds(self) -> Iterable[str]:
        return (NODES,)

    def touched(self, write: Write) -> Iterable[str]:
        # Only the appearance of a Node matters: everything else in it is for others, or our own doing.
        return (write.name,) if write.resource == NODES and write.verb == "create" else ()

    def step(self, key: str) -> float | None:
        machine = self.stage.machines.get(key)
        if machine is None or not machine.kubelet_works:
            return None
        now = self.clock.monotonic()
        if now < self._silent_until.get(key, 0.0):
            return self._silent_until[key] - now
        node = self.store.find(NODES, key)
        if node is None:
            return None
        self._post(machine, node, now)
        lease_seconds = LEASE_SECONDS * self.stage.pace
        if now - self._renewed.get(key, -lease_seconds) >= lease_seconds:
            self._renew(machine, node)
            self._renewed[key] = now
        return min(self._renewed[key] + lease_seconds, self._posted[key] + STATUS_SECONDS * self.stage.pace) - now

    def _post(self, machine: Machine, node: Obj, now: float) -> None:
        period = STATUS_SECONDS * self.stage.pace
        due = now - self._posted.get(machine.name, -period) >= period
        if not due and self._shown.get(machine.name) is node:
            return
        status = self._status(machine, node.get("status") or {}, machine.runtime_works)
        if not due and not _differs(status, node.get("status") or {}):
            self._shown[machine.name] = node
            return
        self._hands[machine.name].strategic(NODES, machine.name, {"status": status}, subresource="status")
        self._posted[machine.name] = now

    def _renew(self, machine: Machine, node: Obj) -> None:
        hand, name = self._hands[machine.name], machine.name
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": int(4 * LEASE_SECONDS),
            "renewTime": rfc3339_micro(self._wall(machine)),
        }
        if self.store.find(LEASES, name, LEASE_NAMESPACE) is None:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            lease = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
            hand.create(LEASES, lease, LEASE_NAMESPACE)
        else:
            patch = {"spec": spec}
            if renewed(self.store, name, LEASE_NAMESPACE, patch, hand.caller) is None:
                hand.merge(LEASES, name, patch, LEASE_NAMESPACE)

    # --- status

    def _status(self, machine: Machine, before: Obj, ready: bool) -> Obj:
        capacity = {"cpu": "192", "memory": "2000Gi", "pods": "110", "ephemeral-storage": "7000Gi"}
        if machine.gpus:
            capacity[GPU] = str(len(machine.gpus))
        word = ("True", "KubeletReady", "kubelet is posting ready status")
        if not ready:
            word = ("False", "KubeletNotReady", "container runtime is down" if before else "kubelet is starting")
        conditions = [self._condition(machine, before, type_, "False", *text) for type_, *text in _PRESSURES]
        conditions.append(self._condition(machine, before, "Ready", *word))
        return {
            "capacity": capacity,
            "allocatable": {**capacity, **_offered(machine), **machine.allocatable},
            "conditions": conditions,
            "addresses": [
                {"type": "InternalIP", "address": _address(machine)},
                {"type": "Hostname", "address": machine.name},
            ],
            "nodeInfo": _node_info(machine),
        }

    def _wall(self, machine: Machine) -> datetime:
        """The node's own clock, which may be wrong."""
        return self.clock.now() + timedelta(seconds=machine.clock_skew)

    def _condition(self, machine: Machine, before: Obj, type_: str, status: str, reason: str, message: str) -> Obj:
        now = rfc3339(self._wall(machine))
        old = condition_of({"status": before}, type_)
        since = old.get("lastTransitionTime", now) if old.get("status") == status else now
        return {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": since,
        }


def _own_labels(machine: Machine) -> dict[str, str]:
    labels = {
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return {**labels, "nvidia.com/gpu.present": "true"} if machine.gpus else labels


def _node_info(machine: Machine) -> Obj:
    return {
        "bootID": machine.boot_id,
        "machineID": machine.serial.replace("-", "").lower(),
        "systemUUID": machine.serial,
        "kernelVersion": "6.8.0-60-generic",
        "osImage": "Ubuntu 24.04.3 LTS",
        "operatingSystem": "linux",
        "architecture": "amd64",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": VERSION,
    }


def _offered(machine: Machine) -> dict[str, str]:
    """What the device plug-in offers: every card but those it was told to keep back."""
    return {GPU: str(sum(1 for card in machine.gpus if card.uuid not in machine.isolated))} if machine.gpus else {}


def _address(machine: Machine) -> str:
    """A stable private address drawn from the name; two nodes may share one, nothing here routes by it."""
    mixed = 0
    for letter in machine.name.encode():
        mixed = (mixed * 131 + letter) % 65521
    return f"10.{mixed >> 12 & 15}.{mixed >> 6 & 63}.{mixed & 63}"


def _differs(new: Obj, old: Obj) -> bool:
    """Whether a report says anything new, times aside."""

    def meaning(status: Obj) -> Any:
        own = {condition["type"] for condition in new["conditions"]}
        conditions = {
            c["type"]: (c.get("status"), c.get("reason"), c.get("message"))
            for c in status.get("conditions") or ()
            if c["type"] in own
        }
        return conditions, status.get("allocatable"), status.get("capacity"), status.get("nodeInfo")

    return bool(meaning(new) != meaning(old))
