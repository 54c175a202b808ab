"""Looking at what providers list, and keeping an InfraEvent for each entry that concerns a Node of this cluster.

A list that could not be read, or not to its end, says nothing about what is missing in it; and what is missing must be
missing twice in a row. The counts of that are kept in memory: after a restart they begin anew, which only delays.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

import msgspec
import structlog
from prometheus_client import CollectorRegistry, Counter

from sickbay.api import kinds
from sickbay.api.core import Node
from sickbay.api.infra_event import InfraEvent
from sickbay.api.meta import Condition
from sickbay.api.names import CLEARED_BY_PERSON
from sickbay.api.objectnames import infra_event_name
from sickbay.api.patches import merge_diff
from sickbay.clock import Clock, parse_time, rfc3339
from sickbay.convert import identity
from sickbay.convert.announced import ANSWERED
from sickbay.convert.clouds import vocabulary
from sickbay.convert.folding import fold, missing
from sickbay.convert.notice import Notice
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer

log = structlog.get_logger(__name__)

ABSENT_READS = 2
"""Complete lists in a row that must lack an event before it counts as gone: lists are only eventually consistent."""
KEEP = timedelta(days=30)
"""How long the record of an ended event is kept: as long as providers go on listing it."""


@dataclass(frozen=True)
class Listed:
    """One look. `complete` only after every page was read without an error."""

    notices: Sequence[Notice] = ()
    complete: bool = True


class SourceError(Exception):
    """The provider could not be asked, or its answer was none. Nothing follows from it."""


class EventSource(Protocol):
    """Where a provider's events are read."""

    name: str
    every: float
    """Seconds between two looks."""

    def covers(self, source: str) -> bool:
        """Whether a complete list would have the events of that `InfraEvent.spec.source`."""
        ...

    async def list(self) -> Listed:
        """All events that the provider lists now. Raises SourceError."""
        ...


@dataclass
class Events:
    """Keeps InfraEvents. `check` raises unless we lead; it is asked before each write."""

    client: Client
    clock: Clock
    nodes: Informer[Node]
    events: Informer[InfraEvent]
    check: Callable[[], None]
    registry: CollectorRegistry
    _absent: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._failed = Counter("sickbay_convert_source_failures", "Looks at a provider that failed", ["source"],
                               registry=self.registry)  # fmt: skip
        self._foreign = Counter("sickbay_convert_unresolved_events", "Entries about no Node of this cluster",
                                ["source"], registry=self.registry)  # fmt: skip

    async def look(self, source: EventSource) -> None:
        """One look at a source. Never raises for what the source does; raises ApiError for what the API server does."""
        try:
            listed = await source.list()
        except SourceError as error:
            self._failed.labels(source.name).inc()
            log.warning("a provider could not be asked", source=source.name, error=str(error))
            return
        seen = await self.take(listed.notices)
        if listed.complete:
            await self._count_missing(source, seen)

    async def take(self, notices: Sequence[Notice]) -> set[str]:
        """Fold entries into the InfraEvents. Raises ApiError.

        Returns the names of the InfraEvents that they are, or would be if they were about a Node of ours.
        """
        by_key, by_name = identity.index(self.nodes.all())
        entries: dict[str, list[Notice]] = {}
        for notice in notices:
            entries.setdefault(infra_event_name(*notice.key), []).append(notice)
        for name, mine in sorted(entries.items()):
            event, first = self.events.get(name), mine[0]
            node = by_name.get(event.spec.node.name) if event is not None else identity.find(first, by_key, by_name)
            if node is None and event is None:
                self._foreign.labels(first.source).inc()
                continue
            after = fold(event, mine, node, vocabulary(first.source), self.clock.now())
            if after is not None:
                await self._write(event, after)
        return set(entries)

    async def _count_missing(self, source: EventSource, seen: set[str]) -> None:
        for event in self.events.all():
            name = event.metadata.name
            if not source.covers(event.spec.source) or event.status.terminal:
                continue
            if name in seen:
                self._absent.pop(name, None)
                continue
            self._absent[name] = self._absent.get(name, 0) + 1
            if self._absent[name] >= ABSENT_READS:
                await self._write(event, missing(event, self.clock.now()))

    async def tidy(self) -> None:
        """Delete the records of events that ended long ago."""
        now = self.clock.now()
        for event in self.events.all():
            since = event.status.since
            ended = event.status.terminal or event.status.phase == "Gone"
            if ended and since and now - parse_time(since) > KEEP:
                self.check()
                await self.client.delete(kinds.INFRA_EVENT, event.metadata.name, uid=event.metadata.uid)

    async def answer(self, events: Sequence[InfraEvent], message: str) -> None:
        """Note on events that a person has cleared what they caused. Raises Conflict and other ApiErrors."""
        for event in events:
            after = copy.deepcopy(event)
            made = Condition(
                type=ANSWERED, status="True", reason=CLEARED_BY_PERSON, message=message[:1024],
                last_transition_time=rfc3339(self.clock.now()),
            )  # fmt: skip
            after.status.conditions = [c for c in after.status.conditions if c.type != ANSWERED] + [made]
            await self._write(event, after)

    async def _write(self, before: InfraEvent | None, after: InfraEvent) -> None:
        """Bring the object to `after`. Raises Conflict where somebody was faster: the next look sees theirs."""
        written = before
        if written is None:
            self.check()
            body = msgspec.structs.replace(after, status=type(after.status)())
            written = await self.client.create(kinds.INFRA_EVENT, body)
            self.events.observe_write(written)
        elif spec := merge_diff(msgspec.to_builtins(written.spec), msgspec.to_builtins(after.spec)):
            written = await self._patch(written, {"spec": spec}, "")
        status = merge_diff(msgspec.to_builtins(written.status), msgspec.to_builtins(after.status))
        if status:
            await self._patch(written, {"status": status}, "status")

    async def _patch(self, event: InfraEvent, body: dict[str, Any], subresource: str) -> InfraEvent:
        self.check()
        meta = {"resourceVersion": event.metadata.resource_version, "uid": event.metadata.uid}
        written = await self.client.patch_merge(
            kinds.INFRA_EVENT, event.metadata.name, {**body, "metadata": meta}, subresource=subresource
        )
        self.events.observe_write(written)
        return written


async def poll(source: EventSource, events: Events, clock: Clock) -> None:
    """Look at a source for ever."""
    while True:
        try:
            await events.look(source)
        except errors.ApiError as error:
            log.warning("what a provider lists could not be recorded", source=source.name, error=str(error))
        await clock.sleep(source.every)
