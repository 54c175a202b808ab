"""How long the way from a fault to the order of its first step is, in writes; and that the short way keeps the turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec

from sickbay.api.crds import manifests
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.store import MERGE, STRATEGIC, Store
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import SYSTEM
from sickbay.clock import Randomness
from sickbay.decide.controller import DecideController
from sickbay.kube.client import Client
from tests.decide import made
from tests.support.virtual import clock as loop_clock

REPAIRS, POOLS, NODES = "noderepairs.sickbay.dev", "repairpools.sickbay.dev", "nodes"
TRIP = 0.1


class Slow(httpx2.AsyncBaseTransport):
    """Each write takes a tenth of a second to arrive. `refuse` may answer one in the server's place."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, clock: Any) -> None:
        self._inner, self._clock = inner, clock
        self.refuse: Callable[[httpx2.Request], bool] = lambda request: False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "GET":
            await self._clock.sleep(TRIP)
        if self.refuse(request):
            return httpx2.Response(503, json={"kind": "Status", "code": 503, "message": "refused"}, request=request)
        return await self._inner.handle_async_request(request)


class Bench:
    """Our own API server with a pool of nodes, and decide on it."""

    def __init__(self, nodes: int, **pool: Any) -> None:
        self.clock = loop_clock()
        self.store = Store(self.clock, Randomness(7))
        for crd in manifests():
            self.store.create("customresourcedefinitions.apiextensions.k8s.io", crd)
        self.store.create("namespaces", {"metadata": {"name": "sickbay-system"}})
        self._create("faulttypes.sickbay.dev", made.fault_type("test.reboot"))
        self._create("repairrules.sickbay.dev", _plain(made.rule()))
        self._create(POOLS, _plain(made.pool(maxUnavailable=1, storm={"nodes": 0}, **pool)))
        for n in range(nodes):
            self._create(NODES, _plain(made.node(f"n{n}")))
        self.wire = Slow(InProcessTransport(ApiServer(self.store, anonymous=SYSTEM)), self.clock)

    def _create(self, resource: str, obj: dict[str, Any]) -> None:
        for key in ("uid", "resourceVersion", "generation"):
            obj["metadata"].pop(key, None)
        self.store.create(resource, obj)

    def fault(self, node: str, status: str = "True") -> None:
        condition = {"type": made.condition_of("test.reboot"), "status": status}
        self.store.patch(NODES, node, {"status": {"conditions": [condition]}}, STRATEGIC, subresource="status")

    def wait_for_slot(self, node: str) -> None:
        """As decide leaves a repair that the pool has no slot for."""
        status = {"phase": "WaitingSlot", "current": {"step": "Quarantine", "attempt": 1}}
        name = self.repair(node)["metadata"]["name"]
        self.store.patch(REPAIRS, name, {"status": status}, MERGE, subresource="status")

    def repair(self, node: str) -> dict[str, Any]:
        found = [r for r in self.store.list(REPAIRS) if r["spec"]["node"]["name"] == node]
        return found[0] if found else {}

    def step(self, node: str) -> tuple[str, str]:
        status = self.repair(node).get("status") or {}
        return status.get("phase", ""), ((status.get("steps") or {}).get("Quarantine") or {}).get("state", "")

    def slots(self) -> list[str]:
        slots = (self.store.get(POOLS, "train").get("status") or {}).get("slots") or []
        return [slot["node"] for slot in slots]

    @asynccontextmanager
    async def decide(self) -> AsyncIterator[None]:
        client = Client(httpx2.AsyncClient(transport=self.wire, base_url="http://api"), "sickbay-decide", self.clock)
        task = asyncio.create_task(DecideController(client, self.clock, Randomness(3)).run())
        try:
            await self.clock.sleep(5)
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def until(self, check: Callable[[], bool], seconds: float = 60) -> float:
        """Seconds until it is true, looked at every hundredth of a second."""
        begun = self.clock.monotonic()
        while not check():
            assert self.clock.monotonic() - begun < seconds
            await self.clock.sleep(TRIP / 10)
        return self.clock.monotonic() - begun


def _plain(obj: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(obj)
    return plain


async def test_the_record_and_its_slot_are_written_side_by_side() -> None:
    """Two round trips to the order: record and slot, then the order itself."""
    bench = Bench(1)
    async with bench.decide():
        bench.fault("n0")
        took = await bench.until(lambda: bench.step("n0") == ("Running", "Running"))
    assert round(took / TRIP) == 2
    assert bench.slots() == ["n0"]


async def test_a_new_repair_does_not_overtake_one_that_waits_for_the_same_slot() -> None:
    """The server refuses n0's slot until n1 falls sick too; whoever came first starts first."""
    bench = Bench(2)
    bench.wire.refuse = lambda request: request.method == "PATCH" and "repairpools" in request.url.path
    async with bench.decide():
        bench.fault("n0")
        await bench.until(lambda: bool(bench.repair("n0")))
    assert bench.slots() == []
    bench.wire.refuse = lambda request: False
    bench.fault("n1")
    bench.wait_for_slot("n0")
    async with bench.decide():
        await bench.until(lambda: "Running" in (bench.step("n0")[0], bench.step("n1")[0]))
        assert bench.step("n0") == ("Running", "Running")
        assert bench.step("n1")[0] == "WaitingSlot"


async def test_a_slot_whose_record_never_came_is_free_again() -> None:
    bench = Bench(1)
    bench.wire.refuse = lambda request: request.method == "POST" and "noderepairs" in request.url.path
    async with bench.decide():
        bench.fault("n0")
        await bench.until(lambda: bench.slots() == ["n0"])
    bench.fault("n0", "False")
    async with bench.decide():
        await bench.until(lambda: bench.slots() == [])
    assert bench.repair("n0") == {}


async def test_a_server_that_refuses_both_writes_is_asked_again_until_it_takes_them() -> None:
    """Neither failure is lost in the other, and nothing is left half done."""
    bench = Bench(1)
    bench.wire.refuse = lambda request: "sickbay.dev" in request.url.path and request.method != "GET"
    unraised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unraised.append(context))
    async with bench.decide():
        bench.fault("n0")
        await bench.clock.sleep(5)
        assert (bench.repair("n0"), bench.slots()) == ({}, [])
        bench.wire.refuse = lambda request: False
        await bench.until(lambda: bench.step("n0") == ("Running", "Running"))
    assert bench.slots() == ["n0"]
    assert unraised == []
