"""Simulated kubelets on another API server: what they write reaches it, and what it has is what they act on."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import httpx2
import pytest

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.store import STRATEGIC, Store
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import SYSTEM, Caller
from sickbay.clock import Randomness
from sickbay.kube.client import Client
from sickbay.sim.hand import LEASES, NODES, PODS, condition_of
from sickbay.sim.hollow import HollowKubelets
from sickbay.sim.loop import LoopClock
from sickbay.sim.machine import Machine
from tests.support.simworld import pod

REFUSED, CONFLICT = 403, 409


def caller_of(node: str) -> Caller:
    return Caller(f"system:node:{node}", ("system:nodes",), "sim-kubelet")


class Site:
    """An API server, and hollow kubelets that know it over the wire only."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.clock = LoopClock(loop)
        self.server = Store(self.clock, Randomness(1))
        self._app = ApiServer(self.server, {"reader": SYSTEM})
        self.asked: list[tuple[str, str]] = []
        self.server.before_write(lambda write: self.asked.append((write.user, f"{write.verb} {write.kind}")))
        self.kubelets = HollowKubelets(self.clock, Randomness(2), self._client("reader"), self._speak)

    def _client(self, token: str) -> Client:
        headers = {"authorization": f"Bearer {token}"}
        http = httpx2.AsyncClient(transport=InProcessTransport(self._app), base_url="http://site", headers=headers)
        return Client(http, "hollow", self.clock)

    def _speak(self, caller: Caller) -> Client:
        self._app.authenticator.add(caller.user, caller)
        return self._client(caller.user)

    async def join(self, name: str) -> Machine:
        machine = Machine(name, 8, self.clock, Randomness(3), boot_seconds=60)
        self.kubelets.join(machine, {"pool": "train"})
        await self.clock.sleep(2)
        return machine

    def ready(self, name: str) -> str:
        return str(condition_of(self.server.get(NODES, name), "Ready").get("status"))

    def phase(self, name: str) -> str:
        return str(self.server.get(PODS, name, "default")["status"]["phase"])


@asynccontextmanager
async def site():
    made = Site()
    work = asyncio.get_running_loop().create_task(made.kubelets.run())
    try:
        yield made
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def test_a_kubelet_registers_its_node_reports_it_ready_and_renews_its_lease():
    async with site() as here:
        await here.join("n-0")
        assert here.ready("n-0") == "True"
        assert here.server.get(NODES, "n-0")["metadata"]["labels"]["pool"] == "train"
        first = here.server.get(LEASES, "n-0", "kube-node-lease")["spec"]["renewTime"]
        await here.clock.sleep(15)
        lease = here.server.get(LEASES, "n-0", "kube-node-lease")
        assert lease["spec"]["renewTime"] > first
        assert lease["metadata"]["ownerReferences"][0]["uid"] == here.server.get(NODES, "n-0")["metadata"]["uid"]


async def test_every_write_is_the_node_s_own():
    async with site() as here:
        await here.join("n-0")
        here.server.create(PODS, {**pod("p"), "spec": {**pod("p")["spec"], "nodeName": "n-0"}}, "default")
        await here.clock.sleep(5)
        writes = {user for user, what in here.asked if user != SYSTEM.user}
        assert writes == {"system:node:n-0"}


async def test_pods_bound_there_run_exit_and_go():
    async with site() as here:
        await here.join("n-0")
        for name in ("stays", "fails", "goes"):
            here.server.create(PODS, {**pod(name), "spec": {**pod(name)["spec"], "nodeName": "n-0"}}, "default")
        await here.clock.sleep(2)
        here.kubelets.pods.exit_pod(here.kubelets.store.get(PODS, "fails", "default"), 3)
        here.server.delete(PODS, "goes", "default")
        await here.clock.sleep(5)
        assert (here.phase("stays"), here.phase("fails")) == ("Running", "Failed")
        assert here.server.find(PODS, "goes", "default") is None


async def test_what_others_write_meanwhile_is_kept():
    async with site() as here:
        await here.join("n-0")
        here.server.patch(NODES, "n-0", {"spec": {"unschedulable": True}})
        gpu = {"status": {"conditions": [{"type": "GpuLost", "status": "True"}]}}
        here.server.patch(NODES, "n-0", gpu, STRATEGIC, subresource="status")
        await here.clock.sleep(400)
        node = here.server.get(NODES, "n-0")
        assert node["spec"]["unschedulable"] is True
        assert condition_of(node, "GpuLost")["status"] == "True"
        assert here.kubelets.store.get(NODES, "n-0")["spec"]["unschedulable"] is True


async def test_a_write_that_the_server_refuses_is_undone_in_the_copy():
    async with site() as here:
        machine = await here.join("n-0")

        def refuse(write):
            if write.user == "system:node:n-0" and write.subresource == "status":
                raise StatusError(REFUSED, "Forbidden", "no")

        here.server.before_write(refuse)
        machine.set_allocatable("nvidia.com/gpu", "7")
        await here.clock.sleep(5)
        assert here.server.get(NODES, "n-0")["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        assert here.kubelets.store.get(NODES, "n-0")["status"]["allocatable"]["nvidia.com/gpu"] == "8"


async def test_lost_watches_and_forgotten_history_lose_nothing():
    async with site() as here:
        await here.join("n-0")
        here.server.disconnect()
        here.server.create(PODS, {**pod("p"), "spec": {**pod("p")["spec"], "nodeName": "n-0"}}, "default")
        here.server.compact()
        await here.clock.sleep(5)
        assert here.phase("p") == "Running"
        here.server.disconnect()
        here.server.delete(PODS, "p", "default", grace=0)
        here.server.compact()
        await here.clock.sleep(5)
        assert here.kubelets.store.find(PODS, "p", "default") is None


async def test_a_machine_that_is_down_is_silent_and_comes_back_under_a_new_boot():
    async with site() as here:
        machine = await here.join("n-0")
        before = here.server.get(NODES, "n-0")["status"]["nodeInfo"]["bootID"]
        here.server.create(PODS, {**pod("p"), "spec": {**pod("p")["spec"], "nodeName": "n-0"}}, "default")
        await here.clock.sleep(2)
        machine.reboot()
        asked = len(here.asked)
        await here.clock.sleep(59)
        assert len(here.asked) == asked
        await here.clock.sleep(5)
        assert here.server.get(NODES, "n-0")["status"]["nodeInfo"]["bootID"] not in ("", before)
        assert here.phase("p") == "Failed"


async def test_a_node_made_again_under_its_name_is_another_one():
    async with site() as here:
        machine = await here.join("n-0")
        here.kubelets.leave("n-0")
        here.server.delete(NODES, "n-0")
        machine.renew()
        here.kubelets.join(machine, {"pool": "other"})
        await here.clock.sleep(5)
        node = here.server.get(NODES, "n-0")
        assert node["metadata"]["labels"]["pool"] == "other"
        assert here.kubelets.store.get(NODES, "n-0")["metadata"]["uid"] == node["metadata"]["uid"]
        assert here.ready("n-0") == "True"


async def test_a_deletion_says_to_the_server_what_becomes_of_dependents():
    async with site() as here:
        await here.join("n-0")
        here.server.create(PODS, {**pod("owner"), "spec": {**pod("owner")["spec"], "nodeName": "n-0"}}, "default")
        await here.clock.sleep(2)
        here.kubelets.store.delete(PODS, "owner", "default", propagation="Foreground", caller=caller_of("n-0"))
        await here.clock.sleep(0.1)
        assert "foregroundDeletion" in here.server.get(PODS, "owner", "default")["metadata"].get("finalizers", [])


async def test_a_dry_run_on_the_copy_reaches_nobody():
    async with site() as here:
        await here.join("n-0")
        here.server.create(PODS, {**pod("p"), "spec": {**pod("p")["spec"], "nodeName": "n-0"}}, "default")
        await here.clock.sleep(2)
        before = here.server.get(PODS, "p", "default")
        node, copy = caller_of("n-0"), here.kubelets.store
        copy.create(PODS, pod("new"), "default", caller=node, dry_run=True)
        copy.patch(PODS, "p", {"metadata": {"labels": {"x": "y"}}}, namespace="default", caller=node, dry_run=True)
        copy.delete(PODS, "p", "default", caller=node, dry_run=True)
        await here.clock.sleep(5)
        assert here.server.get(PODS, "p", "default") == before
        assert here.server.find(PODS, "new", "default") is None


async def test_a_deletion_bound_to_a_version_that_is_over_deletes_nothing():
    async with site() as here:
        await here.join("n-0")
        here.server.create(PODS, {**pod("p"), "spec": {**pod("p")["spec"], "nodeName": "n-0"}}, "default")
        await here.clock.sleep(2)
        with pytest.raises(StatusError) as refused:
            here.kubelets.store.delete(PODS, "p", "default", resource_version="1", caller=caller_of("n-0"))
        assert refused.value.code == CONFLICT
        await here.clock.sleep(2)
        assert here.phase("p") == "Running"
