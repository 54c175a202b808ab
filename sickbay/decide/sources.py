"""What decide reads: one informer per kind, and the joins between them."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from typing import Any

import msgspec
import structlog

from sickbay.api import kinds, names
from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.holds import strictest
from sickbay.api.infra_event import InfraEvent
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.node_repair import NodeRepair
from sickbay.api.recovery_policy import RecoveryPolicy
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule
from sickbay.api.words import Phase
from sickbay.clock import Clock, Randomness
from sickbay.decide import catalogue, suspects, urgency
from sickbay.decide.actionable import wants_repair
from sickbay.decide.arbitration import ordered
from sickbay.decide.daemonsets import Tolerance
from sickbay.decide.domains import onset_key
from sickbay.decide.excuse import excused
from sickbay.decide.faults import Active, active_faults, displaced
from sickbay.decide.hand import holds_node, untouched
from sickbay.decide.membership import Memberships
from sickbay.decide.ondemand import OnDemand
from sickbay.decide.otherwatch import OtherWatch
from sickbay.decide.plan import matching_entry
from sickbay.decide.slots import selecting
from sickbay.decide.storm import Onset
from sickbay.decide.tally import Facts, Tally
from sickbay.decide.tenancy import Tenancy
from sickbay.decide.typeguard import Matches, TypeGuard
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer

log = structlog.get_logger(__name__)

RESYNC = 240.0
"""Seconds between comparisons of a cache with a fresh list, and up to a fifth more by lot: a lost watch event goes
unnoticed for less than five minutes."""

COUNT_LASTS = 5.0
"""Seconds for which a node that was counted with all others need not be counted again by its own look. Longer than a
pass over 10,000 nodes takes, too short for a Hold or a remembered cancel to end unnoticed."""


class Sources:
    """Informers and what is derived from them. Derived values are kept per version of what they derive from."""

    def __init__(self, client: Client, clock: Clock, randomness: Randomness, resync: float = RESYNC) -> None:
        def informer(kind: kinds.Kind[Any], **options: Any) -> Informer[Any]:
            return Informer(client, kind, clock, randomness, resync=resync, **options)

        self.nodes: Informer[Node] = informer(kinds.NODE, indexes={"serial": lambda n: [n.serial] if n.serial else []})
        self.pools: Informer[RepairPool] = informer(kinds.REPAIR_POOL)
        self.rules: Informer[RepairRule] = informer(kinds.REPAIR_RULE)
        self.types: Informer[dict[str, Any]] = informer(kinds.FAULT_TYPE.raw)
        self.holds: Informer[Hold] = informer(kinds.HOLD)
        self.repairs: Informer[NodeRepair] = informer(
            kinds.NODE_REPAIR,
            indexes={
                "node": lambda repair: [repair.spec.node.name],
                "pool": lambda repair: [repair.spec.pool.name],
                "gang": waited_jobs,
                "waiting": lambda repair: [repair.status.phase] if not repair.ended else [],
                "serial": lambda repair: [repair.spec.node.serial] if repair.spec.node.serial else [],
                "group": lambda repair: [repair.spec.group.id] if repair.spec.group.id else [],
                "member": lambda repair: repair.spec.group.members if not repair.ended else [],
            },
        )
        self.policies: Informer[RecoveryPolicy] = informer(kinds.RECOVERY_POLICY)
        self.recoveries: Informer[JobRecovery] = informer(
            kinds.JOB_RECOVERY, indexes={"suspect": suspect_nodes, "placed": placed_nodes}
        )
        self.events: Informer[InfraEvent] = informer(
            kinds.INFRA_EVENT, indexes={"node": lambda event: [event.spec.node.name]}
        )
        self.tenancy = Tenancy(client, clock, randomness, resync)
        self.tolerance = Tolerance(informer(kinds.DAEMON_SET))
        self.others = OtherWatch(client, clock)
        self.catalogue = catalogue.build()
        self.tally = Tally()
        self._memberships = Memberships(self.pools)
        self._clock = clock
        self._seen: dict[str, tuple[str, dict[str, datetime]]] = {}
        self._blind: dict[str, tuple[str, datetime]] = {}
        """By node, with its UID: what was seen on an earlier node of its name says nothing about this one."""
        self._active: dict[str, tuple[tuple[object, ...], list[Active]]] = {}
        self._edition = 0
        self._counted: dict[str, str] = {}
        """Versions of the nodes that `count_all` has counted and nobody has looked at since."""
        self._counted_at = 0.0
        self.repairs.on_change(lambda *both: self._touch(*(r.spec.node.name for r in both if r is not None)))
        self.recoveries.on_change(lambda *both: self._touch(*(n for r in both if r for n in suspect_nodes(r))))
        self.guard = TypeGuard()
        self.types.on_change(self._type_changed)
        self._catalogue_stale = False

    @property
    def all(self) -> list[Informer[Any]]:
        people = (self.pools, self.rules, self.types, self.holds, self.policies)
        return [self.nodes, *people, self.repairs, self.recoveries, self.events]

    async def wait_synced(self) -> None:
        await asyncio.gather(*(informer.synced.wait() for informer in self.all))

    async def relist(self) -> None:
        """Read everything afresh, when a new term begins."""
        for informer in self.all:
            await informer.read_afresh()
        for cache in self.on_demand:
            await cache.read_afresh()

    @property
    def on_demand(self) -> list[OnDemand[Any]]:
        return [self.tenancy.cache, self.tolerance.cache]

    def _type_changed(self, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        self._catalogue_stale = self._catalogue_stale or says_other(old, new)

    def refresh_catalogue(self) -> bool:
        """Take in changed FaultType objects. True when that made a new edition."""
        if not self._catalogue_stale:
            return False
        self._catalogue_stale = False
        self.catalogue = catalogue.build(self.types.all())
        self._edition += 1
        self.guard.judge(self.types.all(), self.pools.all(), self._matches)
        return True

    def _matches(self) -> Matches:
        """How many nodes of each pool each type matches, and how many nodes each pool has."""
        matched: dict[str, Counter[str]] = {}
        sizes: Counter[str] = Counter()
        for node in self.nodes.all():
            pools = [pool.metadata.name for pool in selecting(self.pools.all(), node)]
            sizes.update(pools)
            for active in self.active(node):
                matched.setdefault(active.name, Counter()).update(pools)
        return matched, sizes

    def treatable(self, node: Node) -> list[Active]:
        """The active faults that somebody may act on: all but those of types that are set aside or give way."""
        aside, active = self.guard.set_aside, self.active(node)
        left = [each for each in active if each.name not in aside] if aside else active
        given_way = displaced(left, self.catalogue.own) if len(left) > 1 else {}
        return [each for each in left if each.name not in given_way] if given_way else left

    def active(self, node: Node) -> list[Active]:
        """The node's active faults, the leading one first."""
        suspicion = self._suspicion(node)
        version = node.metadata.resource_version, self._edition, suspicion and suspicion.identity
        kept = self._active.get(node.name)
        if kept is not None and kept[0] == version:
            return kept[1]
        failed: dict[str, str] = {}
        found = ordered([*active_faults(node, self.catalogue, failed), *([suspicion] if suspicion is not None else [])])
        self._active[node.name] = (version, found)
        self.guard.note(node.name, failed)
        return found

    def _suspicion(self, node: Node) -> Active | None:
        """What the job loop has against the node."""
        records = self.recoveries.by_index("suspect", node.name)
        if not records:
            return None
        return suspects.suspected(node, records, self.repairs_of(node.name), self.catalogue.get(suspects.FAULT))

    def seen(self, node: Node) -> dict[str, datetime]:
        """Since when each active fault of the node has been seen without a break, by our own clock."""
        uid, before = self._seen.get(node.name, (node.uid, {}))
        known, now = before if uid == node.uid else {}, self._clock.now()
        seen = {a.name: known.get(a.name, now) for a in self.active(node)}
        if seen:
            self._seen[node.name] = node.uid, seen
        else:
            self._seen.pop(node.name, None)
        return seen

    def count(self, name: str) -> set[str]:
        """Bring the tally up to date for one node. Returns the pools whose counts changed."""
        node = self.nodes.get(name)
        if node is None:
            self._active.pop(name, None)
            self._seen.pop(name, None)
            self._blind.pop(name, None)
            self._memberships.forget(name)
            self.guard.note(name, {})
            return self.tally.drop(name)
        if self._just_counted(node):
            return set()
        self.seen(node)
        return self.tally.put(name, self._facts(node))

    def count_all(self) -> None:
        """Count everything anew: a pool, a rule, a Hold or a fault type has changed."""
        nodes = [(node.name, node) for node in self.nodes.all()]
        self.tally.rebuild({name: self._facts(node) for name, node in nodes})
        self._counted = {name: node.metadata.resource_version for name, node in nodes}
        self._counted_at = self._clock.monotonic()

    def _just_counted(self, node: Node) -> bool:
        """This version was counted with all the others a moment ago, and nothing that bears on it came since."""
        counted = self._counted.pop(node.name, "")
        recent = self._clock.monotonic() - self._counted_at < COUNT_LASTS
        return recent and counted == node.metadata.resource_version

    def _touch(self, *nodes: str) -> None:
        for node in nodes:
            self._counted.pop(node, None)

    def _facts(self, node: Node) -> Facts:
        plain = self._memberships.facts(node)
        onset, unknown = self._onset(node, plain.pools), self._unknown_since(node)
        if onset is None and unknown is None:
            return plain
        return msgspec.structs.replace(plain, onset=onset, unknown_since=unknown)

    def _onset(self, node: Node, pools: tuple[str, ...]) -> Onset | None:
        """The node's first fault that its rule would treat; None when there is none, or when the node is excused."""
        if not self.treatable(node) and not self.repairs_of(node.name):
            return None
        owner, _ = self.pools_of(node)
        rule = self.rules.get(owner.spec.rule) if owner is not None and owner.spec.rule else None
        if owner is None or rule is None:
            return None
        treated = [a for a in self.treatable(node) if wants_repair(a.type) and matching_entry(rule, a.name, a.type)]
        lead = treated[0] if treated else None
        under = next((r for r in self.repairs_of(node.name) if not r.ended and holds_node(r)), None)
        if lead is None and under is None:
            return None
        now, faults = self._clock.now(), [a.name for a in treated]
        hold = strictest(self.holds.all(), node, pools, faults, now)
        if excused(node, lead, self.repairs_of(node.name), owner, hold, now):
            return None
        fault = lead.name if lead is not None else "repair"
        first = min((at for name, at in self.seen(node).items() if name in faults), default=now)
        group = onset_key(lead, node.labels) or (self._group_key(under, node) if under is not None else "")
        return Onset(node.name, fault, first, node.labels, group=group)

    def _group_key(self, repair: NodeRepair, node: Node) -> str:
        """By what a member that does not show the group's fault counts as one with those that do."""
        if not repair.spec.group.id or not repair.spec.faults:
            return repair.spec.group.id
        known = self.catalogue.get(repair.spec.faults[0].type)
        domain = known.spec.domain if known is not None else ""
        return f"{domain}={node.labels[domain]}" if domain and domain in node.labels else repair.spec.group.id

    def _unknown_since(self, node: Node) -> datetime | None:
        blind = node.condition(names.DETECTION_BLIND)
        if blind is None or blind.status != "Unknown":
            self._blind.pop(node.name, None)
            return None
        uid, since = self._blind.get(node.name, ("", self._clock.now()))
        if uid != node.uid:
            since = self._clock.now()
            self._blind[node.name] = node.uid, since
        return since

    def provider_date(self, node: Node) -> datetime | None:
        """The earliest moment at which a provider acts on the machine by itself."""
        events = (e for e in self.events.by_index("node", node.name) if e.spec.node.uid in ("", node.uid))
        return urgency.provider_date([e.spec.not_before for e in events if not e.status.terminal])

    def intolerant(self, pool: RepairPool) -> list[str]:
        """DaemonSets that do not tolerate the pool's taint on its nodes; none while they are not known."""
        return self.tolerance.of(pool, lambda: self._members(pool), len(self.tally.of(pool.metadata.name).nodes))

    def other_remediators(self, pool: RepairPool) -> str:
        """Who else may repair the pool's nodes, for people; "" for nobody."""
        name = pool.metadata.name
        return self.others.of(name, lambda: self._members(pool), len(self.tally.of(name).nodes))

    def _members(self, pool: RepairPool) -> list[Node]:
        names_ = self.tally.of(pool.metadata.name).nodes
        return [node for name in names_ if (node := self.nodes.get(name)) is not None]

    def pools_of(self, node: Node) -> tuple[RepairPool | None, list[RepairPool]]:
        return self._memberships.of(node)

    def repairs_of(self, node: str) -> list[NodeRepair]:
        return self.repairs.by_index("node", node)

    def open_repair_of(self, node: Node) -> NodeRepair | None:
        """The open repair of this very node (by UID), if any."""
        mine = (r for r in self.repairs_of(node.name) if r.spec.node.uid == node.uid and not r.ended)
        return min(mine, key=lambda r: (r.metadata.creation_timestamp or "", r.metadata.name), default=None)

    def elsewhere(self, node: Node) -> list[NodeRepair]:
        """Repairs of this machine under other names.

        Nothing where several nodes report one identity: boards whose maker has set none all show the same.
        """
        if not node.serial or len(self.nodes.by_index("serial", node.serial)) != 1:
            return []
        return [r for r in self.repairs.by_index("serial", node.serial) if r.spec.node.name != node.name]

    def open_repairs(self) -> list[NodeRepair]:
        return [repair for phase in Phase for repair in self.repairs.by_index("waiting", phase)]

    def group_of(self, repair: NodeRepair) -> list[NodeRepair]:
        """The latest record of each member of its group, by node."""
        found: dict[str, NodeRepair] = {}
        for each in self.repairs.by_index("group", repair.spec.group.id) if repair.spec.group.id else ():
            known = found.get(each.spec.node.name)
            if known is None or (known.ended and not each.ended):
                found[each.spec.node.name] = each
        return [found[name] for name in sorted(found)]

    def claiming(self, node: Node) -> NodeRepair | None:
        """The record that leads the oldest open group of which this node is a member without a record in it."""
        groups: dict[str, NodeRepair] = {}
        for each in self.repairs.by_index("member", node.name):
            if each.status.phase not in OVER and not self._in_group(node, each.spec.group.id):
                groups.setdefault(each.spec.group.id, each)
        leaders = [self._leading(each) for each in groups.values() if self._gathers(each)]
        return min(leaders, key=lambda r: (r.metadata.creation_timestamp or "9", r.metadata.name), default=None)

    def _in_group(self, node: Node, group: str) -> bool:
        return any(r.spec.group.id == group and r.spec.node.uid == node.uid for r in self.repairs_of(node.name))

    def _gathers(self, repair: NodeRepair) -> bool:
        """Nothing has begun in the group, so that a member may still come in."""
        return all(untouched(r) for r in self.repairs.by_index("group", repair.spec.group.id))

    def _leading(self, repair: NodeRepair) -> NodeRepair:
        return self.repairs.get(repair.spec.group.leader) or repair

    def holders(self, name: str) -> list[NodeRepair]:
        """Who holds the slots under this name: a repair, or the members of a group."""
        one = self.repairs.get(name)
        return [one] if one is not None else self.repairs.by_index("group", name)

    def trial(self, name: str) -> NodeRepair | None:
        """The record by which a breaker's trial is judged; of a group the one that came out worst."""
        return min(self.holders(name), key=_worst_first, default=None)

    def members(self, key: str, value: str) -> list[Node]:
        """The nodes that carry this value of a label, by name."""
        return sorted((n for n in self.nodes.all() if n.labels.get(key) == value), key=lambda n: n.name)

    def repairs_in(self, pool: str) -> list[NodeRepair]:
        return self.repairs.by_index("pool", pool)


def says_other(old: dict[str, Any] | None, new: dict[str, Any] | None) -> bool:
    """A FaultType has come, gone or changed; what we write on its status is no change."""
    if old is None or new is None:
        return True
    before, after = old["metadata"], new["metadata"]
    keys = ("uid", "generation", "annotations")
    return any(before.get(key) != after.get(key) for key in keys)


def waited_jobs(repair: NodeRepair) -> list[str]:
    """Jobs whose end or interruption an open repair waits for."""
    state = repair.status.urgency
    return [job.job for job in state.jobs] if state is not None and not state.over and not repair.ended else []


OVER = (Phase.CANCELLING, Phase.WOULD_ACT)
"""Phases in which a record calls no other member into its group any more."""


def _worst_first(repair: NodeRepair) -> int:
    order = (Phase.FAILED, Phase.NEEDS_HUMAN, Phase.PARKED)
    phase = repair.status.phase
    if phase in order:
        return order.index(Phase(phase))
    return 4 if not repair.ended else 5 if phase == Phase.SUCCEEDED else 6


def suspect_nodes(record: JobRecovery) -> list[str]:
    return sorted({suspect.node for suspect in record.status.suspects})


def placed_nodes(record: JobRecovery) -> list[str]:
    """Where the job runs now."""
    present = [attempt for attempt in record.status.attempts[-1:] if not attempt.ended]
    return sorted({node for attempt in present for node in attempt.placement.values()})
