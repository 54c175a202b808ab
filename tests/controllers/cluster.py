"""A cluster under test: its nodes and machines, and short ways to make objects and to wait for what becomes of them.

Each test has nodes of its own, and a namespace; pods are kept on those nodes by a node selector.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import Caller
from sickbay.clock import Clock, Randomness, SystemClock
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.loop import VirtualLoop
from sickbay.sim.machine import Machine
from sickbay.sim.parts.pods import Pods
from sickbay.sim.world import World
from tests.conformance.server import Answer, Server
from tests.support.controlplane import ControlPlane
from tests.support.hollow import PlaneKubelets

HURRY = 0.2
"""How much more often than usual hollow kubelets report to the real server, whose patience is shortened too."""
STRANDED = ("stranded", "orphan")
"""Namespace and name of a pod bound to a node that never was: its end takes a minute, so it is made first of all."""
NODES = "/api/v1/nodes"
PATHS = {
    "pods": "/api/v1/namespaces/{}/pods",
    "jobs": "/apis/batch/v1/namespaces/{}/jobs",
    "daemonsets": "/apis/apps/v1/namespaces/{}/daemonsets",
    "deployments": "/apis/apps/v1/namespaces/{}/deployments",
    "replicasets": "/apis/apps/v1/namespaces/{}/replicasets",
    "statefulsets": "/apis/apps/v1/namespaces/{}/statefulsets",
    "budgets": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "configmaps": "/api/v1/namespaces/{}/configmaps",
}
Check = Callable[[], Awaitable[Any]]


class Cluster(ABC):
    """One of the two."""

    server: Server
    clock: Clock
    namespace = ""
    pool = ""
    patience = 30.0
    """Seconds of its clock that anything may take."""
    calm = 2.0
    """Seconds for which what must not happen is watched."""

    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}

    # --- nodes

    @abstractmethod
    async def nodes(
        self, count: int, *, labels: dict[str, str] | None = None, taints: tuple[Obj, ...] = ()
    ) -> list[str]:
        """Ready nodes with 8 GPUs each."""

    @abstractmethod
    def containers(self) -> Pods:
        """The kubelets' side of pods."""

    async def node(self, name: str) -> Obj:
        """Empty where there is none."""
        answer = await self.server.get(f"{NODES}/{name}")
        return answer.body if answer.code == 200 else {}

    async def patch_node(self, name: str, patch: Obj) -> None:
        assert (await self.server.patch("merge", f"{NODES}/{name}", patch)).code == 200

    async def taints(self, name: str) -> set[tuple[str, str]]:
        """Key (Kubernetes' own without their domain) and effect of each."""
        taints = (await self.node(name))["spec"].get("taints") or ()
        return {(taint["key"].removeprefix("node.kubernetes.io/"), taint["effect"]) for taint in taints}

    async def condition_of_node(self, name: str, type_: str = "Ready") -> Obj:
        return condition(await self.node(name), type_)

    # --- objects

    def path(self, kind: str, name: str = "") -> str:
        return PATHS[kind].format(self.namespace) + (f"/{name}" if name else "")

    async def make(self, kind: str, *manifests: Obj) -> None:
        for manifest in manifests:
            answer = await self.server.post(self.path(kind), manifest)
            assert answer.code == 201, answer.body

    async def get(self, kind: str, name: str) -> Obj:
        """Empty where there is none."""
        answer = await self.server.get(self.path(kind, name))
        return answer.body if answer.code == 200 else {}

    async def status(self, kind: str, name: str) -> Obj:
        return (await self.get(kind, name)).get("status") or {}

    async def patch(self, kind: str, name: str, patch: Obj) -> None:
        answer = await self.server.patch("merge", self.path(kind, name), patch)
        assert answer.code == 200, answer.body

    async def delete(self, kind: str, name: str, **options: Any) -> None:
        answer = await self.server.delete(self.path(kind, name), **options)
        assert answer.code in (200, 202), answer.body

    async def evict(self, pod: str) -> Answer:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.namespace}}
        return await self.server.post(f"{self.path('pods', pod)}/eviction", body)

    # --- pods

    async def pods(self) -> list[Obj]:
        return list((await self.server.get(self.path("pods"))).body["items"])

    async def living(self) -> list[Obj]:
        """Pods that are not on their way out."""
        return [p for p in await self.pods() if not p["metadata"].get("deletionTimestamp")]

    async def places(self) -> dict[str, str]:
        return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in await self.pods() if p["spec"].get("nodeName")}

    async def running(self) -> dict[str, str]:
        """Nodes of the pods that run and stay, by pod."""
        running = [p for p in await self.living() if p["status"].get("phase") == "Running"]
        return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in running}

    async def why_not(self, pod: str) -> str:
        """What the scheduler says of a pod it cannot place."""
        return str(condition(await self.get("pods", pod), "PodScheduled").get("message", ""))

    async def exit(self, pod: str, code: int) -> None:
        """The pod's container ends."""
        containers = self.containers()

        async def there() -> bool:
            seen = containers.store.find("pods", pod, self.namespace)
            return seen is not None and (seen.get("status") or {}).get("phase") == "Running"

        await self.until(there)
        containers.exit_pod(containers.store.get("pods", pod, self.namespace), code)

    # --- waiting

    async def until(self, check: Check, equals: Any = None) -> Any:
        """The first answer that is true, or equal to `equals`. Fails with the last one."""
        end, seen = self.clock.monotonic() + self.patience, None
        while self.clock.monotonic() < end:
            seen = await check()
            if (seen == equals) if equals is not None else seen:
                return seen
            await self.clock.sleep(0.1)
        raise AssertionError(f"not within {self.patience:g} s; seen at last: {seen!r}, wanted: {equals!r}")

    async def stays(self, check: Check, equals: Any = True) -> None:
        """Fails when it becomes anything else within the calm."""
        end = self.clock.monotonic() + self.calm
        while self.clock.monotonic() < end:
            assert await check() == equals
            await self.clock.sleep(0.1)


class SimulatedCluster(Cluster):
    """Ours."""

    patience = 600.0
    calm = 30.0

    async def __aenter__(self) -> SimulatedCluster:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._world = World(loop, 1)
        self.clock, self.machines = self._world.clock, self._world.stage.machines
        admin = Caller("admin", ("system:masters",))
        self._world.server.authenticator.add("admin", admin)
        self.server = Server(self._connect, self._world.store.compact, real=False)
        self.namespace = await self.server.namespace()
        self.pool = self.server.unique("pool")
        namespace, name = STRANDED
        await self.server.made("/api/v1/namespaces", {"metadata": {"name": namespace}})
        self._world.start()
        await self.server.made(f"/api/v1/namespaces/{namespace}/pods", _stranded(name))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.client.aclose()
        await self._world.stop()
        assert self._world.problems == []

    def _connect(self, user: str) -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {user}"}
        transport = InProcessTransport(self._world.server)
        return httpx2.AsyncClient(transport=transport, base_url="http://ours", headers=headers)

    async def nodes(
        self, count: int, *, labels: dict[str, str] | None = None, taints: tuple[Obj, ...] = ()
    ) -> list[str]:
        pool = self.server.unique("n")
        self._world.fleet.add_pool(
            PoolSpec(pool, count, 8, {"pool": self.pool, **(labels or {})}, taints, boot_seconds=5)
        )
        await self.clock.sleep(1)
        return [f"{pool}-{k}" for k in range(count)]

    def containers(self) -> Pods:
        return self._world.kubelet


class RealCluster(Cluster):
    """etcd, kube-apiserver, kube-controller-manager and kube-scheduler."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__()
        self._plane, self.clock = plane, SystemClock()
        self._randomness = Randomness()

    async def __aenter__(self) -> RealCluster:
        self._kubelets = PlaneKubelets(self._plane, self.clock, self._randomness, HURRY)
        self._work = asyncio.create_task(self._kubelets.run())
        self.server = Server(self._plane.http_client, self._plane.restart_apiserver, real=True)
        self.namespace, self.pool = self.server.unique("ns"), self.server.unique("pool")
        await self.server.made("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        await self.until(self._accounts)
        return self

    async def _accounts(self) -> bool:
        """Pods can be made once the namespace has its service account."""
        return (await self.server.get(f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default")).code == 200

    async def __aexit__(self, *_: object) -> None:
        for name in self.machines:
            await self.server.delete(f"{NODES}/{name}")
        await self.server.delete(f"/api/v1/namespaces/{self.namespace}")
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)
        await self.server.client.aclose()

    async def nodes(
        self, count: int, *, labels: dict[str, str] | None = None, taints: tuple[Obj, ...] = ()
    ) -> list[str]:
        prefix = self.server.unique("n")
        names = [f"{prefix}-{k}" for k in range(count)]
        for name in names:
            machine = Machine(name, 8, self.clock, self._randomness.fork(), self.pool, boot_seconds=1)
            self.machines[name] = machine
            self._kubelets.join(machine, {"pool": self.pool, **(labels or {})}, taints)

        async def ready() -> bool:
            states = [await self.node(name) for name in names]
            return all(condition(s, "Ready").get("status") == "True" and not _starting(s) for s in states)

        await self.until(ready)
        return names

    def containers(self) -> Pods:
        return self._kubelets.pods


def _starting(node: Obj) -> bool:
    return any("not-ready" in taint["key"] for taint in (node.get("spec") or {}).get("taints") or ())


def condition(obj: Obj, type_: str) -> Obj:
    """The condition of that type, or an empty dict."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return next((c for c in found if c["type"] == type_), {})


def strand_a_pod(plane: ControlPlane) -> None:
    """See STRANDED."""
    namespace, name = STRANDED
    plane.service_account_token(namespace, "default")
    answer = plane.admin().post(f"/api/v1/namespaces/{namespace}/pods", json=_stranded(name))
    assert answer.status_code == 201, answer.text


def _stranded(name: str) -> Obj:
    container = {"name": "main", "image": "example.com/x:1"}
    return {"metadata": {"name": name}, "spec": {"nodeName": "never-was", "containers": [container]}}
