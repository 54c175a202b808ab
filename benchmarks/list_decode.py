"""What a LIST of GPU nodes costs through our client, against lightkube's full models.

    python benchmarks/list_decode.py [--nodes 5000] [--runs 3]

Both read the same pages of 500 from memory through httpx2, each in a process of its own. CPU time is that of reading
the whole list; memory is what the process grew by while it holds the objects. Goals: at most 0.4 of lightkube's CPU
time and at most 0.5 of its memory.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from typing import Any

from gpunode import Pages, resident

CPU_GOAL, MEMORY_GOAL = 0.4, 0.5


async def with_sickbay(transport: Pages) -> list[Any]:
    import httpx2

    from sickbay.api.kinds import NODE
    from sickbay.kube.client import Client

    client = Client(httpx2.AsyncClient(transport=transport, base_url="http://api"), "benchmark")
    return (await client.list(NODE)).items


async def with_lightkube(transport: Pages) -> list[Any]:
    from lightkube import AsyncClient
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.config.models import User
    from lightkube.resources.core_v1 import Node

    config = KubeConfig.from_one(cluster=KubeConfig.from_server("http://api").clusters["default"], user=User())
    client = AsyncClient(config=config, transport=transport)
    return [node async for node in client.list(Node, chunk_size=500)]


CONTENDERS = {"sickbay": with_sickbay, "lightkube": with_lightkube}


def measure(which: str, nodes: int) -> None:
    """In a process of its own: CPU seconds, bytes held, as JSON."""
    transport = Pages(nodes)
    asyncio.run(CONTENDERS[which](Pages(2)))  # imports and first use are not what is measured
    gc.collect()
    before = resident()

    async def run() -> tuple[float, int]:
        started = time.process_time()
        items = await CONTENDERS[which](transport)
        spent = time.process_time() - started
        gc.collect()
        assert len(items) == nodes
        return spent, resident() - before

    seconds, held = asyncio.run(run())
    print(json.dumps({"seconds": seconds, "held": held, "size": transport.size}))


def median(which: str, nodes: int, runs: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", which, "--nodes", str(nodes)]
    found = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(runs)]
    return {key: statistics.median(each[key] for each in found) for key in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--measure", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.nodes)
        return
    ours, theirs = (median(which, options.nodes, options.runs) for which in CONTENDERS)
    print(f"LIST of {options.nodes} nodes, {ours['size'] / 1e6:.1f} MB, median of {options.runs}")
    for name, found in (("sickbay", ours), ("lightkube", theirs)):
        print(f"  {name:10} {found['seconds']:.3f} s CPU   {found['held'] / options.nodes / 1024:.1f} KiB a node")
    for what, goal in (("seconds", CPU_GOAL), ("held", MEMORY_GOAL)):
        ratio = ours[what] / theirs[what]
        print(f"  {what:10} {ratio:.2f} of lightkube's, goal <= {goal}: {'met' if ratio <= goal else 'MISSED'}")


if __name__ == "__main__":
    main()
