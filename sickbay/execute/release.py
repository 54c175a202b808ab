"""Unquarantine: take back exactly what Quarantine recorded, and what hangs on it."""

from __future__ import annotations

from collections.abc import Callable

from sickbay.api.core import Node
from sickbay.api.node_repair import Prior
from sickbay.execute import lifecycle
from sickbay.execute.marks import clear_ops, read_mark
from sickbay.execute.progress import Look, Progress, done
from sickbay.kube.client import Client
from sickbay.kube.nodelease import NodeLease
from sickbay.kube.nodes import patch_node


class Release:
    """The cordon first, everything else second: a Lease or a condition that cannot be removed delays no node."""

    def __init__(self, client: Client, observe: Callable[[Node], None], leases: NodeLease) -> None:
        self._client = client
        self._observe = observe
        self._leases = leases

    async def look(self, look: Look) -> Progress:
        node, repair = look.node, look.repair
        mark = read_mark(node)
        recorded = mark.prior if mark is not None and mark.uid == repair.metadata.uid else None
        prior = recorded or repair.status.prior or Prior()
        ops = clear_ops(node, prior, repair.metadata.uid)
        node = await patch_node(self._client, node, ops)
        self._observe(node)
        await lifecycle.remove(self._client, node)
        await self._leases.release(node.name)
        return done("uncordoned" if not node.unschedulable else "our marks are gone; the cordon is not ours")
