"""Which pools a node belongs to, kept per version of the node: with 10,000 nodes it is asked tens of thousands of times
in one pass, and hardly ever has another answer."""

from __future__ import annotations

from sickbay.api.core import Node
from sickbay.api.isolation import read_isolation
from sickbay.api.repair_pool import RepairPool
from sickbay.decide.slots import out_of_service, owner_and_envelopes, rivals
from sickbay.decide.tally import Facts
from sickbay.kube.informer import Informer

Membership = tuple[RepairPool | None, list[RepairPool]]


class Memberships:
    """The pool that owns a node, and the envelopes that bind it too, as the informer has them."""

    def __init__(self, pools: Informer[RepairPool]) -> None:
        self._pools = pools
        self._kept: dict[str, tuple[str, str, tuple[str, ...], Facts]] = {}
        """By node: its version, the names of its pool ("" for none) and its envelopes, and what it counts for."""
        pools.on_change(self._pool_changed)

    def of(self, node: Node) -> Membership:
        name, version = node.name, node.metadata.resource_version
        kept = self._kept.get(name)
        if kept is None or kept[0] != version or not version:
            owner, envelopes = owner_and_envelopes(self._pools.all(), node)
            bound = tuple(envelope.metadata.name for envelope in envelopes)
            facts = self._facts(node, [*([owner] if owner is not None else []), *envelopes])
            self._kept[name] = version, owner.metadata.name if owner else "", bound, facts
            return owner, envelopes
        _, owned_by, bound_by, _ = kept
        found = (self._pools.get(envelope) for envelope in bound_by)
        return self._pools.get(owned_by) if owned_by else None, [pool for pool in found if pool is not None]

    def facts(self, node: Node) -> Facts:
        """What the node contributes to its pools, its faults aside: that follows from the node and the pools' specs."""
        kept = self._kept.get(node.name)
        if kept is None or kept[0] != node.metadata.resource_version or not kept[0]:
            self.of(node)
            kept = self._kept[node.name]
        return kept[3]

    def _facts(self, node: Node, pools: list[RepairPool]) -> Facts:
        keys = sorted({domain.key for pool in pools for domain in pool.spec.domains})
        return Facts(
            pools=tuple(pool.metadata.name for pool in pools),
            out=out_of_service(node),
            isolated=bool(read_isolation(node)),
            domains=tuple((key, node.labels[key]) for key in keys if key in node.labels),
            rivals=rivals(self._pools.all(), node),
        )

    def forget(self, node: str) -> None:
        self._kept.pop(node, None)

    def _pool_changed(self, old: RepairPool | None, new: RepairPool | None) -> None:
        """Only a pool that comes, goes or has another spec moves nodes; its status changes all the time."""
        if old is None or new is None or old.spec != new.spec or old.metadata.uid != new.metadata.uid:
            self._kept.clear()
