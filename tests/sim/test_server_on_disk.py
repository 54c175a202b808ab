"""Our API server on disk, killed under decide and execute and started again: nothing is lost or doubled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sickbay.api.crds import manifests
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.persistence import Journal as DiskJournal
from sickbay.apiserver.store import STRATEGIC, Store
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import SYSTEM
from sickbay.clock import Randomness
from sickbay.decide.controller import DecideController, DecideOptions
from sickbay.execute.controller import ExecuteController, ExecuteOptions
from sickbay.kube.client import Client
from sickbay.sim.cloud import Cloud, FakeProvider
from sickbay.sim.hand import FAULT_TYPES, NAMESPACES, NODES, POOLS, REPAIRS, RULES
from sickbay.sim.hollow import HollowKubelets
from sickbay.sim.journal import Journal
from sickbay.sim.loop import LoopClock
from sickbay.sim.machine import Machine

STEPS = ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
AWAY = 20.0
"""Seconds for which the server is gone."""
FAULT = {
    "class": "GPU",
    "severity": "Critical",
    "scope": "Node",
    "match": [{"condition": {"type": "Wobbles", "status": "True"}}],
    "remedy": [{"action": "RebootNode"}],
    "clearsBy": "reboot",
    "validation": {"soak": "1m"},
}
POOL = {
    "nodeSelector": {"matchLabels": {"pool": "train"}},
    "mode": "Act",
    "rule": "all",
    "maxUnavailable": "100%",
    "provider": {"name": "fake"},
}


class Site(httpx2.AsyncBaseTransport):
    """An API server that can be killed, and everything that speaks to it. As a transport it is the way there."""

    def __init__(self, file: Path) -> None:
        self.clock = LoopClock(asyncio.get_running_loop())
        self._file = file
        self._disk: DiskJournal | None = None
        self._way: InProcessTransport | None = None
        self.store: Store
        self.acts = Journal(self.clock.monotonic)
        self.cloud = Cloud(self.clock, Randomness(3), self.acts)
        self._tasks: list[asyncio.Task[None]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._way is None:
            raise httpx2.ConnectError("connection refused")
        return await self._way.handle_async_request(request)

    def start_server(self) -> None:
        self._disk = DiskJournal(self._file)
        self.store = Store(self.clock, Randomness(4), journal=self._disk)
        self._way = InProcessTransport(ApiServer(self.store, anonymous=SYSTEM))

    def kill_server(self) -> None:
        assert self._disk is not None
        self._way = None
        self.store.disconnect()
        self._disk.close()

    def client(self, agent: str) -> Client:
        return Client(httpx2.AsyncClient(transport=self, base_url="http://site"), agent, self.clock)

    def furnish(self) -> None:
        for crd in manifests():
            self.store.create(CRDS, crd)
        for namespace in ("sickbay-system", "sickbay-agents"):
            self.store.create(NAMESPACES, {"metadata": {"name": namespace}})
        self.store.create(FAULT_TYPES, {"metadata": {"name": "lab.wobbles"}, "spec": FAULT})
        steps = [{"step": step} for step in STEPS]
        rules = [{"name": "all", "faults": {"names": ["lab.wobbles"]}, "procedure": steps}]
        self.store.create(RULES, {"metadata": {"name": "all"}, "spec": {"rules": rules}})
        self.store.create(POOLS, {"metadata": {"name": "train"}, "spec": POOL})

    async def people_it(self) -> None:
        """Two nodes, decide and execute."""
        speak = {f"system:node:n-{k}": self.client("kubelet") for k in range(2)}
        kubelets = HollowKubelets(self.clock, Randomness(5), self.client("kubelets"), lambda caller: speak[caller.user])
        for k in range(2):
            machine = Machine(f"n-{k}", 8, self.clock, Randomness(6), boot_seconds=60)
            machine.listeners.append(lambda what: self._cured(what))
            self.cloud.machines[machine.name] = machine
            kubelets.join(machine, {"pool": "train"})
        decide = DecideController(
            self.client("sickbay-decide"),
            self.clock,
            Randomness(7),
            DecideOptions(identity="d", namespace="sickbay-system"),
        )
        providers = {"fake": FakeProvider(self.cloud, self.clock)}
        options = ExecuteOptions(identity="e", namespace="sickbay-system")
        execute = ExecuteController(self.client("sickbay-execute"), self.clock, Randomness(8), providers, options)
        work = (kubelets.run(), decide.run(), execute.run())
        self._tasks = [asyncio.get_running_loop().create_task(each) for each in work]
        await self.clock.sleep(30)

    def _cured(self, what: str) -> None:
        if what == "up":
            self.report("False")

    def report(self, status: str) -> None:
        """The detector of n-0."""
        condition = {"type": "Wobbles", "status": status, "lastTransitionTime": "2027-03-01T08:00:00Z"}
        if self._way is None:  # it tries again, as any client does
            asyncio.get_running_loop().call_later(5, self.report, status)
            return
        self.store.patch(NODES, "n-0", {"status": {"conditions": [condition]}}, STRATEGIC, subresource="status")

    @property
    def repair(self) -> dict[str, Any]:
        found = self.store.list(REPAIRS)
        return found[-1] if found else {}

    def marks(self) -> tuple[Any, ...]:
        node = self.store.get(NODES, "n-0")
        return node["metadata"].get("labels"), node["metadata"].get("annotations") or {}, node["spec"].get("taints")

    async def until(self, check: Any) -> None:
        for _ in range(7200):
            if check():
                return
            await self.clock.sleep(0.5)
        raise AssertionError(f"not within an hour: {self.repair.get('status')}")

    async def close(self) -> None:
        dead = [task for task in self._tasks if task.done()]
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._disk is not None:
            self._disk.close()
        assert not dead, dead


@pytest.mark.parametrize("step", STEPS)
async def test_a_server_that_dies_at_a_step_loses_and_doubles_nothing(tmp_path: Path, step: str) -> None:
    site = Site(tmp_path / "objects.db")
    site.start_server()
    site.furnish()
    await site.people_it()
    before = site.marks()
    site.report("True")

    def runs() -> bool:
        return bool(
            (site.repair.get("status") or {}).get("steps", {}).get(step, {}).get("state") in ("Running", "Done")
        )

    await site.until(runs)
    site.kill_server()
    await site.clock.sleep(AWAY)
    site.start_server()
    await site.until(lambda: site.repair["status"].get("phase") == "Succeeded")
    assert site.repair["status"]["outcome"] == "Repaired"
    assert len(site.store.list(REPAIRS)) == 1
    assert [call.call for call in site.acts.calls if call.call == "reboot"] == ["reboot"]
    await site.clock.sleep(60)
    assert site.marks() == before
    assert not site.store.get(NODES, "n-0")["spec"].get("unschedulable")
    await site.close()
