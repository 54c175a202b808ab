"""How fast the API server's store is, in CPU time on one core.

    python benchmarks/store.py [--nodes 10000] [--patches 20000]

Objects are nodes of about 12 KB of JSON: labels, annotations, conditions, images. Each figure is CPU seconds of this
process, and, since machines differ, its ratio to a bare loop of 1,000,000 steps measured in the same run.

    patches      merge and strategic patches of one field, with five watchers that read everything as JSON
    client       the same patches through our client and the server in process, beside an app that does nothing
    list         LIST of all nodes, from texts that are there and from none
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import bare_loop, cpu
from sickbay.api.kinds import Kind
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.listing import Page
from sickbay.apiserver.reading import list_json
from sickbay.apiserver.store import JSON, MERGE, STRATEGIC, Store
from sickbay.apiserver.table import Filter
from sickbay.apiserver.transport import DirectTransport, InProcessTransport
from sickbay.apiserver.writes import Caller
from sickbay.clock import Randomness, SystemClock
from sickbay.kube.client import Client

WATCHERS = 5


def node(number: int) -> dict[str, Any]:
    """A GPU node as clusters have them: 12 KB."""
    kinds = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
    faults = (*kinds, *(f"NvidiaXID{code}Error" for code in (13, 31, 48, 63, 74, 79, 94)))
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": f"{kind}IsWhatItIs",
            "message": f"the kubelet has looked at {kind} and found what it says",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind in faults
    ]
    images = [
        {
            "names": [
                f"registry.example.com/team/image-{i}@sha256:{'0' * 64}",
                f"registry.example.com/team/image-{i}:1",
            ],
            "sizeBytes": 123456789 + i,
        }
        for i in range(30)
    ]
    return {
        "metadata": {
            "name": f"node-{number:05}",
            "labels": {f"example.com/label-{i}": f"value-{i}" for i in range(28)},
            "annotations": {f"example.com/annotation-{i}": "x" * 60 for i in range(12)},
        },
        "spec": {"providerID": f"example://{number}", "podCIDR": "10.0.0.0/24"},
        "status": {
            "capacity": {"cpu": "128", "memory": "2Ti", "nvidia.com/gpu": "8"},
            "allocatable": {"cpu": "128", "memory": "2Ti", "nvidia.com/gpu": "8"},
            "conditions": conditions,
            "images": images,
            "nodeInfo": {"bootID": f"boot-{number}", "kubeletVersion": "v1.36.3"},
        },
    }


NODE_JSON = json.dumps(node(1), separators=(",", ":")).encode()
RAW_NODE: Kind[dict[str, Any]] = Kind("", "v1", "Node", "nodes", False, dict)


class Watched:
    """Watchers that turn every event into text, as the app does."""

    def __init__(self, store: Store, count: int) -> None:
        self.watchers = [store.watch("nodes") for _ in range(count)]

    def read(self) -> int:
        return sum(len(event.entry.json()) for watcher in self.watchers for event in watcher.drain())


def patch_many(store: Store, count: int, watched: Watched, body: Callable[[int], Any], kind: str, sub: str) -> None:
    names = sorted(store.table("nodes").entries)
    for number in range(count):
        store.patch("nodes", names[number % len(names)], body(number), kind, subresource=sub)
        watched.read()


def label(number: int) -> Any:
    return {"metadata": {"annotations": {"example.com/annotation-1": str(number)}}}


def cordon(number: int) -> Any:
    return [{"op": "add", "path": "/metadata/annotations/example.com~1annotation-2", "value": str(number)}]


def condition(number: int) -> Any:
    return {"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": f"2026-01-01T00:{number % 60:02}:00Z"}]}}


def client_of(transport: httpx2.AsyncBaseTransport) -> Client:
    return Client(httpx2.AsyncClient(transport=transport, base_url="http://x"), "bench")


async def patch_through(transport: httpx2.AsyncBaseTransport, names: list[str], count: int) -> None:
    client = client_of(transport)
    for number in range(count):
        await client.patch_merge(RAW_NODE, names[number % len(names)], label(number))


async def null_app(scope: Any, receive: Any, send: Any) -> None:
    """The least an ASGI app can do, with an answer of the same size."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": NODE_JSON, "more_body": False})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--patches", type=int, default=20_000)
    options = parser.parse_args()
    store = Store(SystemClock(), Randomness(1))
    loop = cpu(bare_loop)

    def show(what: str, seconds: float, count: int) -> None:
        print(f"{what:34} {seconds:7.3f} s  {count / seconds:9,.0f}/s  {seconds / loop:7.1f} loops")

    def create() -> None:
        for number in range(options.nodes):
            store.create("nodes", node(number))

    print(f"bare loop {loop:.3f} s; one node is {len(json.dumps(node(1), separators=(',', ':'))):,} bytes of JSON")
    show("create", cpu(create), options.nodes)
    table, view = store.table("nodes"), store.resources.find("", "v1", "nodes")
    assert view is not None
    whole = Page(table.select(Filter()), store.revision)
    show("list, texts made", cpu(lambda: list_json(view, whole)), options.nodes)
    show("list, texts there", cpu(lambda: list_json(view, Page(table.select(Filter()), 1))), options.nodes)
    watched = Watched(store, WATCHERS)
    for what, body, kind, sub in (
        ("merge patches, 5 watchers", label, MERGE, ""),
        ("JSON patches, 5 watchers", cordon, JSON, ""),
        ("strategic status, 5 watchers", condition, STRATEGIC, "status"),
    ):
        show(what, cpu(lambda: patch_many(store, options.patches, watched, body, kind, sub)), options.patches)  # noqa: B023
    for watcher in watched.watchers:
        watcher.close()
    few = options.patches // 4
    app = ApiServer(store, anonymous=Caller("bench", ("system:masters",)))
    names = sorted(table.entries)
    for what, transport in (
        ("merge patches through our client", DirectTransport(app)),
        ("the same, ASGI to the letter", InProcessTransport(app)),
        ("a null app through our client", InProcessTransport(null_app)),
    ):
        show(what, cpu(lambda: asyncio.run(patch_through(transport, names, few))), few)  # noqa: B023


if __name__ == "__main__":
    main()
