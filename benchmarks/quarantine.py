"""From a fault's condition to the node in quarantine, on a real control plane, beside a bare "watch, then patch".

    python benchmarks/quarantine.py [--nodes 200] [--burst 40] [--trace]

etcd, kube-apiserver, controller-manager and scheduler run on this machine (needs Go, see CONTRIBUTING.md), with our
kinds, roles and admission policies, and with hollow nodes whose kubelets renew their Leases. Two processes wait there:

    ours   `sickbay controller`: NodeRepair, slot, plan, claim, cordon with the record of what was there before
    bare   one watch of Nodes; a node with the other condition is cordoned and annotated by one conditional patch

Both run as the controller's service account, in Python, over the same client. Samples alternate between them, one node
after the other, so that both meet the same noise; then a burst of faults at the same moment for each. A sample begins
when the API server has acknowledged the condition and ends when a watch shows the cordon. Wall time, since it is what
a user waits for; compare the ratio. Goal: our 99th percentile at most twice the bare one.

`--trace` prints where our time goes: the median moment of each request of ours after the condition was written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import aclosing
from pathlib import Path
from typing import Any

from bareloop import CONDITION as BARE
from bareloop import MARK as BARE_MARK

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sickbay.api import kinds, names  # noqa: E402
from sickbay.clock import Randomness, SystemClock, rfc3339  # noqa: E402
from sickbay.kube import nodes as node_writes  # noqa: E402
from sickbay.kube.client import Client  # noqa: E402
from sickbay.sim.machine import Machine  # noqa: E402
from tests.controlplane import build  # noqa: E402
from tests.support.audit import Entry  # noqa: E402
from tests.support.controlplane import CONTROLLER, NAMESPACE, ControlPlane  # noqa: E402
from tests.support.daemon import Daemon  # noqa: E402
from tests.support.hollow import PlaneKubelets, allow_kubelets  # noqa: E402
from tests.support.install import install  # noqa: E402
from tests.support.ports import free_ports  # noqa: E402

GOAL = 2.0
OURS = "BenchmarkOurs"
"""The condition that our controller reacts to."""
PAUSE = 0.6
"""Seconds after a sample: what follows a quarantine (report, Events, the question for the drain) is over by then."""
PATIENCE = 30.0

OBJECTS: tuple[dict[str, Any], ...] = (
    {
        "kind": "FaultType",
        "metadata": {"name": "benchmark.ours"},
        "spec": {
            "class": "GPU",
            "severity": "Critical",
            "scope": "Node",
            "match": [{"condition": {"type": OURS, "status": "True"}}],
            "remedy": [{"action": "RebootNode"}],
            "clearsBy": "reboot",
        },
    },
    {
        "kind": "RepairRule",
        "metadata": {"name": "benchmark"},
        "spec": {
            "rules": [
                {
                    "name": "all",
                    "faults": {},
                    "procedure": [{"step": "Quarantine"}, {"step": "Drain", "approval": {}}, {"step": "Repair"}],
                }
            ]
        },
    },
    {
        "kind": "RepairPool",
        "metadata": {"name": "benchmark"},
        "spec": {
            "nodeSelector": {"matchLabels": {"pool": "benchmark"}},
            "mode": "Act",
            "rule": "benchmark",
            "maxUnavailable": "100%",
            "storm": {"nodes": 0},
            "breaker": {"threshold": "100%", "maxNodes": 1000},
        },
    },
)


# --- the measuring process


class Bench:
    """One run on a control plane that is up."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.clock = SystemClock()
        self.admin = Client(plane.http_client(), "benchmark", self.clock)
        self.written: dict[str, float] = {}
        self.cordoned: dict[str, asyncio.Future[float]] = {}

    async def watch(self) -> None:
        """Note when a node that is waited for is cordoned."""
        listing = await self.admin.list(kinds.NODE)
        stream = self.admin.watch(kinds.NODE, listing.resource_version, timeout_seconds=3600)
        async with aclosing(stream) as events:
            async for event in events:
                node = event.object
                waiting = self.cordoned.get(node.name) if node is not None else None
                if node is not None and node.unschedulable and waiting is not None and not waiting.done():
                    waiting.set_result(time.monotonic())

    async def sample(self, name: str, condition: str) -> float:
        """Milliseconds from the written condition to the cordon."""
        waiting: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.cordoned[name] = waiting
        await self.set(name, condition, "True")
        written = time.monotonic()
        await asyncio.wait([waiting], timeout=PATIENCE)
        if not waiting.done():
            raise SystemExit(f"{name} was not cordoned within {PATIENCE:g} s of {condition}")
        return (waiting.result() - written) * 1000

    async def set(self, name: str, condition: str, status: str) -> None:
        now = rfc3339(self.clock.now())
        made = node_writes.condition(None, condition, status, "Benchmark", "by the benchmark", now)
        assert made is not None
        self.written[name] = self.clock.now().timestamp()
        await node_writes.set_conditions(self.admin, name, [made])

    async def put_back(self, name: str) -> None:
        """As if the bare loop had never been here."""
        del self.cordoned[name]
        await self.set(name, BARE, "False")
        gone = {"metadata": {"annotations": {BARE_MARK: None}}, "spec": {"unschedulable": None}}
        await self.admin.patch_merge(kinds.NODE, name, gone)


async def measure(plane: ControlPlane, nodes: int, burst: int) -> dict[str, list[float]]:
    """Milliseconds of each contender, alternating and in a burst."""
    bench, randomness = Bench(plane), Randomness(1)
    kubelets = PlaneKubelets(plane, bench.clock, randomness)
    tasks = [asyncio.create_task(kubelets.run())]
    made = [f"bench-{n:03}" for n in range(nodes)]
    for name in made:
        kubelets.join(Machine(name, 8, bench.clock, randomness.fork()), {"pool": "benchmark"})
    while not all(node.ready for node in (await bench.admin.list(kinds.NODE)).items):
        await bench.clock.sleep(0.2)
    tasks.append(asyncio.create_task(bench.watch()))
    await bench.clock.sleep(1.0)
    results: dict[str, list[float]] = defaultdict(list)
    try:
        for name in made[burst:]:
            results["bare"].append(await bench.sample(name, BARE))
            await bench.put_back(name)
            await bench.clock.sleep(PAUSE)
            results["ours"].append(await bench.sample(name, OURS))
            await bench.clock.sleep(PAUSE)
        for word, condition in (("bare burst", BARE), ("ours burst", OURS)):
            results[word] = await asyncio.gather(*(bench.sample(name, condition) for name in made[:burst]))
            if condition == BARE:
                await asyncio.gather(*(bench.put_back(name) for name in made[:burst]))
            await bench.clock.sleep(1.0)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await bench.admin.aclose()
    if plane.audit_log():
        trace(plane, bench.written, made[burst:])
    return results


# --- where the time goes


def trace(plane: ControlPlane, written: dict[str, float], sampled: list[str]) -> None:
    """The requests of ours between the condition and the cordon, by their median moment and duration."""
    entries = [e for e in plane.audit_log() if e.ours and e.verb != "watch" and e.resource not in ("leases", "events")]
    moments: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for name in sampled:
        begun = written[name]
        cordon = next(e for e in entries if _cordons(e, name) and e.received > begun)
        counted: dict[tuple[str, ...], int] = defaultdict(int)
        for entry in entries:
            if not begun <= entry.received <= cordon.received:
                continue
            word: tuple[str, ...] = (entry.agent, entry.verb, f"{entry.resource}/{entry.subresource}".rstrip("/"))
            counted[word] += 1
            moments[*word, str(counted[word])].append(((entry.received - begun) * 1000, entry.seconds * 1000))
    print("requests of ours since the condition was sent, medians (ms)")
    rows = sorted(moments.items(), key=lambda item: statistics.median(at for at, _ in item[1]))
    for word, seen in rows:
        at, took = (statistics.median(each) for each in zip(*seen, strict=True))
        print(f"  {at:7.1f} +{took:5.1f}  {' '.join(word[:3]):<48} #{word[3]} in {len(seen)} of {len(sampled)}")


def _cordons(entry: Entry, node: str) -> bool:
    return (entry.resource, entry.name, entry.verb, entry.agent) == ("nodes", node, "patch", "sickbay-execute")


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(results: dict[str, list[float]]) -> None:
    print(f"{'':<12} {'samples':>7} {'P50 ms':>8} {'P99 ms':>8} {'most ms':>8}")
    for word, values in results.items():
        print(
            f"{word:<12} {len(values):>7} {percentile(values, 0.5):>8.1f} {percentile(values, 0.99):>8.1f} "
            f"{max(values):>8.1f}"
        )
    for word in ("", " burst"):
        ours, bare_ = results[f"ours{word}"], results[f"bare{word}"]
        ratios = [percentile(ours, share) / percentile(bare_, share) for share in (0.5, 0.99)]
        verdict = "met" if ratios[1] <= GOAL else "MISSED"
        goal = f", goal P99 <= {GOAL:g}: {verdict}" if not word else ""
        print(f"ratio{word}: P50 {ratios[0]:.1f}, P99 {ratios[1]:.1f}{goal}")


def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(
            build.build(os.environ), Path(folder), controllers=True, scheduling=True, audit=options.trace
        )
        with plane:
            install(plane)
            allow_kubelets(plane)
            items = [{"apiVersion": names.API_VERSION, **made} for made in OBJECTS]
            applied = plane.kubectl(
                "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
            )
            assert applied.returncode == 0, applied.stderr
            kubeconfig = str(plane.kubeconfig_for_token(CONTROLLER, plane.controller_token()))
            contenders = _contenders(plane, kubeconfig)
            try:
                for each in contenders:
                    each.start()
                report(asyncio.run(measure(plane, options.nodes, options.burst)))
            finally:
                for each in contenders:
                    each.stop()


def _contenders(plane: ControlPlane, kubeconfig: str) -> list[Daemon]:
    (port,) = free_ports(1)
    logs = plane.folder / "logs"
    ours = [sys.executable, "-m", "sickbay", "controller", "--kubeconfig", kubeconfig, "--log-level", "warning"]
    loop, log = [sys.executable, str(HERE / "bareloop.py"), kubeconfig], logs / "bare.log"
    return [
        Daemon("ours", [*ours, "--listen", f"127.0.0.1:{port}"], logs / "ours.log", lambda: _leads(plane)),
        Daemon("bare", loop, log, lambda: "watching" in log.read_text()),
    ]


def _leads(plane: ControlPlane) -> bool:
    """Both components hold their Leases."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    held = {lease["metadata"]["name"] for lease in plane.admin().get(path).json().get("items", ())}
    return {"sickbay-decide", "sickbay-execute"} <= held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--burst", type=int, default=40)
    parser.add_argument("--trace", action="store_true", help="print our requests; the audit log costs both some time")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
