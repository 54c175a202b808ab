"""What deciding costs at scale: CPU time of `decide` over a large fleet, API server and network aside.

    python benchmarks/decide.py [--nodes 10000] [--repairs 200]

Nodes of 12 KB on our own API server in this process; some have a fault and an open repair that waits for its approval.
Figures are CPU seconds of this process, and their ratio to a bare loop of 1,000,000 steps measured in the same run.

    start          from the start of the process' work (empty caches) to the first NodeRepair written
    full pass      every node, repair and pool judged anew, as after a change of a rule or a catalogue
    quiet pass     the same with nothing changed: what each look-again costs
    one node       one condition of one healthy node changes, from the watch to the end of the decision

`start` contains two lists of everything, the server's side too: one into the empty caches, one after the lease is won.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import httpx2
import structlog
from gpunode import gpu_node

from sickbay.api import kinds
from sickbay.api.crds import manifests
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.store import STRATEGIC, Store
from sickbay.apiserver.transport import DirectTransport
from sickbay.apiserver.writes import SYSTEM
from sickbay.clock import Randomness, SystemClock
from sickbay.decide.controller import DecideController
from sickbay.kube.client import Client

POOL: dict[str, Any] = {
    "metadata": {"name": "train"},
    "spec": {
        "nodeSelector": {"matchLabels": {"pool": "train"}},
        "mode": "Act",
        "rule": "gated",
        "maxUnavailable": "50%",
        "maxParallelRepairs": "50%",
        "breaker": {"threshold": "90%", "maxNodes": 100000},
        "storm": {"nodes": 0},
    },
}
RULE: dict[str, Any] = {
    "metadata": {"name": "gated"},
    "spec": {
        "rules": [
            {
                "name": "all",
                "faults": {"severities": ["Critical", "Error"]},
                "procedure": [
                    {"step": "Quarantine", "approval": {"by": "People", "timeout": "24h"}},
                    *({"step": step} for step in ("Drain", "Repair", "Validate", "Unquarantine")),
                ],
            }
        ]
    },
}
FAULT = {"type": "NvidiaXID79Error", "status": "True", "reason": "GpuFellOffBus", "message": "x"}
HEALTHY = {"type": "NvidiaXID79Error", "status": "False", "reason": "Recovered", "message": "x"}


def bare_loop() -> float:
    started, total = time.process_time(), 0
    for step in range(1_000_000):
        total += step
    return time.process_time() - started


class Bench:
    def __init__(self, nodes: int, repairs: int) -> None:
        self.clock, self.randomness = SystemClock(), Randomness(1)
        self.store = Store(self.clock, self.randomness)
        for definition in manifests():
            self.store.create("customresourcedefinitions.apiextensions.k8s.io", definition)
        self.store.create("namespaces", {"metadata": {"name": "sickbay-system"}})
        self.store.create("repairrules.sickbay.dev", RULE)
        self.store.create("repairpools.sickbay.dev", POOL)
        for number in range(nodes):
            self.store.create("nodes", self._node(number, faulty=number < repairs))
        self.client = self._client()
        self.controller = DecideController(self.client, self.clock, self.randomness)

    def _client(self) -> Client:
        app = ApiServer(self.store, anonymous=SYSTEM)
        http = httpx2.AsyncClient(transport=DirectTransport(app), base_url="http://api")
        return Client(http, "sickbay-decide", self.clock)

    def _node(self, number: int, *, faulty: bool) -> dict[str, Any]:
        node = gpu_node(number, 1)
        for field in ("uid", "resourceVersion", "creationTimestamp"):
            node["metadata"].pop(field, None)
        node["metadata"].setdefault("labels", {})["pool"] = "train"
        if faulty:
            node["status"]["conditions"].append({**FAULT, "lastTransitionTime": "2026-01-01T00:00:00Z"})
        return node

    async def until(self, done: Callable[[], bool]) -> float:
        """CPU seconds until it holds."""
        started = time.process_time()
        while not done():  # noqa: ASYNC110 - nothing tells when a queue is quiet
            await asyncio.sleep(0)
        return time.process_time() - started

    def repairs(self) -> list[dict[str, Any]]:
        return self.store.list("noderepairs.sickbay.dev")

    def quiet(self) -> bool:
        return self.controller._queue.quiet

    async def lists(self) -> float:
        started = time.process_time()
        await self.client.list(kinds.NODE)
        return time.process_time() - started


async def measure(nodes: int, repairs: int, rounds: int, show: Callable[[str, float], None]) -> None:
    bench = Bench(nodes, repairs)
    await bench.lists()  # texts of the objects are made once, by whoever asks first
    alone = await bench.lists()
    show("one LIST of all nodes, both sides", alone)
    running = asyncio.ensure_future(bench.controller.run())
    show("start to the first decision", await bench.until(lambda: bool(bench.repairs())))
    open_ones = await bench.until(lambda: _waiting(bench) == repairs and bench.quiet())
    show(f"{repairs} repairs opened, each", open_ones / repairs)
    for name, wake in (
        ("full pass", bench.controller._wakeups.everything),
        ("quiet pass", bench.controller._wakeups.all),
    ):
        taken = []
        for _ in range(3):
            wake()
            taken.append(await bench.until(bench.quiet))
        show(name, sorted(taken)[1])
    show("one changed node", await changed(bench, nodes, rounds))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _waiting(bench: Bench) -> int:
    return sum(1 for repair in bench.repairs() if repair.get("status", {}).get("phase") == "WaitingApproval")


async def changed(bench: Bench, nodes: int, rounds: int) -> float:
    """Seconds for one node, the store's write left out."""
    name, total = f"{bench.store.list('nodes')[nodes - 1]['metadata']['name']}", 0.0
    for number in range(rounds):
        condition = {**HEALTHY, "message": f"look {number}", "status": "Unknown" if number % 2 else "False"}
        bench.store.patch("nodes", name, {"status": {"conditions": [condition]}}, STRATEGIC, subresource="status")
        version = bench.store.get("nodes", name)["metadata"]["resourceVersion"]

        def seen(version: str = version) -> bool:
            node = bench.controller._sources.nodes.get(name)
            return node is not None and node.metadata.resource_version == version and bench.quiet()

        total += await bench.until(seen)
    return total / rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--repairs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    loop = min(bare_loop() for _ in range(3))

    def show(what: str, seconds: float) -> None:
        print(f"{what:36} {seconds * 1000:9.2f} ms  {seconds / loop:8.2f} bare loops", flush=True)

    asyncio.run(measure(options.nodes, options.repairs, options.rounds, show))


if __name__ == "__main__":
    main()
