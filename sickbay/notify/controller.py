"""Which messages have not been told yet: send them, then note it in the object.

Sent first, noted second: a crash in between repeats a message under the same key, and loses none. A channel that is
down delays messages and nothing else; what waits to be sent is not kept in memory but found again in the objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter

from sickbay.api import kinds
from sickbay.api.infra_event import InfraEvent
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.kinds import Kind
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.clock import Clock, Randomness, rfc3339
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer
from sickbay.kube.leadership import Leadership
from sickbay.kube.lease import Elector, LeaseTimes
from sickbay.kube.workqueue import WorkQueue
from sickbay.notify.channels import Channel, NotDelivered
from sickbay.notify.messages import Due, Message, digest, of_infra_event, of_recovery, of_repair
from sickbay.notify.pools import of_pool

log = structlog.get_logger(__name__)

Key = tuple[str, str]

SETTLE = 1.0
"""Seconds from a change to the look at it. In its first moments a record is written by those who act on it, and a note
of ours in between would make them start over; and what passes by within a second need not be told."""
LOOK_AGAIN = 300.0
RETRY = 60.0
"""Seconds until a message that no channel took is tried again."""
NOTED = 64
"""Entries of status.notified (its schema's limit); the oldest go first."""


@dataclass(frozen=True)
class NotifyOptions:
    identity: str = "sickbay-notify"
    namespace: str = "sickbay-system"
    digest: timedelta = timedelta(hours=24)
    """Between two digests, counted from midnight UTC; 0 = none."""
    lease: LeaseTimes = field(default_factory=LeaseTimes)


class NotifyController:
    """Runs until cancelled; tells people only while it leads."""

    def __init__(
        self, client: Client, clock: Clock, randomness: Randomness, channels: Sequence[Channel],
        options: NotifyOptions | None = None, registry: CollectorRegistry | None = None,
    ) -> None:  # fmt: skip
        self._options = options or NotifyOptions()
        self._client, self._clock, self._channels = client, clock, channels
        self._repairs: Informer[NodeRepair] = Informer(client, kinds.NODE_REPAIR, clock, randomness)
        self._events: Informer[InfraEvent] = Informer(client, kinds.INFRA_EVENT, clock, randomness)
        self._jobs: Informer[JobRecovery] = Informer(client, kinds.JOB_RECOVERY, clock, randomness)
        self._pools: Informer[RepairPool] = Informer(client, kinds.REPAIR_POOL, clock, randomness)
        self._queue: WorkQueue[Key] = WorkQueue(clock, randomness, name="notify", metrics=client.metrics)
        self._elector = Elector(
            client, clock, randomness, name="sickbay-notify",
            namespace=self._options.namespace, identity=self._options.identity, times=self._options.lease,
        )  # fmt: skip
        registry = registry or CollectorRegistry()
        labels = ["channel", "category"]
        self._sent = Counter("sickbay_messages", "Messages that arrived", labels, registry=registry)
        self._lost = Counter(
            "sickbay_messages_dead", "Messages that a channel refused for good", labels, registry=registry
        )
        self._failed = Counter("sickbay_messages_failed", "Sends that failed", ["channel"], registry=registry)
        self._repairs.on_change(lambda old, new: self._changed("repair", new or old))
        self._events.on_change(lambda old, new: self._changed("event", new or old))
        self._jobs.on_change(lambda old, new: self._changed("job", new or old))
        self._pools.on_change(self._pool_changed)

    async def run(self) -> None:
        """Keep the caches current, and tell people whenever the lease is ours."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repairs.run())
            group.create_task(self._events.run())
            group.create_task(self._jobs.run())
            group.create_task(self._pools.run())
            group.create_task(self._elector.run(self._lead))

    def awaited(self) -> list[str]:
        return [f"the list of {i.kind.plural}" for i in (self._repairs, self._events) if not i.synced.is_set()]

    def is_leader(self) -> bool:
        return self._elector.is_leader()

    async def _lead(self, _: Leadership) -> None:
        await self._repairs.synced.wait()
        await self._events.synced.wait()
        self._add_all()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run(self._reconcile, workers=4))
            group.create_task(self._look_again())
            if self._options.digest:
                group.create_task(self._digests())

    async def _look_again(self) -> None:
        while True:
            await self._clock.sleep(LOOK_AGAIN)
            self._add_all()

    def _add_all(self) -> None:
        for repair in self._repairs.all():
            self._queue.add(("repair", repair.metadata.name))
        for event in self._events.all():
            self._queue.add(("event", event.metadata.name))
        for record in self._jobs.all():
            self._queue.add(("job", f"{record.namespace}/{record.name}"))
        for pool in self._pools.all():
            self._queue.add(("pool", pool.metadata.name))

    def _changed(self, what: str, obj: NodeRepair | InfraEvent | JobRecovery | RepairPool | None) -> None:
        if obj is not None:
            space = obj.metadata.namespace
            self._queue.add_after((what, f"{space}/{obj.metadata.name}" if space else obj.metadata.name), SETTLE)

    def _pool_changed(self, old: RepairPool | None, new: RepairPool | None) -> None:
        """Slots come and go all the time; only what people may have to be told is looked at."""
        if new is not None and (old is None or _stops(old) != _stops(new)):
            self._changed("pool", new)

    async def _reconcile(self, key: Key) -> float | None:
        what, name = key
        try:
            if what == "repair":
                return await self._tell(self._repairs, kinds.NODE_REPAIR, name, of_repair)
            if what == "job":
                return await self._tell(self._jobs, kinds.JOB_RECOVERY, name, of_recovery)
            if what == "pool":
                return await self._tell(self._pools, kinds.REPAIR_POOL, name, of_pool)
            return await self._tell(self._events, kinds.INFRA_EVENT, name, of_infra_event)
        except errors.Conflict:
            return 0.5

    async def _tell(
        self, informer: Informer[Any], kind: Kind[Any], name: str, of: Callable[[Any, datetime], Due]
    ) -> float | None:
        namespace, _, name = name.rpartition("/")
        obj = informer.get(name, namespace)
        if obj is None:
            return None
        now = self._clock.now()
        due = of(obj, now)
        for message in due.messages:
            if message.key in obj.status.notified:
                continue
            if not await self._deliver(message):
                return RETRY
            obj = await self._note(informer, kind, obj, message)
        return None if due.next is None else max(0.5, (due.next - now).total_seconds())

    async def _note(self, informer: Informer[Any], kind: Kind[Any], obj: Any, message: Message) -> Any:
        self._elector.check()
        noted: dict[str, str | None] = {message.key: rfc3339(self._clock.now())}
        told = sorted(obj.status.notified.items(), key=lambda item: item[1])
        noted |= dict.fromkeys(key for key, _ in told[: max(0, len(told) + 1 - NOTED)])
        meta = {"resourceVersion": obj.metadata.resource_version, "uid": obj.metadata.uid}
        body = {"metadata": meta, "status": {"notified": noted}}
        written = await self._client.patch_merge(
            kind, obj.metadata.name, body, obj.metadata.namespace, subresource="status"
        )
        informer.observe_write(written)
        return written

    async def _deliver(self, message: Message) -> bool:
        """True when every channel took it or will never take it."""
        arrived = True
        for channel in self._channels:
            self._elector.check()
            try:
                await channel.send(message)
            except NotDelivered as failure:
                self._failed.labels(channel.name).inc()
                log.warning("message not delivered", channel=channel.name, key=message.key, error=str(failure))
                if failure.final:
                    self._lost.labels(channel.name, message.category).inc()
                else:
                    arrived = False
                continue
            self._sent.labels(channel.name, message.category).inc()
        return arrived

    async def _digests(self) -> None:
        """At fixed moments of the day, so that a restart sends none twice."""
        while True:
            now, every = self._clock.now(), self._options.digest
            midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
            following = midnight + every * ((now - midnight) // every + 1)
            await self._clock.sleep((following - now).total_seconds())
            await self._deliver(digest(self._repairs.all(), following - every, following))


def _stops(pool: RepairPool) -> tuple[str | None, list[str | None]]:
    """What keeps the pool's repairs from starting."""
    return pool.status.breaker.opened_at, [storm.since for storm in pool.status.storms]
