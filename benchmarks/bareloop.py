"""The yardstick of `quarantine.py`: watch Nodes, cordon and annotate each that has the condition, by one patch.

    python benchmarks/bareloop.py KUBECONFIG

It records nothing, asks nobody and keeps no limit. The patch is conditional on the version that the watch brought, as
every write of a Node should be.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing, suppress

from sickbay.api.core import Node
from sickbay.api.kinds import NODE
from sickbay.clock import SystemClock
from sickbay.kube import config, errors
from sickbay.kube.nodes import annotation_ops, patch_node, unschedulable_ops

CONDITION = "BenchmarkBare"
MARK = "benchmark.example.com/quarantine"


async def run(kubeconfig: str) -> None:
    client = config.connect(kubeconfig, "", "bare-loop", SystemClock())
    listing = await client.list(NODE)
    print("watching", flush=True)
    async with aclosing(client.watch(NODE, listing.resource_version, timeout_seconds=3600)) as events:
        async for event in events:
            node = event.object
            if node is not None and event.type != "DELETED" and _sick(node) and not node.unschedulable:
                with suppress(errors.Conflict):  # changed since: the event of that change comes next
                    await patch_node(client, node, annotation_ops(node, {MARK: "{}"}) + unschedulable_ops(node, True))


def _sick(node: Node) -> bool:
    found = node.condition(CONDITION)
    return found is not None and found.status == "True"


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1]))
