"""What decide reads: one informer per kind, and the joins between them."""

from __future__ import annotations

import asyncio
from typing import Any

from sickbay.api import kinds
from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule
from sickbay.clock import Clock, Randomness
from sickbay.decide import catalogue
from sickbay.decide.arbitration import ordered
from sickbay.decide.faults import Active, active_faults
from sickbay.decide.slots import owner_and_envelopes
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer

RESYNC = 300.0
"""Seconds between comparisons of a cache with a fresh list: the longest that a lost watch event goes unnoticed."""


class Sources:
    """Informers and what is derived from them. Derived values are kept per version of what they derive from."""

    def __init__(self, client: Client, clock: Clock, randomness: Randomness, resync: float = RESYNC) -> None:
        def informer(kind: kinds.Kind[Any], **options: Any) -> Informer[Any]:
            return Informer(client, kind, clock, randomness, resync=resync, **options)

        self.nodes: Informer[Node] = informer(kinds.NODE)
        self.pools: Informer[RepairPool] = informer(kinds.REPAIR_POOL)
        self.rules: Informer[RepairRule] = informer(kinds.REPAIR_RULE)
        self.types: Informer[dict[str, Any]] = informer(kinds.FAULT_TYPE.raw)
        self.holds: Informer[Hold] = informer(kinds.HOLD)
        self.repairs: Informer[NodeRepair] = informer(
            kinds.NODE_REPAIR, indexes={"node": lambda repair: [repair.spec.node.name]}
        )
        self.catalogue = catalogue.build()
        self._active: dict[str, tuple[str, int, list[Active]]] = {}
        self._edition = 0
        self.types.on_change(lambda _old, _new: self._stale())
        self._catalogue_stale = False

    @property
    def all(self) -> list[Informer[Any]]:
        return [self.nodes, self.pools, self.rules, self.types, self.holds, self.repairs]

    async def wait_synced(self) -> None:
        await asyncio.gather(*(informer.synced.wait() for informer in self.all))

    async def relist(self) -> None:
        """Read everything afresh: a new leader decides on nothing older than its term."""
        for informer in self.all:
            await informer.relist()

    def _stale(self) -> None:
        self._catalogue_stale = True

    def refresh_catalogue(self) -> bool:
        """Take in changed FaultType objects. True when that made a new edition."""
        if not self._catalogue_stale:
            return False
        self._catalogue_stale = False
        self.catalogue = catalogue.build(self.types.all())
        self._edition += 1
        return True

    def active(self, node: Node) -> list[Active]:
        """The node's active faults, the leading one first."""
        version = node.metadata.resource_version
        kept = self._active.get(node.name)
        if kept is not None and kept[0] == version and kept[1] == self._edition:
            return kept[2]
        found = ordered(active_faults(node, self.catalogue))
        self._active[node.name] = (version, self._edition, found)
        return found

    def forget(self, node: str) -> None:
        self._active.pop(node, None)

    def pools_of(self, node: Node) -> tuple[RepairPool | None, list[RepairPool]]:
        return owner_and_envelopes(self.pools.all(), node)

    def repairs_of(self, node: str) -> list[NodeRepair]:
        return self.repairs.by_index("node", node)

    def open_repair_of(self, node: Node) -> NodeRepair | None:
        """The open repair of this very node (by UID), if any."""
        mine = (r for r in self.repairs_of(node.name) if r.spec.node.uid == node.uid and not r.ended)
        return min(mine, key=lambda r: (r.metadata.creation_timestamp or "", r.metadata.name), default=None)

    def members(self, pool: RepairPool) -> list[Node]:
        return [node for node in self.nodes.all() if pool.spec.node_selector.matches(node.labels)]
