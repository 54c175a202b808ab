"""The controller around the decisions: it reads informers, asks the pure functions, and writes their answers.

It works on keys, never on events: ("node", name) asks whether a node needs a repair, ("repair", name) brings an open
one further, ("pool", name) tidies a pool. Any key may be looked at at any moment, any number of times. One worker takes
them one after the other, so that within a process no two decisions overlap; between processes the lease, and the
version in every write, see to that.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_plan import ApprovalForm
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import Outcome, WaitsFor
from sickbay.clock import Clock, Randomness, rfc3339
from sickbay.decide import domains, forming, manual, memory, opening, plan, retention, slots, tending
from sickbay.decide.endings import end
from sickbay.decide.metrics import DecideMetrics
from sickbay.decide.opening import open_repair
from sickbay.decide.posted import Posted
from sickbay.decide.progress import advance
from sickbay.decide.reservations import Reservations
from sickbay.decide.sources import RESYNC, Sources
from sickbay.decide.views import Views
from sickbay.decide.wakeups import Key, Wakeups
from sickbay.decide.work import View, Work
from sickbay.decide.writer import Writer
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.events import EventRecorder
from sickbay.kube.leadership import Leadership, NotLeading
from sickbay.kube.lease import Elector, LeaseTimes
from sickbay.kube.workqueue import WorkQueue

log = structlog.get_logger(__name__)

LOOK_AGAIN = 60.0
"""Seconds after which everything that is open is looked at again, whatever the watches said."""
LEAST = 1.0
"""Seconds until a pool is tended again by time alone, at least."""
AT_ONCE = 50
"""Old records removed in one go."""
GRANTS = 3
"""Slots one look may take: a repair needs at most one per step it passes."""


@dataclass(frozen=True)
class DecideOptions:
    """Settings of the controller."""

    identity: str = "sickbay-decide"
    namespace: str = "sickbay-system"
    """Where the Lease lives."""
    approval_prefixes: Mapping[str, str] = field(default_factory=dict)
    """Further label prefixes for approvals, by the name a rule uses."""
    approval_forms: Mapping[str, ApprovalForm] = field(default_factory=dict)
    """Label keys and values of one's own, by the name a rule uses."""
    automation: Sequence[str] = names.AUTOMATION
    """User names of known automation, as patterns: what they take off a node is put back once."""
    resync: float = RESYNC
    look: float = LOOK_AGAIN
    kept: timedelta = retention.LEAST
    """How long ended repairs are kept at least."""
    lease: LeaseTimes = field(default_factory=LeaseTimes)


class DecideController:
    """Runs until cancelled; decides only while it leads."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        options: DecideOptions | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._options = options or DecideOptions()
        self._clock = clock
        self._elector = Elector(
            client,
            clock,
            randomness,
            name="sickbay-decide",
            namespace=self._options.namespace,
            identity=self._options.identity,
            times=self._options.lease,
        )
        self._sources = Sources(client, clock, randomness, self._options.resync)
        self._recorder = EventRecorder(client, clock, randomness, component="sickbay-decide")
        self._writer = Writer(client, self._sources, self._recorder, self._elector.check)
        self._reservations = Reservations(client, clock, self._sources, self._recorder, self._elector.check)
        forms = {name: form.key.rpartition("/")[0] or form.key for name, form in self._options.approval_forms.items()}
        self._prefixes = {**self._options.approval_prefixes, **forms}
        self._posted = Posted(client, clock, self._sources, self._recorder, self._prefixes, self._elector.check)
        self._views = Views(self._sources, self._reservations, tuple(self._options.automation))
        self._queue: WorkQueue[Key] = WorkQueue(clock, randomness, name="decide", metrics=client.metrics)
        self._metrics = DecideMetrics(registry or CollectorRegistry(), self._sources, self._elector.is_leader)
        self._look = {
            "node": self._node,
            "repair": self._repair,
            "pool": self._pool,
            "type": self._posted.fault_type,
            "rule": self._posted.rule,
        }
        self._wakeups = Wakeups(self._sources, self._queue)

    async def run(self) -> None:
        """Keep the caches current, and decide whenever the lease is ours."""
        async with asyncio.TaskGroup() as group:
            for informer in self._sources.all:
                group.create_task(informer.run())
            for cache in self._sources.on_demand:
                group.create_task(cache.run())
            group.create_task(self._recorder.run())
            group.create_task(self._elector.run(self._lead))

    def awaited(self) -> list[str]:
        """What start-up still waits for, for a readiness probe. A replica that does not lead is ready too."""
        return [f"the list of {i.kind.plural}" for i in self._sources.all if not i.synced.is_set()]

    def is_leader(self) -> bool:
        return self._elector.is_leader()

    async def _lead(self, _: Leadership) -> None:
        await self._sources.wait_synced()
        await self._sources.relist()
        self._sources.refresh_catalogue()
        self._wakeups.everything()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run(self._reconcile, workers=1))
            group.create_task(self._look_again())

    async def _look_again(self) -> None:
        while True:
            if await self._sources.others.refresh():
                for pool in self._sources.pools.all():
                    self._queue.add(("pool", pool.metadata.name))
            await self._clear_out()
            await self._clock.sleep(self._options.look)
            self._wakeups.all()

    async def _clear_out(self) -> None:
        """Remove ended records that are older than anything asks for, a few at a time."""
        sources = self._sources
        repairs, pools, now = sources.repairs.all(), sources.pools.all(), self._clock.now()
        for repair in retention.too_old(repairs, pools, now, self._options.kept)[:AT_ONCE]:
            try:
                await self._writer.remove(repair)
            except errors.ApiError as error:
                log.info("an old record was not removed", repair=repair.metadata.name, error=str(error))

    async def _reconcile(self, key: Key) -> float | None:
        if self._sources.refresh_catalogue():
            self._wakeups.everything()
        if self._wakeups.recount:
            self._wakeups.recount = False
            self._sources.count_all()
        what, name = key
        try:
            again = await self._look[what](name)
            for changed in self._sources.guard.news:
                self._queue.add(("type", changed))
            self._sources.guard.news.clear()
            return again
        except NotLeading:
            return None  # whoever leads next looks at everything
        except errors.Conflict as conflict:
            log.debug("looked at something that has changed", key=key, error=str(conflict))
            return 0.2

    async def _node(self, name: str) -> float | None:
        """Does this node need a repair? An open one is looked at instead."""
        node = self._sources.nodes.get(name)
        for changed in self._sources.count(name):
            self._queue.add(("pool", changed))
        known = self._sources.repairs_of(name)
        for repair in known:
            if not repair.ended or repair.metadata.finalizers:
                self._queue.add(("repair", repair.metadata.name), priority=1)
        if node is None or (known and self._sources.open_repair_of(node) is not None):
            return None
        if known:
            await self._remember(node)
        active = self._sources.treatable(node)
        seen = self._sources.seen(node)
        claiming = self._sources.claiming(node)
        if not active and not known and claiming is None:
            return None
        pool, _ = self._sources.pools_of(node)
        rule = self._sources.rules.get(pool.spec.rule) if pool is not None and pool.spec.rule else None
        if claiming is not None:
            return await self._join(claiming, node, pool)
        if not active or pool is None or rule is None:
            return None
        now = self._clock.now()
        past = self._sources.repairs_of(name)
        prefix = plan.resolve_prefix(rule, self._prefixes)
        known = [*past, *self._sources.elsewhere(node)]
        result = open_repair(node, active, pool, rule, known, seen, prefix, self._sources.catalogue.version, now)
        if result.repair is not None:
            result.repair.spec.plan.approval_form = self._options.approval_forms.get(rule.spec.approval_prefix)
            await self._open(forming.formed(self._sources, result.repair, node, pool, past, now), node)
            return None
        if result.again is None or result.again == opening.NEVER:
            return None
        soon = result.again - memory.TOLD_BEFORE
        return _seconds(now, soon if soon > now else result.again)

    async def _join(self, leader: NodeRepair, node: Node, pool: RepairPool | None) -> float | None:
        """The node is a member of a group that has no record of it yet."""
        name = opening.next_name(node, self._sources.repairs_of(node.name))
        await self._open(domains.member(leader, node, pool, self._sources.active(node), name), node)
        return None

    async def _open(self, draft: NodeRepair, node: Node) -> None:
        """Create the record and reserve the slot that it will ask for, side by side; then go on with it at once.

        A slot whose record never comes is dropped with the next tending of its pool.
        """
        creating = asyncio.ensure_future(self._writer.create(draft))
        reserving = asyncio.ensure_future(self._reserve_ahead(draft, node))
        try:
            await asyncio.wait({creating, reserving})
        finally:
            creating.cancel()
            reserving.cancel()
        failures = [error for task in (creating, reserving) if (error := task.exception()) is not None]
        if failures:
            raise failures[0]
        key = ("repair", creating.result().metadata.name)
        again = await self._repair(key[1])
        if again is not None:
            self._queue.add_after(key, again)

    async def _reserve_ahead(self, draft: NodeRepair, node: Node) -> None:
        """What does not work out here is judged again with the record. It stands behind all that wait already."""
        meta = msgspec.structs.replace(draft.metadata, creation_timestamp=rfc3339(self._clock.now()))
        coming = msgspec.structs.replace(draft, metadata=meta)
        work = advance(coming, self._views.of(coming, self._clock.now()))
        if not work.wants:
            return
        try:
            await self._reservations.take(work.repair, node, work.wants)
        except errors.ApiError as error:
            log.debug("no slot ahead of the record", repair=meta.name, error=str(error))

    async def _remember(self, node: Node) -> None:
        """Mark on ended records what has cleared since a person decided about it, and what is about to be over."""
        view = View(self._clock.now(), node, self._sources.active(node), self._sources.catalogue.types)
        pool, _ = self._sources.pools_of(node)
        for repair in self._sources.repairs_of(node.name):
            if repair.spec.node.uid != node.uid:
                continue
            marked = memory.refreshed(repair, view)
            if marked is not None:
                await self._writer.apply(repair, Work(marked, view))
                continue
            said = memory.announced(repair, view, pool) if pool is not None else None
            if said is not None:
                work = Work(said, view)
                work.note(names.CANCEL_HOLD_ENDS, said.status.conditions[-1].message, warning=True)
                await self._writer.apply(repair, work)

    async def _repair(self, name: str) -> float | None:
        """Bring one repair as far as it goes at this moment."""
        repair = self._sources.repairs.get(name)
        if repair is None:
            return None
        if manual.unfilled(repair):
            return await self._take_up(repair)
        work = advance(repair, self._views.of(repair, self._clock.now()))
        if work.wants_isolation and work.view.node is not None:
            await self._reservations.take(work.repair, work.view.node, slots.ISOLATE)
            work = advance(repair, self._views.of(repair, self._clock.now()))
        for _ in range(GRANTS):
            if not work.wants or work.view.node is None:
                break
            refused = await self._reservations.take(work.repair, work.view.node, work.wants)
            if refused is not None and refused.until is not None:
                return _seconds(work.now, refused.until)  # a moment: not worth a word
            if refused is not None:
                work.status.message = f"{work.status.current.step} waits: {refused.why}"
                work.status.current.waits_for = refused.waits_for
                break
            work = advance(repair, self._views.of(repair, self._clock.now()))
        if work.repair.ended and not repair.ended and repair.metadata.deletion_timestamp is not None:
            await self._leave_tombstone(work)
        written = await self._writer.apply(repair, work)
        self._metrics.transition(repair, written)
        return None if work.requeue_at is None else _seconds(work.now, work.requeue_at)

    async def _take_up(self, repair: NodeRepair) -> float | None:
        """Fill in a repair that a person opened by hand, or say why it cannot be taken up."""
        sources, now = self._sources, self._clock.now()
        node = sources.nodes.get(repair.spec.node.name)
        pool = sources.pools_of(node)[0] if node is not None else None
        other = sources.open_repair_of(node) if node is not None else None
        work = Work(copy.deepcopy(repair), View(now=now, node=node))
        refusal = manual.refusal(repair, node, pool, other)
        if refusal or node is None or pool is None:
            end(work, Outcome.GAVE_UP, f"not taken up: {refusal}")
        else:
            rule = sources.rules.get(pool.spec.rule) if pool.spec.rule else None
            prefix = plan.resolve_prefix(rule, self._prefixes) if rule is not None else ""
            prefix = prefix or names.APPROVAL_PREFIXES["sickbay"]
            work.repair = manual.fill(repair, node, pool, rule, prefix, sources.catalogue.version)
            form = self._options.approval_forms.get(rule.spec.approval_prefix) if rule is not None else None
            work.repair.spec.plan.approval_form = form
        await self._writer.apply(repair, work)
        return None

    async def _leave_tombstone(self, work: Work) -> None:
        """A deleted record takes a person's word with it; another one keeps it."""
        repair, node = work.repair, work.view.node
        if repair.status.outcome != Outcome.CANCELLED_BY_PERSON or node is None or not repair.spec.faults:
            return
        past, reason = self._sources.repairs_of(node.name), memory.tombstone_reason(repair)
        if not any(other.spec.plan.reason == reason for other in past):
            await self._writer.create(memory.tombstone(repair, opening.next_name(node, past)))

    async def _pool(self, name: str) -> float | None:
        """Tend the pool, and let those that wait look again."""
        pool = self._sources.pools.get(name)
        if pool is None:
            return None
        await self._reservations.tend(pool)
        waiting = self._reservations.waiting(pool)
        pool = self._sources.pools.get(name) or pool
        barred = pool.status.breaker.state == "Open"
        for repair in waiting:
            # While the breaker is open time alone opens nothing to those that wait for it.
            if not barred or repair.status.current.waits_for != WaitsFor.BREAKER:
                self._queue.add(("repair", repair.metadata.name))
        counts, now = self._sources.tally.of(name), self._clock.now()
        due = tending.next_look(pool, counts, self._sources.repairs_in(name), bool(waiting), now)
        moments = [moment for moment in (due, self._reservations.postponed(name)) if moment is not None]
        return max(LEAST, _seconds(now, min(moments))) if moments else None


def _seconds(now: datetime, later: datetime | None) -> float:
    return max(0.05, (later - now).total_seconds()) if later is not None else 0.05


__all__ = ["DecideController", "DecideOptions", "Work"]
