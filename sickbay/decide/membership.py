"""Which pools a node belongs to, kept per version of the node: with 10,000 nodes it is asked tens of thousands of times
in one pass, and hardly ever has another answer."""

from __future__ import annotations

from sickbay.api.core import Node
from sickbay.api.repair_pool import RepairPool
from sickbay.decide.slots import owner_and_envelopes, rivals
from sickbay.kube.informer import Informer

Membership = tuple[RepairPool | None, list[RepairPool]]


class Memberships:
    """The pool that owns a node, and the envelopes that bind it too, as the informer has them."""

    def __init__(self, pools: Informer[RepairPool]) -> None:
        self._pools = pools
        self._kept: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {}
        """By node: its version, and the names of its pool ("" for none), its envelopes, and its rivals."""
        pools.on_change(self._pool_changed)

    def of(self, node: Node) -> Membership:
        name, version = node.name, node.metadata.resource_version
        kept = self._kept.get(name)
        if kept is None or kept[0] != version or not version:
            owner, envelopes = owner_and_envelopes(self._pools.all(), node)
            bound = tuple(envelope.metadata.name for envelope in envelopes)
            self._kept[name] = version, owner.metadata.name if owner else "", bound, rivals(self._pools.all(), node)
            return owner, envelopes
        _, owned_by, bound_by, _ = kept
        found = (self._pools.get(envelope) for envelope in bound_by)
        return self._pools.get(owned_by) if owned_by else None, [pool for pool in found if pool is not None]

    def rivals(self, node: Node) -> tuple[str, ...]:
        """The pools with rules that select the node, its owner first; empty where there is only one."""
        kept = self._kept.get(node.name)
        if kept is None or kept[0] != node.metadata.resource_version or not kept[0]:
            self.of(node)
            kept = self._kept[node.name]
        return kept[3]

    def forget(self, node: str) -> None:
        self._kept.pop(node, None)

    def _pool_changed(self, old: RepairPool | None, new: RepairPool | None) -> None:
        """Only a pool that comes, goes or has another spec moves nodes; its status changes all the time."""
        if old is None or new is None or old.spec != new.spec or old.metadata.uid != new.metadata.uid:
            self._kept.clear()
