"""Take and give back slots, and keep a pool's breaker and storms: the conditional writes of `RepairPool.status`.

All of it stands in one object and is judged and written together, so that no start is granted on a breaker of an
earlier moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sickbay.api import kinds, names
from sickbay.api.core import Node, ObjectReference
from sickbay.api.meta import Condition
from sickbay.api.node_repair import NodeRepair
from sickbay.api.patches import merge_diff
from sickbay.api.repair_pool import RepairPool, RepairPoolStatus
from sickbay.api.words import BreakerState, Pacing, Phase
from sickbay.clock import Clock, rfc3339
from sickbay.decide import breaker, daemonsets, limits, pacing, slots, storm, windows
from sickbay.decide.arbitration import rank
from sickbay.decide.hand import holds_node
from sickbay.decide.limits import Refusal
from sickbay.decide.sources import Sources
from sickbay.decide.wants import wanted_slot
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.events import NORMAL, WARNING, EventRecorder

COUNTS_AFTER = timedelta(seconds=10)
"""Counts alone are written at most this often; slots, breaker and storms at once."""


BAD_WHEN_TRUE = (names.BREAKER_OPEN, names.OVERLAP, names.OTHER_REMEDIATORS)
CONDITIONS = (names.OVERLAP, names.OTHER_REMEDIATORS, names.DAEMON_SETS_TOLERATE)
"""Conditions that a pool has only while it has what they are about."""


class Reservations:
    """Grants slots by the order of need, and drops those that are needed no more."""

    def __init__(
        self, client: Client, clock: Clock, sources: Sources, recorder: EventRecorder, check: Callable[[], None]
    ) -> None:
        self._client = client
        self._clock = clock
        self._sources = sources
        self._recorder = recorder
        self._check = check
        """Raises when we do not lead any more; asked before every write."""
        self._counted: dict[str, datetime] = {}
        self._postponed: dict[str, datetime] = {}

    def held(self, repair: NodeRepair, node: Node) -> frozenset[str]:
        """Kinds of slots that the repair holds in its pool and in every envelope of its node.

        Where its pool is gone nothing more starts, but the way back into service stays free.
        """
        binding = self._binding(repair, node)
        if not binding:
            return frozenset({slots.VALIDATE})
        return frozenset.intersection(*(slots.held(pool, repair) for pool in binding))

    async def take(self, repair: NodeRepair, node: Node, kind: str) -> Refusal | None:
        """Reserve a slot everywhere it is needed. Returns None when it is held, otherwise why it is not.

        A group reserves for all its members, in one write per pool.
        """
        bound = self._bound(repair, node, alone=kind == slots.ISOLATE)
        if not bound:
            return Refusal("the repair's pool is gone")
        # Those that refuse come first: a slot that is taken and given back wakes all who wait, and they do the same.
        refusing = [name for name, (pool, nodes) in bound.items() if self._refused(pool, repair, nodes, kind)]
        # What a process that died has taken and never used goes too; a group's may be in use by a member.
        taken = [] if repair.spec.group.id else [pool for pool, _ in bound.values()]
        for name in sorted(bound, key=lambda name: (name not in refusing, name)):
            pool, nodes = bound[name]
            refused = await self._take_in(pool, repair, nodes, kind)
            if refused is not None:
                for each in taken:
                    await self._drop(each, repair, kind)
                return refused
            if repair.spec.group.id:
                taken.append(pool)
        return None

    def _bound(self, repair: NodeRepair, node: Node, alone: bool = False) -> dict[str, tuple[RepairPool, list[Node]]]:
        """Each pool that binds the repair, with the nodes of it (or of its group) that lie in the pool."""
        party = [(repair, node)]
        if repair.spec.group.id and not alone:
            others = (r for r in self._sources.group_of(repair) if not r.ended and r.spec.node.name != node.name)
            party += [(r, n) for r in others if (n := self._sources.nodes.get(r.spec.node.name)) is not None]
        found: dict[str, tuple[RepairPool, list[Node]]] = {}
        for each, its_node in party:
            for pool in self._binding(each, its_node):
                found.setdefault(pool.metadata.name, (pool, []))[1].append(its_node)
        return found

    async def tend(self, pool: RepairPool) -> None:
        """Drop slots that are needed no more; bring breaker, storms, counts and conditions up to date."""
        moment = self._moment(pool)
        status = self._status(moment)
        repairs = {s.repair: self._sources.holders(s.repair) for s in pool.status.slots}
        # A slot makes room for its cordon only when that is counted: in between, the node would be in neither.
        shown = moment.view.out | moment.view.isolated
        counted = (s for s in pool.status.slots if s.node in shown)
        nodes = {s.node: n for s in counted if (n := self._sources.nodes.get(s.node)) is not None}
        status.slots = slots.kept(pool, repairs, nodes, moment.now)
        await self._write(pool, status, moment.now)

    def postponed(self, pool: str) -> datetime | None:
        """When counts of the pool may be written that have changed too soon after the last time; None without any."""
        return self._postponed.get(pool)

    def waiting(self, pool: RepairPool, kind: str = "") -> list[NodeRepair]:
        """Open repairs in this pool's range that wait for a slot, the most needy first; of a group one."""
        name, found = pool.metadata.name, []
        for repair in self._sources.repairs.by_index("waiting", Phase.WAITING_SLOT):
            if name in self._sources.tally.facts(repair.spec.node.name).pools and kind in ("", wanted_slot(repair)):
                found.append(repair)
        first: dict[str, NodeRepair] = {}
        for repair in sorted(found, key=self._need):
            first.setdefault(slots.owner(repair), repair)
        return list(first.values())

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
        return [own, *(pool for pool in envelopes if pool.metadata.name != own.metadata.name)]

    def view(self, pool: RepairPool) -> slots.PoolView:
        """The pool with what its caps are judged by."""
        counts = self._sources.tally.of(pool.metadata.name)
        moving, begun = self._paced(pool) if pool.spec.domains else ({}, {})
        return slots.PoolView(
            pool, len(counts.nodes), frozenset(counts.out), counts.domain, moving, frozenset(counts.isolated), begun
        )

    def _paced(self, pool: RepairPool) -> tuple[dict[str, Mapping[str, str]], dict[str, str]]:
        """Of the open repairs in this pool's range: nodes that are out, and by key the domain that was begun last."""
        name, sources = pool.metadata.name, self._sources
        coming = [n for s in pool.status.slots if s.kind == slots.UNAVAILABLE and (n := sources.nodes.get(s.node))]
        moving: dict[str, Mapping[str, str]] = {node.name: node.labels for node in coming}
        open_: list[Mapping[str, str]] = []
        for repair in sources.open_repairs():
            node = sources.nodes.get(repair.spec.node.name)
            if node is None or name not in sources.tally.facts(node.name).pools:
                continue
            if repair.status.phase in (Phase.PARKED, Phase.NEEDS_HUMAN):
                continue
            if holds_node(repair):
                moving[node.name] = node.labels
            open_.append(node.labels)
        begun = {}
        for key in (d.key for d in pool.spec.domains if d.pacing == Pacing.PACK):
            waiting = {labels.get(key, "") for labels in open_}
            last = self._last_started(name, key, waiting)
            if last:
                begun[key] = last
        return moving, begun

    def _last_started(self, pool: str, key: str, open_: set[str]) -> str:
        """The domain in which the latest repair of the pool has started, if it has open ones; "" otherwise."""
        latest, found = "", ""
        for repair in self._sources.repairs_in(pool):
            start = limits.first_start(repair) or ""
            node = self._sources.nodes.get(repair.spec.node.name)
            if node is not None and start > latest and node.labels.get(key):
                latest, found = start, node.labels[key]
        return found if found in open_ else ""

    def _moment(self, pool: RepairPool) -> limits.Moment:
        """The pool as it is, with its breaker and storms as they have to be now."""
        counts, now = self._sources.tally.of(pool.metadata.name), self._clock.now()
        size = len(counts.nodes)
        trial = self._sources.trial(pool.status.breaker.trial) if pool.status.breaker.trial else None
        return limits.Moment(
            view=self.view(pool),
            breaker=breaker.judge(pool, size, counts.faulty(now), trial, now),
            storms=storm.judge(pool, counts.sick.values(), now),
            repairs=self._sources.repairs_in(pool.metadata.name),
            now=now,
        )

    def _status(self, moment: limits.Moment) -> RepairPoolStatus:
        pool = moment.view.pool
        counts = self._sources.tally.of(pool.metadata.name)
        status = msgspec.structs.replace(
            pool.status,
            observed_generation=pool.metadata.generation,
            nodes=moment.view.size,
            faulty=counts.faulty(moment.now),
            unavailable=len(slots.unavailable(moment.view)),
            breaker=moment.breaker,
            storms=moment.storms,
        )
        status.conditions = self._conditions(moment)
        return status

    def _conditions(self, moment: limits.Moment) -> list[Condition]:
        pool, rule = moment.view.pool, moment.view.pool.spec.rule
        resolved = not rule or self._sources.rules.get(rule) is not None
        closed = moment.breaker.state == BreakerState.CLOSED
        unreadable = windows.problem(pool.spec.windows)
        wanted = {
            names.VALID: (not unreadable, unreadable),
            names.RULE_RESOLVED: (resolved, "" if resolved else f"there is no RepairRule {rule}; nothing is repaired"),
            names.LIMITS_FIT: (limits.fits(moment.view), "maxParallelRepairs may not be above what the breaker bears"),
            names.BREAKER_OPEN: (not closed, moment.breaker.reason),
        }
        overlap = self._sources.tally.of(pool.metadata.name).overlap(pool.metadata.name)
        if rule:
            wanted[names.OVERLAP] = (bool(overlap), overlap)
            others = self._sources.other_remediators(pool)
            wanted[names.OTHER_REMEDIATORS] = (bool(others), others)
        if pool.spec.quarantine.taint:
            named = self._sources.intolerant(pool)
            wanted[names.DAEMON_SETS_TOLERATE] = (not named, daemonsets.message(named))
        kept = [c for c in pool.status.conditions if c.type not in wanted and c.type not in CONDITIONS]
        return kept + [_condition(pool, kind, *what, moment.now) for kind, what in wanted.items()]

    def _lacking(self, pool: RepairPool, repair: NodeRepair, nodes: Sequence[Node], kind: str) -> list[Node]:
        """The nodes for which the slot still has to be taken."""
        left = slots.lacking(pool, repair, nodes, kind)
        if kind != slots.UNAVAILABLE or not repair.spec.group.id:
            return left
        return [node for node in left if names.QUARANTINE not in node.annotations]

    def _judged(self, moment: limits.Moment, repair: NodeRepair, nodes: Sequence[Node], kind: str) -> Refusal | None:
        return limits.refusal(moment, repair, nodes, kind) or self._turn(moment, repair, nodes, kind)

    def _refused(self, pool: RepairPool, repair: NodeRepair, nodes: Sequence[Node], kind: str) -> bool:
        """The pool would not grant the slot now."""
        left = self._lacking(pool, repair, nodes, kind)
        return bool(left) and self._judged(self._moment(pool), repair, left, kind) is not None

    async def _take_in(self, pool: RepairPool, repair: NodeRepair, nodes: Sequence[Node], kind: str) -> Refusal | None:
        pool = self._sources.pools.get(pool.metadata.name) or pool
        nodes = self._lacking(pool, repair, nodes, kind)
        if not nodes:
            return None
        moment = self._moment(pool)
        status = self._status(moment)
        refused = self._judged(moment, repair, nodes, kind)
        if refused is None:
            status.slots = slots.granted(moment.view, repair, nodes, kind, moment.now)
            if kind not in (slots.VALIDATE, slots.ISOLATE):
                status.breaker = breaker.with_trial(status.breaker, slots.owner(repair))
        await self._write(pool, status, moment.now)
        return refused

    def _turn(self, moment: limits.Moment, repair: NodeRepair, nodes: Sequence[Node], kind: str) -> Refusal | None:
        """Not our turn while more needy repairs wait than there is room for."""
        out = slots.unavailable(moment.view)
        counted = kind == slots.UNAVAILABLE and all(node.name in out for node in nodes)
        mine, need = slots.owner(repair), self._need(repair)
        waiting = self.waiting(moment.view.pool, kind)
        ahead = [r for r in waiting if slots.owner(r) != mine and self._need(r) < need]
        if kind == slots.UNAVAILABLE and moment.view.pool.spec.domains:
            ahead = [r for r in ahead if not self._kept_by_domain(moment, r)]
        left = slots.room(moment.view, kind) - (len(nodes) - 1 if kind == slots.UNAVAILABLE else 0)
        if counted or self._weight(ahead, kind) < left:
            return None
        elsewhere: dict[str, limits.Moment] = {}
        able = [r for r in ahead if self._free_elsewhere(r, kind, moment.view.pool, elsewhere)]
        if self._weight(able, kind) < left:
            return None
        return Refusal(f"{len(able)} repairs in greater need wait for the same slot")

    def _weight(self, repairs: Sequence[NodeRepair], kind: str) -> int:
        """How much room they take: before Quarantine a group as much as it has members."""
        each = (len(r.spec.group.members) if r.spec.group.id and kind == slots.UNAVAILABLE else 1 for r in repairs)
        return sum(each)

    def _free_elsewhere(
        self, repair: NodeRepair, kind: str, pool: RepairPool, moments: dict[str, limits.Moment]
    ) -> bool:
        """Whether the other pools that bind the repair would let it start: else it must not hold up this pool."""
        node = self._sources.nodes.get(repair.spec.node.name)
        if node is None:
            return False
        for name, (other, nodes) in self._bound(repair, node).items():
            if name == pool.metadata.name:
                continue
            if name not in moments:
                moments[name] = self._moment(other)
            if limits.refusal(moments[name], repair, nodes, kind) is not None:
                return False
        return True

    def _kept_by_domain(self, moment: limits.Moment, repair: NodeRepair) -> bool:
        """Its domain lets it not start now: it must not hold up those of others."""
        node = self._sources.nodes.get(repair.spec.node.name)
        nodes = self._bound(repair, node).get(moment.view.pool.metadata.name, (None, []))[1] if node is not None else []
        return bool(pacing.refusal(moment.view, nodes))

    async def _drop(self, pool: RepairPool, repair: NodeRepair, kind: str) -> None:
        pool = self._sources.pools.get(pool.metadata.name) or pool
        mine = slots.owner(repair)
        kept = [s for s in pool.status.slots if not (s.repair == mine and s.kind == kind)]
        if len(kept) == len(pool.status.slots):
            return
        await self._write(pool, msgspec.structs.replace(pool.status, slots=kept), self._clock.now())

    async def _write(self, pool: RepairPool, status: RepairPoolStatus, now: datetime) -> None:
        """The conditional write. A Conflict is raised: whoever asked looks again at what stands there now."""
        patch = merge_diff(msgspec.to_builtins(pool.status), msgspec.to_builtins(status))
        name = pool.metadata.name
        self._postponed.pop(name, None)
        if not patch:
            return
        if not self._worth(pool, patch, now):
            self._postponed[name] = self._counted[name] + COUNTS_AFTER
            return
        self._check()
        meta = {"resourceVersion": pool.metadata.resource_version, "uid": pool.metadata.uid}
        body: dict[str, Any] = {"metadata": meta, "status": _shown(patch, status)}
        try:
            written = await self._client.patch_merge(kinds.REPAIR_POOL, name, body, subresource="status")
        except errors.Conflict:
            self._sources.pools.observe_write(await self._client.get(kinds.REPAIR_POOL, name))
            raise
        self._counted[name] = now
        self._sources.pools.observe_write(written)
        self._tell(pool, written)

    def _worth(self, pool: RepairPool, patch: dict[str, Any], now: datetime) -> bool:
        """False for counts that have changed again within 10 s; the next look writes them."""
        if patch.keys() - {"nodes", "faulty", "unavailable"}:
            return True
        last = self._counted.get(pool.metadata.name)
        return last is None or now - last >= COUNTS_AFTER

    def _tell(self, before: RepairPool, after: RepairPool) -> None:
        old, new = before.status, after.status
        if new.breaker.state == BreakerState.OPEN and old.breaker.opened_at != new.breaker.opened_at:
            self._event(after, WARNING, names.BREAKER_OPENED, f"no new repairs: {new.breaker.reason}")
        if new.breaker.state == BreakerState.CLOSED and old.breaker.state != BreakerState.CLOSED:
            self._event(after, NORMAL, names.BREAKER_CLOSED, "repairs may start again")
        known = {s.cause for s in old.storms}
        for each in new.storms:
            if each.cause not in known:
                text = f"{each.nodes} nodes at once with {each.cause}: one shared cause; no repairs start"
                self._event(after, WARNING, names.STORM_SEEN, text)

    def _event(self, pool: RepairPool, kind: str, reason: str, message: str) -> None:
        meta = pool.metadata
        regarding = ObjectReference(api_version=names.API_VERSION, kind="RepairPool", name=meta.name, uid=meta.uid)
        self._recorder.event(regarding, kind, reason, message)


def _condition(pool: RepairPool, kind: str, holds: bool, message: str, now: datetime) -> Condition:
    """The condition, with the time of its last change."""
    status = "True" if holds else "False"
    old = next((c for c in pool.status.conditions if c.type == kind), None)
    since = old.last_transition_time if old is not None and old.status == status else rfc3339(now)
    good = holds != (kind in BAD_WHEN_TRUE)
    return Condition(
        type=kind,
        status=status,
        observed_generation=pool.metadata.generation,
        last_transition_time=since,
        reason="AsExpected" if good else kind if kind in BAD_WHEN_TRUE else f"Not{kind}",
        message="" if good else message,
    )


def _shown(patch: dict[str, Any], status: RepairPoolStatus) -> dict[str, Any]:
    """The patch with what people read in columns, also where it is a default, which encoding leaves out."""
    counts = {"nodes": status.nodes, "faulty": status.faulty, "unavailable": status.unavailable}
    return patch | counts | {"breaker": (patch.get("breaker") or {}) | {"state": status.breaker.state}}
