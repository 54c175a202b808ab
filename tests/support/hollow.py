"""Hollow kubelets for a real API server: they show hollow machines as Nodes and run what is bound to them.

Each write goes out as the kubelet of its node: an identity of its own (`kubelets`) may impersonate `system:node:*` and
nothing else, so the Node authorizer and NodeRestriction judge it as they judge a real kubelet. One watch of Nodes and
one of Pods serve all nodes.

A kubelet registers its Node when it starts (`join`), posts Ready=False first and True right after, posts again at each
change of its machine, and renews its Lease every 10 s. It runs a pod that is bound to its node, keeps it running until
it is deleted, lets the containers stop for as long as annotation `sim.sickbay.dev/stop-takes` says (at once without
it, never longer than the grace) and removes the object. A machine that is down does none of that; after a boot its
pods start anew.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from sickbay.api import kinds
from sickbay.api.core import Node, Pod
from sickbay.api.duration import parse_duration
from sickbay.clock import Clock, Randomness, rfc3339, rfc3339_micro
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer
from sickbay.kube.workqueue import WorkQueue
from sickbay.sim.machine import Machine
from tests.support.controlplane import ControlPlane
from tests.support.install import apply_objects

GPU = "nvidia.com/gpu"
STOP_TAKES = "sim.sickbay.dev/stop-takes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LEASE_SECONDS = 10.0
WORKERS = 8
RETRY_SECONDS = 0.5
STRATEGIC = "application/strategic-merge-patch+json"
USER = "hollow-kubelets"
"""The user behind identity `kubelets`."""

Key = tuple[str, str, str]
"""("node", "", name) or ("pod", namespace, name)."""


def allow_kubelets(plane: ControlPlane) -> None:
    """Let the stand-in watch nodes and pods, and act as any kubelet."""
    rules = [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]},
        {"apiGroups": [""], "resources": ["groups"], "resourceNames": ["system:nodes"], "verbs": ["impersonate"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    apply_objects(
        plane,
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": USER}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": USER},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": USER},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": USER}],
        },
    )


class HollowKubelets:
    """See the module. `run` until cancelled; machines join at any time."""

    def __init__(self, plane: ControlPlane, clock: Clock, randomness: Randomness) -> None:
        self._clock = clock
        self._http = plane.http_client("kubelets")
        client = Client(self._http, "hollow-kubelets", clock)
        self._nodes = Informer(client, kinds.NODE, clock, randomness)
        self._pods = Informer(client, kinds.POD, clock, randomness, indexes={"node": lambda pod: [pod.spec.node_name]})
        self._queue: WorkQueue[Key] = WorkQueue(clock, randomness, name="kubelets", retry_high=2.0)
        self._machines: dict[str, Machine] = {}
        self._renewed: dict[str, float] = {}
        self._running: dict[str, str] = {}
        """Boot in which the containers of a pod were started, by the pod's UID."""
        self._stopping: dict[str, float] = {}
        self._pods.on_change(self._pod_changed)

    async def run(self) -> None:
        """Keep all kubelets alive until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._nodes.run())
                group.create_task(self._pods.run())
                group.create_task(self._queue.run(self._look, workers=WORKERS))
        finally:
            await self._http.aclose()

    async def join(
        self, machine: Machine, labels: dict[str, str], taints: tuple[dict[str, str], ...] = (), provider_id: str = ""
    ) -> None:
        """The kubelet starts: its Node is registered, and reported ready from then on."""
        name = machine.name
        node = {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "spec": {"providerID": provider_id or f"hollow://{machine.serial}", "taints": list(taints)},
            "status": self._status(machine, None, ready=False),
        }
        answer = await self._as(name, "POST", "/api/v1/nodes", node)
        assert answer.status_code in (201, 409), answer.text
        if name not in self._machines:
            machine.listeners.append(lambda _what: self._machine_changed(name))
        self._machines[name] = machine
        self._machine_changed(name)

    def leave(self, name: str) -> None:
        """The kubelet stops for good; its Node is for others to delete."""
        self._machines.pop(name, None)

    # --- what wakes it

    def _machine_changed(self, name: str) -> None:
        self._renewed.pop(name, None)
        self._queue.add(("node", "", name))
        for pod in self._pods.by_index("node", name):
            self._queue.add(("pod", pod.namespace, pod.name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None and old is not None:
            self._running.pop(old.uid, None)
            self._stopping.pop(old.uid, None)
        elif new is not None and new.spec.node_name:
            self._queue.add(("pod", new.namespace, new.name))

    async def _look(self, key: Key) -> float | None:
        what, namespace, name = key
        if what == "node":
            return await self._look_at_node(name)
        return await self._look_at_pod(namespace, name)

    # --- nodes

    async def _look_at_node(self, name: str) -> float | None:
        machine = self._machines.get(name)
        if machine is None or not machine.kubelet_works:
            return None
        node = self._nodes.get(name)
        if node is None:
            return RETRY_SECONDS
        booted = node.boot_id != machine.boot_id
        if not await self._post(machine, node, ready=not booted):
            return RETRY_SECONDS
        if booted:
            return 0.05  # ready right after
        return await self._renew(machine, node)

    async def _post(self, machine: Machine, node: Node, ready: bool) -> bool:
        status = self._status(machine, node, ready)
        offered = {key: str(value) for key, value in node.status.allocatable.items()}
        if node.ready == ready and node.boot_id == machine.boot_id and offered == status["allocatable"]:
            return True
        path = f"/api/v1/nodes/{machine.name}/status"
        answer = await self._as(machine.name, "PATCH", path, {"metadata": {"uid": node.uid}, "status": status})
        return answer.status_code == 200

    async def _renew(self, machine: Machine, node: Node) -> float:
        now, last = self._clock.monotonic(), self._renewed.get(machine.name)
        if last is not None and now < last + LEASE_SECONDS:
            return last + LEASE_SECONDS - now
        moment = rfc3339_micro(self._clock.now())
        spec = {"holderIdentity": machine.name, "leaseDurationSeconds": 40, "renewTime": moment}
        answer = await self._as(machine.name, "PATCH", f"{LEASES}/{machine.name}", {"spec": spec})
        if answer.status_code == 404:
            owner = {"apiVersion": "v1", "kind": "Node", "name": machine.name, "uid": node.uid}
            lease = {"metadata": {"name": machine.name, "ownerReferences": [owner]}, "spec": spec}
            answer = await self._as(machine.name, "POST", LEASES, lease)
        if answer.is_error:
            return RETRY_SECONDS
        self._renewed[machine.name] = now
        return LEASE_SECONDS

    def _status(self, machine: Machine, node: Node | None, ready: bool) -> dict[str, Any]:
        capacity = {"cpu": "192", "memory": "2000Gi", "pods": "110", "ephemeral-storage": "7000Gi"}
        capacity |= {GPU: str(len(machine.gpus))} if machine.gpus else {}
        now = rfc3339(self._clock.now())
        word = ("True", "KubeletReady") if ready else ("False", "KubeletNotReady")
        before = node.condition("Ready") if node is not None else None
        same = before is not None and before.status == word[0]
        since = before.last_transition_time if before is not None and same else now
        pressures = [
            {"type": each, "status": "False", "reason": "KubeletHasSufficient", "lastHeartbeatTime": now}
            for each in ("MemoryPressure", "DiskPressure", "PIDPressure")
        ]
        condition = {"type": "Ready", "status": word[0], "reason": word[1], "lastHeartbeatTime": now}
        info = {"bootID": machine.boot_id, "machineID": machine.serial, "systemUUID": machine.serial}
        info |= {"kernelVersion": "6.8.0", "osImage": "hollow", "containerRuntimeVersion": "hollow://1"}
        info |= {
            "kubeletVersion": "v1.36.3",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        }
        return {
            "capacity": capacity,
            "allocatable": {**capacity, **machine.allocatable},
            "conditions": [*pressures, {**condition, "lastTransitionTime": since}],
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": machine.name},
            ],
            "nodeInfo": info,
        }

    # --- pods

    async def _look_at_pod(self, namespace: str, name: str) -> float | None:
        pod = self._pods.get(name, namespace)
        machine = self._machines.get(pod.spec.node_name) if pod is not None else None
        if pod is None or machine is None or not machine.runtime_works or not machine.kubelet_works:
            return None
        if pod.deleting:
            return await self._stop(pod, machine)
        if pod.finished or self._running.get(pod.uid) == machine.boot_id:
            return None
        answer = await self._as(
            machine.name, "PATCH", f"{_path(pod)}/status", {"metadata": {"uid": pod.uid}, "status": self._started(pod)}
        )
        if answer.is_error:
            return RETRY_SECONDS
        self._running[pod.uid] = machine.boot_id
        return None

    def _started(self, pod: Pod) -> dict[str, Any]:
        now = rfc3339(self._clock.now())
        running = [
            {"name": c.name, "ready": True, "started": True, "restartCount": 0, "image": "hollow", "imageID": "hollow",
             "state": {"running": {"startedAt": now}}}
            for c in pod.spec.containers
        ]  # fmt: skip
        words = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        conditions = [{"type": word, "status": "True", "lastTransitionTime": now} for word in words]
        status = {"phase": "Running", "startTime": now, "podIP": "10.0.0.1", "conditions": conditions}
        return {**status, "containerStatuses": running}

    async def _stop(self, pod: Pod, machine: Machine) -> float | None:
        """Containers stop in their own time, within the grace; then the object goes."""
        wanted = parse_duration(pod.annotations.get(STOP_TAKES, "0s")).total_seconds()
        grace = pod.metadata.deletion_grace_period_seconds
        takes = min(wanted, float(grace if grace is not None else 30))
        now = self._clock.monotonic()
        left = self._stopping.setdefault(pod.uid, now) + takes - now
        if left > 0 and self._running.get(pod.uid) == machine.boot_id:
            return left
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}}
        answer = await self._as(machine.name, "DELETE", _path(pod), options)
        return None if answer.status_code in (200, 404, 409) else RETRY_SECONDS

    async def _as(self, node: str, method: str, path: str, body: dict[str, Any]) -> httpx2.Response:
        """One request as the kubelet of a node. A connection that is lost is no answer, and as good as an error."""
        headers = {
            "Impersonate-User": f"system:node:{node}",
            "Impersonate-Group": "system:nodes",
            "Content-Type": STRATEGIC if method == "PATCH" else "application/json",
            "User-Agent": "hollow-kubelet",
        }
        try:
            return await self._http.request(method, path, json=body, headers=headers)
        except httpx2.HTTPError as error:
            return httpx2.Response(503, text=str(error))


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
