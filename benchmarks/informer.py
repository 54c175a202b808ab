"""How fast an informer follows a watch and how much it keeps for each node.

    python benchmarks/informer.py [--nodes 10000] [--events 20000]

The list comes in pages of 500 and the watch as one piece per event, from memory through httpx2. Events are MODIFIED of
12 KB nodes; the informer keeps an index by rack and calls one handler. CPU time of one process on one core; `bare` is
a loop of 1,000,000 steps in the same run, since machines differ. Goals: 10,000 events/s, less than 20 KiB a node.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time

import httpx2
from gpunode import Pages, encode, resident

from sickbay.api.core import Node
from sickbay.api.kinds import NODE
from sickbay.clock import Randomness, SystemClock
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer

EVENTS_GOAL, MEMORY_GOAL = 10_000, 20.0


def bare() -> float:
    started = time.process_time()
    total = 0
    for step in range(1_000_000):
        total += step & 3
    return time.process_time() - started


async def follow(nodes: int, events: int) -> tuple[float, float, float]:
    """CPU seconds of the list, KiB a node, events per CPU second."""
    texts = (encode(n % nodes, nodes + 1 + n) for n in range(events))
    transport = Pages(nodes, pieces=[b'{"type":"MODIFIED","object":' + text + b"}\n" for text in texts])
    client = Client(httpx2.AsyncClient(transport=transport, base_url="http://api"), "benchmark")
    informer = Informer(
        client, NODE, SystemClock(), Randomness(1), indexes={"rack": lambda n: [n.labels.get("rack", "")]}
    )
    gc.collect()
    before = resident()
    started = time.process_time()
    await informer.relist()
    listed = time.process_time() - started
    gc.collect()
    kept = (resident() - before) / nodes / 1024
    changes = 0

    def count(old: Node | None, new: Node | None) -> None:
        nonlocal changes
        changes += 1

    informer.on_change(count)
    changes = 0
    started = time.process_time()
    await informer._watch()
    spent = time.process_time() - started
    assert changes == events, (changes, events)
    return listed, kept, events / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=20_000)
    options = parser.parse_args()
    listed, kept, rate = asyncio.run(follow(options.nodes, options.events))
    step = bare()
    print(f"informer of {options.nodes} nodes, bare loop {step:.3f} s")
    print(f"  list     {listed:.2f} s CPU, {listed / step:.1f} bare loops")
    print(f"  memory   {kept:.1f} KiB a node, goal < {MEMORY_GOAL:g}: {verdict(kept < MEMORY_GOAL)}")
    each = f"{rate:,.0f}/s, {rate * step:,.0f} a bare loop"
    print(f"  events   {each}, goal {EVENTS_GOAL:,}/s: {verdict(rate >= EVENTS_GOAL)}")


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main()
