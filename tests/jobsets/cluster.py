"""A cluster with a JobSet controller, simulated or real, behind one face: requests, exits of containers, waiting."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2

from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import Caller
from sickbay.clock import Clock, Randomness, SystemClock
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.machine import Machine
from tests.support.controlplane import ControlPlane
from tests.support.hollow import PlaneKubelets
from tests.support.simworld import running_world

Obj = dict[str, Any]
PREFIX = "jobset.sigs.k8s.io"
NODES = 4
SOON = 40.0
"""Seconds within which what has to happen happens, virtual or real."""
PAUSE = 0.1
QUIET = 3.0
"""Seconds in which what must not happen would have happened."""

_PATHS = {
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Service": "/api/v1/namespaces/{}/services",
}
_numbers = itertools.count(1)

Exit = Callable[[Obj, int], None]


class Refused(Exception):
    """The API server's answer to a request that it does not carry out."""


class Cluster:
    """See the module. Everything happens in one namespace, on nodes with label `pool` = its name."""

    def __init__(self, http: httpx2.AsyncClient, clock: Clock, pool: str, namespace: str, exit_: Exit) -> None:
        self._http, self._clock, self.pool, self.namespace, self._exit = http, clock, pool, namespace, exit_

    # --- requests

    async def call(self, method: str, kind: str, name: str = "", body: Obj | None = None, **query: str) -> Obj:
        path = _PATHS[kind].format(self.namespace) + (f"/{name}" if name else "")
        patch = {"content-type": "application/merge-patch+json"} if method == "PATCH" else None
        answer = await self._http.request(method, path, json=body, headers=patch, params=query)
        if answer.is_error:
            raise Refused(f"{answer.status_code}: {answer.json().get('message')}")
        found: Obj = answer.json()
        return found

    async def job_set(self, name: str, spec: Obj, **meta: Any) -> Obj:
        """Create one."""
        body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name, **meta}}
        return await self.call("POST", "JobSet", body=body | {"spec": spec})

    async def change(self, name: str, spec: Obj) -> Obj:
        return await self.call("PATCH", "JobSet", name, {"spec": spec})

    async def delete(self, name: str, propagation: str) -> None:
        await self.call("DELETE", "JobSet", name, propagationPolicy=propagation)

    async def get(self, kind: str, name: str) -> Obj:
        return await self.call("GET", kind, name)

    async def children(self, kind: str, job_set: str) -> dict[str, Obj]:
        """Jobs, or pods, that carry the label of a JobSet, by name; pods on their way out are none."""
        found = await self.call("GET", kind, labelSelector=f"{PREFIX}/jobset-name={job_set}")
        named = {item["metadata"]["name"]: item for item in found["items"]}
        return {n: i for n, i in named.items() if kind != "Pod" or "deletionTimestamp" not in i["metadata"]}

    async def ranks(self, job_set: str) -> dict[str, Obj]:
        """Live pods by the part of their name that says which rank they are."""
        pods = await self.children("Pod", job_set)
        return {name.removeprefix(f"{job_set}-").rpartition("-")[0]: pod for name, pod in pods.items()}

    # --- what happens

    def exit(self, pod: Obj, code: int) -> None:
        """The container of a running pod ends."""
        self._exit(pod, code)

    # --- waiting

    async def until(self, check: Callable[[], Awaitable[Any]], what: str) -> Any:
        """The first truthy answer; a refusal or a missing key is "not yet"."""
        end, seen = self._clock.monotonic() + SOON, None
        while self._clock.monotonic() < end:
            with suppress(Refused, LookupError, AssertionError):
                seen = await check()
                if seen:
                    return seen
            await self._clock.sleep(PAUSE)
        raise AssertionError(f"not within {SOON:g} s: {what} (last: {seen!r})")

    async def runs(self, job_set: str, ranks: int) -> dict[str, Obj]:
        """Wait until so many ranks run."""

        async def running() -> dict[str, Obj]:
            found = await self.ranks(job_set)
            return found if [p["status"]["phase"] for p in found.values()] == ["Running"] * ranks else {}

        found = await self.until(running, f"{ranks} ranks of {job_set} run")
        assert isinstance(found, dict)
        return found

    async def condition(self, job_set: str, type_: str, status: str = "True") -> Obj:
        """Wait until the JobSet has the condition, and return the JobSet."""

        async def there() -> Obj:
            found = await self.get("JobSet", job_set)
            return found if condition(found, type_).get("status") == status else {}

        found = await self.until(there, f"{job_set} is {type_}={status}")
        assert isinstance(found, dict)
        return found

    async def gone(self, kind: str, name: str) -> None:
        async def absent() -> bool:
            try:
                await self.get(kind, name)
            except Refused as refusal:
                return str(refusal).startswith("404")
            return False

        await self.until(absent, f"{kind} {name} is gone")

    async def quiet(self) -> None:
        """Let pass what might happen by itself."""
        await self._clock.sleep(QUIET)


def condition(obj: Obj, type_: str) -> Obj:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == type_), {})


@asynccontextmanager
async def simulated_cluster() -> AsyncIterator[Cluster]:
    async with running_world(PoolSpec("sim", nodes=NODES)) as world:
        world.server.authenticator.add("admin", Caller("admin", ("system:masters",)))

        transport, token = InProcessTransport(world.server), {"authorization": "Bearer admin"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://ours", headers=token) as http:
            yield Cluster(http, world.clock, "sim", "default", world.kubelet.exit_pod)


@asynccontextmanager
async def real_cluster(plane: ControlPlane) -> AsyncIterator[Cluster]:
    pool, clock, randomness = f"js{next(_numbers)}", SystemClock(), Randomness()
    kubelets = PlaneKubelets(plane, clock, randomness.fork())
    running = asyncio.create_task(kubelets.run())
    try:
        async with plane.http_client() as http:
            await http.post("/api/v1/namespaces", json={"metadata": {"name": pool}})
            found = Cluster(http, clock, pool, pool, kubelets.pods.exit_pod)
            await _join(http, kubelets, found, clock, randomness)
            yield found
            await http.delete(f"/api/v1/namespaces/{pool}")
            await http.delete("/api/v1/nodes", params={"labelSelector": f"pool={pool}"})
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _join(
    http: httpx2.AsyncClient, kubelets: PlaneKubelets, found: Cluster, clock: Clock, randomness: Randomness
) -> None:
    for number in range(NODES):
        machine = Machine(f"{found.pool}-{number}", 8, clock, randomness.fork(), found.pool, 1.0)
        kubelets.join(machine, {"pool": found.pool})

    async def ready() -> bool:
        nodes = (await http.get("/api/v1/nodes", params={"labelSelector": f"pool={found.pool}"})).json()["items"]
        return len(nodes) == NODES and all(
            condition(n, "Ready")["status"] == "True" and not n["spec"].get("taints") for n in nodes
        )

    await found.until(ready, "the nodes are ready")
