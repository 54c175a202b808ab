"""The controller around the conversions: looks at a node, and writes the conditions that others' words amount to.

Keys are nodes. What a node's conditions should be follows from the objects as they are and from what stands on the
Node already, so any node may be looked at at any moment, any number of times, and a restart loses nothing. One status
write brings a node up to date, whatever it was that changed.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from sickbay.api import kinds, names
from sickbay.api.core import Event, Node, NodeCondition
from sickbay.api.infra_event import InfraEvent
from sickbay.api.node_repair import NodeRepair
from sickbay.clock import Clock, Randomness, rfc3339
from sickbay.convert import agents, announced, clearing, promoted
from sickbay.convert.alerts import Alert, AlertBook, matching
from sickbay.convert.asked import Asked, asked
from sickbay.convert.combining import combined, orphans
from sickbay.convert.complaints import Complaints
from sickbay.convert.metrics import ConvertMetrics
from sickbay.convert.notice import Notice
from sickbay.convert.others import OtherObjects
from sickbay.convert.polling import Events, EventSource, poll
from sickbay.convert.silence import SILENT
from sickbay.convert.sources import RESYNC, Sources
from sickbay.convert.trace import Trace
from sickbay.convert.wanted import Wanted, changes
from sickbay.convert.watching import LOOK, AgentWatch
from sickbay.kube import errors, nodes
from sickbay.kube.client import Client
from sickbay.kube.events import NORMAL, WARNING, EventRecorder, reference
from sickbay.kube.leadership import Leadership, NotLeading
from sickbay.kube.lease import Elector, LeaseTimes
from sickbay.kube.workqueue import WorkQueue

log = structlog.get_logger(__name__)

WORKERS = 4
LOOK_AGAIN = 60.0
"""Seconds after which nodes with announcements are looked at again: their dates come by themselves."""
LOOK_AT_ALL = 5
"""Every so many of those looks every node is looked at again, whatever the watches said."""


@dataclass(frozen=True)
class ConvertOptions:
    """Settings of the controller."""

    identity: str = "sickbay-convert"
    namespace: str = "sickbay-system"
    """Where the Lease lives."""
    resync: float = RESYNC
    lease: LeaseTimes = field(default_factory=LeaseTimes)
    look: float = LOOK
    """Seconds between two looks at the agents' Leases."""
    patience: float = SILENT
    """Seconds without a sign of life after which an agent is silent."""


class ConvertController:
    """Runs until cancelled; writes only while it leads."""

    def __init__(
        self, client: Client, clock: Clock, randomness: Randomness, options: ConvertOptions | None = None,
        registry: CollectorRegistry | None = None, providers: Sequence[EventSource] = (),
    ) -> None:  # fmt: skip
        self._options = options or ConvertOptions()
        self._client, self._clock, self._providers = client, clock, providers
        registry = registry or CollectorRegistry()
        self._elector = Elector(
            client, clock, randomness, name="sickbay-convert",
            namespace=self._options.namespace, identity=self._options.identity,
            times=self._options.lease,
        )  # fmt: skip
        self._sources = Sources(client, clock, randomness, self._options.resync)
        self._recorder = EventRecorder(client, clock, randomness, component="sickbay-convert")
        self._agents = AgentWatch(
            client, clock, self._sources, self._recorder, self._options.look, self._options.patience
        )
        self._queue: WorkQueue[str] = WorkQueue(clock, randomness, name="convert", metrics=client.metrics)
        self._events = Events(client, clock, self._sources.nodes, self._sources.infra, self._elector.check, registry)
        self._alerts, self._heard, self._types = AlertBook(), promoted.Memory(), dict[str, Asked]()
        self._objects = OtherObjects(client, clock, randomness, self._queue.add)
        self._complaints = Complaints(client, clock, self._sources.types, self._elector.check)
        self._types_changed = asyncio.Event()
        ConvertMetrics(registry, self._sources, self._agents)
        self._sources.nodes.on_change(self._node_changed)
        self._sources.infra.on_change(self._infra_changed)
        self._sources.events.on_change(self._event_changed)
        self._sources.repairs.on_change(self._repair_changed)
        self._sources.types.on_change(lambda _old, _new: self._types_changed.set())

    async def run(self) -> None:
        """Keep the caches current, and write whenever the lease is ours."""
        async with asyncio.TaskGroup() as group:
            for informer in self._sources.all:
                group.create_task(informer.run())
            group.create_task(self._recorder.run())
            group.create_task(self._watch_agents())
            group.create_task(self._follow_types(group))
            group.create_task(self._elector.run(self._lead))

    def awaited(self) -> list[str]:
        """What start-up still waits for, for a readiness probe. A replica that does not lead is ready too."""
        return [f"the list of {i.kind.plural}" for i in self._sources.all if not i.synced.is_set()]

    def is_leader(self) -> bool:
        return self._elector.is_leader()

    async def _lead(self, _: Leadership) -> None:
        await self._sources.wait_synced()
        await self._sources.read_afresh()
        self._add_all()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run(self._reconcile, workers=WORKERS))
            group.create_task(self._look_again())
            for source in self._providers:
                group.create_task(poll(source, self._events, self._clock))

    async def _look_again(self) -> None:
        for number in itertools.count(1):
            await self._clock.sleep(LOOK_AGAIN)
            if number % LOOK_AT_ALL == 0:
                self._add_all()
            for name in {event.spec.node.name for event in self._sources.infra.all()}:
                self._queue.add(name)
            try:
                await self._events.tidy()
                await self._complaints.tell(self._objects.complaints())
            except errors.ApiError as error:
                log.debug("not tidied", error=str(error))

    async def _watch_agents(self) -> None:
        """In every replica, so that a new leader has watched for as long as the old one."""
        await self._sources.wait_synced()
        while True:
            for name in await self._agents.look(self.is_leader()):
                self._queue.add(name)
            await self._clock.sleep(self._options.look)

    async def _follow_types(self, group: asyncio.TaskGroup) -> None:
        """Whatever changes in the fault types changes what has to be watched."""
        await self._sources.types.synced.wait()
        while True:
            self._types_changed.clear()
            self._types = asked(self._sources.types.all())
            self._objects.ask(self._types, group)
            self._add_all()
            await self._types_changed.wait()

    async def take_alerts(self, received: list[Alert]) -> int:
        """Write what alerts say. Returns how many concern a node and a fault type; when it returns it is written.

        Raises NotLeading and ApiError, and then nothing is promised.
        """
        self._elector.check()
        nodes_: dict[str, Node] = {}
        for alert, one, called in matching(received, self._types.values()):
            node = next((n for n in map(self._sources.nodes.get, called) if n is not None), None)
            if node is not None:
                self._alerts.take(node, one, alert)
                nodes_[node.name] = node
        for node in nodes_.values():
            await self._say(self._sources.nodes.get(node.name) or node)
        return len(nodes_)

    async def take_notices(self, received: list[Notice]) -> int:
        """Record what a provider announces. Returns how many events that concerns; when it returns it is written.

        Raises NotLeading and ApiError, and then nothing is promised.
        """
        self._elector.check()
        return len(await self._events.take(received))

    def _add_all(self) -> None:
        for node in self._sources.nodes.all():
            self._queue.add(node.name)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None and (old is None or _facts(old) != _facts(new)):
            self._queue.add(new.name)
        if old is not None and (new is None or new.uid != old.uid):
            self._alerts.forget(old.uid)
            self._heard.forget(old.uid)

    def _infra_changed(self, old: InfraEvent | None, new: InfraEvent | None) -> None:
        for event in (old, new):
            if event is not None and event.spec.node.name:
                self._queue.add(event.spec.node.name)

    def _event_changed(self, old: Event | None, new: Event | None) -> None:
        event = new or old
        assert event is not None
        if any(test.reason == event.reason for one in self._types.values() for test in one.events):
            self._queue.add(event.involved_object.name)

    def _repair_changed(self, old: NodeRepair | None, new: NodeRepair | None) -> None:
        if new is not None and any(one.events for one in self._types.values()):
            self._queue.add(new.spec.node.name)

    # --- one node

    async def _reconcile(self, name: str) -> float | None:
        node = self._sources.nodes.get(name)
        if node is None:
            return None
        try:
            if name in self._agents.silent:
                node = await self._mark_silent(node)
            return await self._say(node)
        except NotLeading:
            return None
        except errors.NotFound:
            return None
        except errors.Conflict as conflict:
            log.debug("looked at something that has changed", node=name, error=str(conflict))
            return 0.5

    async def _mark_silent(self, node: Node) -> Node:
        """Take back what a silent agent has said. Conditional on the Node as read: the agent may come back."""
        raw = await self._client.get(kinds.NODE.raw, node.name)
        fresh = msgspec.convert(raw, Node)
        changed = agents.to_unknown(fresh, raw, rfc3339(self._clock.now()))
        if not changed or fresh.uid != node.uid or node.name not in self._agents.silent:
            return node
        body = nodes.conditions_patch(changed, uid=fresh.uid)
        body["metadata"]["resourceVersion"] = fresh.metadata.resource_version
        self._elector.check()
        written = await self._client.patch_strategic(kinds.NODE, node.name, body, subresource="status")
        self._sources.nodes.observe_write(written)
        return written

    async def _say(self, node: Node) -> float | None:
        """Bring the conditions of a node up to date. Returns the seconds after which time may change them."""
        now = self._clock.now()
        words = clearing.followed(node)
        cleared = [await self._clear(node, type_, word) for type_, word in words.items()]
        promoted_, again = self._asked_for(node)
        wanted = announced.conditions(node, self._sources.infra.by_index("node", node.name), now)
        others = clearing.instead([*wanted, *promoted_, *orphans(node, self._types)], words)
        changed = changes(node, [*others, *cleared], rfc3339(now))
        if not changed:
            await self._take_off(node)
            return again
        self._elector.check()
        written = await nodes.set_conditions(self._client, node.name, changed, uid=node.uid)
        self._sources.nodes.observe_write(written)
        for condition in changed:
            self._tell(node, condition)
        return again

    def _asked_for(self, node: Node) -> tuple[list[Wanted], float | None]:
        """What fault types ask for that are recognised by Events, other objects or alerts."""
        found, waits = [], []
        told = bool(self._sources.events.by_index("node", node.name))
        present = {condition.type for condition in node.conditions}
        for type_, one in self._types.items():
            if type_ not in present and not told and not (one.objects or one.alerts):
                continue  # most types on most nodes
            said: list[Wanted | None] = []
            if one.events:
                judged = self._count(node, one)
                said.append(judged.wanted)
                waits += [judged.again] if judged.again is not None else []
            if one.objects:
                said.append(self._objects.wanted(node, one))
            if one.alerts:
                said.append(self._alerts.wanted(node, one))
            result = combined(node, type_, said)
            found += [result] if result is not None else []
        return found, max(0.5, min(waits)) if waits else None

    def _count(self, node: Node, one: Asked) -> promoted.Judged:
        events = self._sources.events.by_index("node", node.name)
        repairs = self._sources.repairs.by_index("node", node.name)
        return promoted.judge(one, node, events, repairs, self._heard, self._clock.monotonic())

    async def _clear(self, node: Node, type_: str, word: clearing.Word) -> Wanted:
        """Follow a person's word wherever something would raise the condition again."""
        self._alerts.drop(node, type_)
        infra = [e for e in self._sources.infra.by_index("node", node.name) if e.spec.node.uid == node.uid]
        caused = [e for e in infra if (kind := announced.kind_of(e)) is not None and kind.condition == type_]
        tail, one = "", self._types.get(type_)
        if one is not None and one.events:
            events = self._sources.events.by_index("node", node.name)
            tail = str(Trace(promoted.last_evidence(one, node, events), node.boot_id))
        said = clearing.wanted(type_, word, tail)
        await self._events.answer([e for e in caused if not announced.answered(e)], said.message)
        return said

    async def _take_off(self, node: Node) -> None:
        """Take people's words off the Node once they have been followed, or hold no more."""
        if names.CLEAR not in node.annotations or clearing.followed(node):
            return
        self._elector.check()
        written = await nodes.patch_node(self._client, node, nodes.annotation_ops(node, {names.CLEAR: None}))
        self._sources.nodes.observe_write(written)

    def _tell(self, node: Node, condition: NodeCondition) -> None:
        before = node.condition(condition.type)
        if before is not None and before.status == condition.status:
            return
        type_ = NORMAL if condition.status == "False" else WARNING
        message = f"{condition.status} ({condition.reason}): {condition.message}"
        self._recorder.event(reference(kinds.NODE, node), type_, condition.type, message)


def _facts(node: Node) -> object:
    """What matters here of a Node; a heartbeat does not."""
    conditions = [(c.type, c.status, c.reason) for c in node.conditions]
    return node.uid, node.boot_id, node.provider_id, conditions, node.annotations.get(names.CLEAR)
