"""Who may start: slots in the status of a pool, and the rule by which they are granted.

A start is the reservation of a slot by a conditional write of `RepairPool.status.slots`. Two controllers at once, or a
controller that has just taken over, therefore never exceed a cap: the second write fails on the resourceVersion, and is
judged anew against what stands there.

    Unavailable   before Quarantine; lasts until the cordon stands on the Node, which is counted itself from then on
    Repair        while Drain or a disruptive act runs
    Validate      while Validate runs
    Isolate       before a card is isolated; lasts until that stands on the Node

A repair reserves in its own pool and in every envelope (a pool without a rule) that selects its node. A group reserves
as one, under its id: one slot per member before Quarantine, in one write per pool, and a single one after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sickbay.api import names, quantity
from sickbay.api.core import Node
from sickbay.api.isolation import read_isolation
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import marked_by
from sickbay.api.repair_pool import RepairPool, Slot
from sickbay.clock import parse_time, rfc3339
from sickbay.decide.wants import wanted_slot

UNAVAILABLE, REPAIR, VALIDATE, ISOLATE = "Unavailable", "Repair", "Validate", "Isolate"

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "huawei.com/Ascend910", "gpu.intel.com/i915")
"""Extended resources that count as GPUs; MIG and shared variants carry a suffix and are not needed to see capacity."""

SETTLE = timedelta(seconds=15)
"""The length of a leader's lease: until then a reader's view of the repair may lag behind the slot."""

MIN_VALIDATIONS = 4
"""A percentage of validations never means fewer than this many (api.md: 10 %, at least 4)."""

MAX_SLOTS = 256
"""maxItems of `status.slots`: a write beyond it would be refused as a whole, breaker and counts with it."""


@dataclass(frozen=True)
class PoolView:
    """A pool with what its caps are judged by."""

    pool: RepairPool
    size: int
    """How many nodes it selects."""
    out: frozenset[str] = frozenset()
    """Names of those that are out of service for any reason."""
    domain: Callable[[str, str], frozenset[str]] = lambda _key, _value: frozenset()
    """Label key and value to the names of the pool's nodes that carry them; for the keys of its `domains`."""
    moving: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Nodes that are out by our hand and not with people or third parties, with their labels."""
    isolated: frozenset[str] = frozenset()
    """Names of those with isolated cards."""
    begun: Mapping[str, str] = field(default_factory=dict)
    """By key: the domain in which the latest repair has started, while others of it wait or run."""


def offers_capacity(node: Node) -> bool:
    """False for a node nobody can use anyway: not Ready, or a GPU node without an allocatable GPU."""
    if not node.ready:
        return False
    gpus = [key for key in node.status.capacity if key in GPU_RESOURCES]
    return not gpus or any(str(node.status.allocatable.get(key, "0")) not in ("0", "") for key in gpus)


def out_of_service(node: Node) -> bool:
    """Unavailable for any reason, ours or not."""
    return node.unschedulable or names.QUARANTINE in node.annotations or not offers_capacity(node)


def unavailable(view: PoolView) -> frozenset[str]:
    """Names of the pool's nodes that count in maxUnavailable: out of service, or about to be."""
    return view.out | {slot.node for slot in view.pool.status.slots if slot.kind == UNAVAILABLE}


def limit_of(view: PoolView, kind: str) -> int:
    """The cap of one kind of slot in whole nodes. Percentages round down, but never below the stated least."""
    spec, size = view.pool.spec, view.size
    if kind == UNAVAILABLE:
        return quantity.resolve(spec.max_unavailable, size, at_least=1)
    if kind == REPAIR:
        return quantity.resolve(spec.max_parallel_repairs, size, at_least=1)
    if kind == ISOLATE:
        return quantity.resolve(spec.device_isolation.max_nodes, size, at_least=1)
    return quantity.resolve(spec.max_parallel_validations, size, at_least=MIN_VALIDATIONS)


def owner(repair: NodeRepair) -> str:
    """Under which name it holds its slots: the group's id, or its own."""
    return repair.spec.group.id or repair.metadata.name


def refusal(view: PoolView, nodes: Sequence[Node], kind: str) -> str:
    """Why this pool cannot grant the slot for these nodes now, in words for people; "" when it can.

    Several nodes are those of a group: all of them, or none.
    """
    cap = limit_of(view, kind)
    wanted = len(nodes) if kind == UNAVAILABLE else 1
    if len(view.pool.status.slots) + wanted > MAX_SLOTS:
        return f"{MAX_SLOTS} slots of pool {view.pool.metadata.name} are taken, and its status holds no more"
    if kind == UNAVAILABLE:
        counted = unavailable(view)
        fresh = [node for node in nodes if node.name not in counted]
        if not fresh or len(counted) + len(fresh) <= cap:
            return ""
        text = f"{len(counted)} of at most {cap} nodes of {view.pool.metadata.name} are out of service (maxUnavailable)"
        return text if len(fresh) == 1 else f"{text}, and the group takes {len(fresh)} more"
    if kind == ISOLATE:
        with_cards = isolating(view)
        if nodes[0].name in with_cards or len(with_cards) < cap:
            return ""
        return f"{len(with_cards)} of at most {cap} nodes have isolated cards (deviceIsolation.maxNodes)"
    used = sum(1 for slot in view.pool.status.slots if slot.kind == kind)
    if used < cap:
        return ""
    setting = "maxParallelRepairs" if kind == REPAIR else "maxParallelValidations"
    return f"{used} of at most {cap} run in pool {view.pool.metadata.name} ({setting})"


def never_fits(view: PoolView, nodes: Sequence[Node]) -> str:
    """Why these nodes can never be out of service at once under this pool's limits; "" when they can."""
    cap, name = limit_of(view, UNAVAILABLE), view.pool.metadata.name
    if len(nodes) > cap:
        return f"maxUnavailable of pool {name} is {cap} nodes, the group has {len(nodes)} in service there"
    return ""


def isolating(view: PoolView) -> frozenset[str]:
    """Names of the pool's nodes with isolated cards, or about to have some."""
    return view.isolated | {slot.node for slot in view.pool.status.slots if slot.kind == ISOLATE}


def room(view: PoolView, kind: str) -> int:
    """How many more slots of this kind the pool can give; at least 0."""
    if kind == UNAVAILABLE:
        return max(0, limit_of(view, kind) - len(unavailable(view)))
    if kind == ISOLATE:
        return max(0, limit_of(view, kind) - len(isolating(view)))
    return max(0, limit_of(view, kind) - sum(1 for slot in view.pool.status.slots if slot.kind == kind))


def held(pool: RepairPool, repair: NodeRepair) -> frozenset[str]:
    """Kinds of slots that the repair, or its group for it, holds in this pool."""
    name, node = owner(repair), repair.spec.node.name
    mine = (s for s in pool.status.slots if s.repair == name)
    return frozenset(s.kind for s in mine if s.kind not in (UNAVAILABLE, ISOLATE) or s.node == node)


def lacking(pool: RepairPool, repair: NodeRepair, nodes: Sequence[Node], kind: str) -> list[Node]:
    """Those of these nodes for which the slot still has to be taken. One slot does for all but before Quarantine."""
    mine = [s for s in pool.status.slots if s.repair == owner(repair) and s.kind == kind]
    if kind not in (UNAVAILABLE, ISOLATE):
        return [] if mine else list(nodes[:1])
    there = {slot.node for slot in mine}
    return [node for node in nodes if node.name not in there]


def granted(view: PoolView, repair: NodeRepair, nodes: Sequence[Node], kind: str, now: datetime) -> list[Slot]:
    """The pool's slots with these added; the caller has asked `refusal` on the same view."""
    name, since = owner(repair), rfc3339(now)
    return [*view.pool.status.slots, *(Slot(repair=name, node=node.name, kind=kind, since=since) for node in nodes)]


def kept(
    pool: RepairPool, repairs: Mapping[str, Sequence[NodeRepair]], nodes: Mapping[str, Node], now: datetime
) -> list[Slot]:
    """The slots that are still needed: those of repairs that are open and at the point the slot is for.

    repairs  the records of each holder: one, or those of a group's members
    """
    return [s for s in pool.status.slots if _needed(s, repairs.get(s.repair, ()), nodes.get(s.node), now)]


def _needed(slot: Slot, holders: Sequence[NodeRepair], node: Node | None, now: datetime) -> bool:
    if slot.kind in (UNAVAILABLE, ISOLATE):
        holders = [repair for repair in holders if repair.spec.node.name == slot.node]
    if not holders:
        return fresh(slot, now)
    standing = [repair for repair in holders if not repair.ended]
    if not standing:
        return False
    marked = node is not None and any(quarantined_by(node, repair.metadata.uid) for repair in standing)
    if slot.kind == UNAVAILABLE and marked:
        return False
    if slot.kind == ISOLATE:
        shown = node is not None and bool(read_isolation(node))
        return not shown and (fresh(slot, now) or any(repair.spec.plan.isolate for repair in standing))
    return any(wanted_slot(repair) == slot.kind for repair in standing) or fresh(slot, now)


def fresh(slot: Slot, now: datetime) -> bool:
    """Too new to be judged by a view of the repair that may be older than the slot."""
    return now - (parse_time(slot.since) if slot.since else now) < SETTLE


def quarantined_by(node: Node, uid: str) -> bool:
    """True when the node stands cordoned with the mark of this repair."""
    return node.unschedulable and marked_by(node, uid)


def selecting(pools: Iterable[RepairPool], node: Node) -> list[RepairPool]:
    """The pools whose selector matches the node, oldest first, then by name."""
    found = [
        pool for pool in pools if pool.spec.node_selector.matches(node.labels) and not pool.spec.node_selector.empty
    ]
    return sorted(found, key=lambda pool: (pool.metadata.creation_timestamp or "", pool.metadata.name))


def rivals(pools: Iterable[RepairPool], node: Node) -> tuple[str, ...]:
    """The pools with rules that select the node, the one that owns it first; empty where there is at most one."""
    found = tuple(pool.metadata.name for pool in selecting(pools, node) if pool.spec.rule)
    return found if len(found) > 1 else ()


def owner_and_envelopes(pools: Iterable[RepairPool], node: Node) -> tuple[RepairPool | None, list[RepairPool]]:
    """The pool a node belongs to (of several with rules the oldest) and the envelopes that bind it too."""
    matching = selecting(pools, node)
    owner = next((pool for pool in matching if pool.spec.rule), None)
    return owner, [pool for pool in matching if not pool.spec.rule]
