"""Take and give back slots: the conditional writes of `RepairPool.status.slots`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import structlog

from sickbay.api import kinds
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool, Slot
from sickbay.api.words import Phase
from sickbay.clock import Clock
from sickbay.decide import slots
from sickbay.decide.arbitration import rank
from sickbay.decide.sources import Sources
from sickbay.decide.wants import wanted_slot
from sickbay.kube import errors
from sickbay.kube.client import Client

log = structlog.get_logger(__name__)


class Reservations:
    """Grants slots by the order of need, and drops those that are needed no more."""

    def __init__(self, client: Client, clock: Clock, sources: Sources, check: Callable[[], None]) -> None:
        self._client = client
        self._clock = clock
        self._sources = sources
        self._check = check
        """Raises when we do not lead any more; asked before every write."""

    def held(self, repair: NodeRepair, node: Node) -> frozenset[str]:
        """Kinds of slots that the repair holds in its pool and in every envelope of its node."""
        binding = self._binding(repair, node)
        if not binding:
            return frozenset()
        names = repair.metadata.name
        each = [{s.kind for s in pool.status.slots if s.repair == names} for pool in binding]
        return frozenset(set.intersection(*each))

    async def take(self, repair: NodeRepair, node: Node, kind: str) -> str:
        """Reserve a slot everywhere it is needed. Returns "" when it is held, otherwise why it is not."""
        binding = self._binding(repair, node)
        if not binding:
            return "the repair's pool is gone"
        taken: list[RepairPool] = []
        for pool in sorted(binding, key=lambda p: p.metadata.name):
            why = await self._take_in(pool, repair, node, kind)
            if why:
                for each in taken:
                    await self._drop(each, repair, kind)
                return why
            taken.append(pool)
        return ""

    async def prune(self, pool: RepairPool) -> None:
        """Drop the slots of this pool that are needed no more."""
        repairs = {r.metadata.name: r for r in self._sources.repairs.all()}
        nodes = {s.node: n for s in pool.status.slots if (n := self._sources.nodes.get(s.node)) is not None}
        kept = slots.kept(pool, repairs, nodes, self._clock.now())
        if len(kept) != len(pool.status.slots):
            await self._write(pool, kept)

    def waiting(self, pool: RepairPool, kind: str = "") -> list[NodeRepair]:
        """Open repairs in this pool's range that wait for a slot, the most needy first."""
        found = []
        for repair in self._sources.repairs.all():
            if repair.ended or repair.status.phase != Phase.WAITING_SLOT:
                continue
            node = self._sources.nodes.get(repair.spec.node.name)
            if node is None or not pool.spec.node_selector.matches(node.labels):
                continue
            if not kind or wanted_slot(repair) == kind:
                found.append(repair)
        return sorted(found, key=self._need)

    def _need(self, repair: NodeRepair) -> tuple[tuple[int, ...], str, str]:
        """Class, severity and strength of the leading fault, then age."""
        lead = repair.spec.faults[0].type if repair.spec.faults else ""
        known = self._sources.catalogue.get(lead)
        order = tuple(-part for part in rank(known)) if known is not None else (0, 0, 0)
        return order, repair.metadata.creation_timestamp or "", repair.metadata.name

    def _binding(self, repair: NodeRepair, node: Node) -> list[RepairPool]:
        own = self._sources.pools.get(repair.spec.pool.name)
        if own is None:
            return []
        _, envelopes = self._sources.pools_of(node)
        return [own, *envelopes]

    async def _take_in(self, pool: RepairPool, repair: NodeRepair, node: Node, kind: str) -> str:
        pool = self._sources.pools.get(pool.metadata.name) or pool
        if slots.holds_slot(pool, repair.metadata.name, kind):
            return ""
        view = slots.PoolView(pool, self._sources.members(pool))
        why = slots.refusal(view, node, kind) or self._turn(view, repair, node, kind)
        if why:
            return why
        await self._write(pool, slots.granted(view, repair, node, kind, self._clock.now()))
        return ""

    def _turn(self, view: slots.PoolView, repair: NodeRepair, node: Node, kind: str) -> str:
        """Not our turn while more needy repairs wait than there is room for."""
        ahead = [r for r in self.waiting(view.pool, kind) if self._need(r) < self._need(repair)]
        if len(ahead) < slots.room(view, kind) or (kind == slots.UNAVAILABLE and node.name in slots.unavailable(view)):
            return ""
        return f"{len(ahead)} repairs in greater need wait for the same slot"

    async def _drop(self, pool: RepairPool, repair: NodeRepair, kind: str) -> None:
        pool = self._sources.pools.get(pool.metadata.name) or pool
        kept = [s for s in pool.status.slots if not (s.repair == repair.metadata.name and s.kind == kind)]
        await self._write(pool, kept)

    async def _write(self, pool: RepairPool, kept: list[Slot]) -> None:
        """The conditional write. A Conflict is raised: whoever asked looks again at what stands there now."""
        self._check()
        meta = {"resourceVersion": pool.metadata.resource_version, "uid": pool.metadata.uid}
        body = {"metadata": meta, "status": {"slots": [msgspec.to_builtins(s) for s in kept]}}
        try:
            written = await self._client.patch_merge(kinds.REPAIR_POOL, pool.metadata.name, body, subresource="status")
        except errors.Conflict:
            fresh = await self._client.get(kinds.REPAIR_POOL, pool.metadata.name)
            self._sources.pools.observe_write(fresh)
            raise
        self._sources.pools.observe_write(written)
