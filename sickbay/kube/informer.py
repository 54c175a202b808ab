"""A reflector with an indexed cache: what the API server holds of one kind, kept current.

    informer = Informer(client, kinds.NODE, clock, randomness, indexes={...})
    informer.on_change(lambda old, new: queue.add(...))
    task = asyncio.create_task(informer.run())
    await informer.synced.wait()

It lists once, then watches from there. A watch that ends or breaks goes on from the last position it knew (events and
bookmarks move it); a position the server no longer has means a new list, and what vanished meanwhile is found by
comparison and told to the handlers like any deletion. Failures back off with jitter and never end `run`.

Handlers get (old, new), None for "was not there" and "is gone". They run inline and must be quick: put a key into a
queue. One that raises is logged and does not keep the others from being told.

Trust, but compare: every `resync` seconds the cache is compared with a fresh list. Differences that the watch should
have told are counted in sickbay_watch_gaps_total, and repaired.

An object that does not decode never blinds the informer: it is named in `malformed`, its last readable version stays
in the cache (it exists, so it must not look deleted), and since every write carries a version nobody can act on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import lru_cache
from typing import Generic, TypeVar

import structlog

from sickbay.api.kinds import Kind
from sickbay.clock import Clock, Randomness
from sickbay.kube import client as client_module
from sickbay.kube import errors
from sickbay.kube.backoff import Backoff
from sickbay.kube.client import Client, Listing, WatchEvent
from sickbay.kube.decode import Malformed
from sickbay.kube.metrics import KubeMetrics
from sickbay.kube.objects import Key, key_of, uid_of, version, version_of, version_text
from sickbay.kube.store import Change, IndexFunction, Store

T = TypeVar("T")

Handler = Callable[[T | None, T | None], None]

RESYNC = 3600.0
"""Seconds between comparisons with a fresh list."""

BACKOFF_LOW, BACKOFF_HIGH = 0.8, 30.0
"""Seconds; the same as client-go's reflector."""

AFRESH_LOW, AFRESH_HIGH = 0.5, 10.0
"""Seconds between two tries to read afresh: shorter than above, since a leader waits for it."""

SETTLED = 10.0
"""A watch that lived this many seconds had worked: when it ends, the next one starts at once."""

UNNAMED_COMPARE = 60.0
"""Seconds until the comparison after an event of which not even the name can be read."""

REWOUND = "Rewound"
"""Reason of the Gone that we raise ourselves: versions of a watch never fall, unless the server lost its history."""

log = structlog.get_logger(__name__)


class Informer(Generic[T]):
    """See the module. `namespace` empty = all; `labels` and `fields` are selectors as the API server takes them."""

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        clock: Clock,
        randomness: Randomness,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, IndexFunction[T]] | None = None,
        resync: float = RESYNC,
        watch_seconds: int = client_module.WATCH_SECONDS,
        silence: float = client_module.WATCH_SILENCE,
        metrics: KubeMetrics | None = None,
    ) -> None:
        self.kind = kind
        self.store: Store[T] = Store(indexes)
        self.synced = asyncio.Event()
        self.malformed: dict[Key, str] = {}
        self.last_error: errors.ApiError | None = None
        self._client = client
        self._clock = clock
        self._randomness = randomness
        self._namespace, self._labels, self._fields = namespace, labels, fields
        self._resync = resync * client.watch_pace
        self._watch_seconds = watch_seconds * client.watch_pace
        self._silence, self._quiet_for = silence, silence * client.watch_pace
        self._watching = False
        self._metrics = metrics or client.metrics
        self._handlers: list[Handler[T]] = []
        self._backoff = Backoff(randomness, BACKOFF_LOW, BACKOFF_HIGH)
        self._position = ""
        self._floor: int | None = None
        self._epoch = 0
        self._spoke = False
        self._heard = clock.monotonic()
        self._compare_at = 0.0
        component = client.user_agent
        self._events = lru_cache(maxsize=16)(self._metrics.watch_events.labels)
        self._metrics.informer_objects.labels(component, kind.kind).set_function(lambda: len(self.store))
        self._metrics.informer_age.labels(component, kind.kind).set_function(self.age)

    def on_change(self, handler: Handler[T]) -> None:
        """Call `handler(old, new)` for every change from now on; objects already known are told at once as new."""
        self._handlers.append(handler)
        for obj in self.store.all():
            self._call(handler, Change(None, obj))

    def get(self, name: str, namespace: str = "") -> T | None:
        return self.store.get(name, namespace)

    def all(self) -> list[T]:
        return self.store.all()

    def by_index(self, index: str, value: str) -> list[T]:
        return self.store.by_index(index, value)

    def age(self) -> float:
        """Seconds since the API server was last heard of. Above the silence limit, what is cached may be old."""
        return self._clock.monotonic() - self._heard

    def sees(self) -> bool:
        """Whether what is cached is what there is: the API server was heard of within twice the silence limit."""
        return self.synced.is_set() and self.age() < 2 * (self._quiet_for if self._watching else self._silence)

    def observe_write(self, obj: T) -> None:
        """Take in the server's answer to a write of our own, so that the next decision already sees it.

        The object must be one that this informer's selectors choose.
        """
        self._tell(self.store.upsert(obj))

    async def relist(self) -> None:
        """Read everything afresh from the quorum. When it returns the cache is as new as the moment of the call.

        The watch goes on meanwhile. Raises ApiError when the list cannot be had.
        """
        before = self.store.newest
        listing = await self._client.list(self.kind, self._namespace, self._labels, self._fields)
        kept = [key for key in map(_named, listing.malformed) if key is not None]
        if len(kept) < len(listing.malformed):
            kept += await self._still_there(listing)
        self._take(listing, kept, before)

    async def read_afresh(self) -> None:
        """`relist`, tried until it succeeds: a new leader decides and acts on nothing older than its term."""
        backoff = Backoff(self._randomness, AFRESH_LOW, AFRESH_HIGH)
        await self.synced.wait()
        while True:
            try:
                return await self.relist()
            except errors.ApiError as error:
                log.warning("not read afresh yet", kind=self.kind.kind, error=str(error))
                await self._clock.sleep(backoff.next())

    async def run(self) -> None:
        """Keep the cache current until cancelled."""
        while True:
            self._spoke = False
            started = self._clock.monotonic()
            try:
                if not self._position or started >= self._compare_at:
                    await self.relist()
                else:
                    await self._check_history()
                await self._watch()
            except errors.ApiError as error:
                self._note(error)
                if self._spoke:
                    self._backoff.reset()
                await self._clock.sleep(self._backoff.next())
                continue
            self.last_error = None
            self._backoff.reset()
            if self._clock.monotonic() - started < SETTLED:
                await self._clock.sleep(BACKOFF_LOW)

    async def _check_history(self) -> None:
        """Raises Gone when the server has not come as far as we have.

        After a restore from backup it would hold such a watch open and tell nothing until its versions catch up.
        """
        current = version(await self._client.current_version(self.kind, self._namespace))
        known = version(self._position)
        if current is not None and known is not None and current < known:
            raise errors.Gone(410, REWOUND, f"the server is at {current}, we were at {known}")

    async def _watch(self) -> None:
        self._floor = version(self._position)
        epoch = self._epoch
        stream = self._client.watch(
            self.kind,
            self._position,
            self._namespace,
            self._labels,
            self._fields,
            timeout_seconds=self._seconds(),
            silence=self._quiet_for,
        )
        self._watching = True
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    self._heard = self._clock.monotonic()
                    self._spoke = True
                    if epoch == self._epoch:
                        self._receive(event)
                    if epoch != self._epoch or self._heard >= self._compare_at:
                        return
        finally:
            self._watching = False

    def _seconds(self) -> int:
        """Up to twice the usual time, by lot, so that the watches of all replicas do not end together."""
        wanted = self._watch_seconds * (1 + self._randomness.uniform(0, 1))
        return max(1, min(int(wanted), int(self._compare_at - self._clock.monotonic()) + 1))

    def _receive(self, event: WatchEvent[T]) -> None:
        self._events(self.kind.kind, event.type).inc()
        if event.type == "BOOKMARK":
            self._moved(event.identity.resource_version)
            return
        if event.object is None:
            self._set_aside(event)
            return
        obj = event.object
        key, text = key_of(obj), version_text(obj)
        self.malformed.pop(key, None)
        if event.type == "DELETED":
            change = self.store.remove(key, uid_of(obj), version_of(obj))
        else:
            change = self.store.upsert(obj)
        self._tell(change)
        self._moved(text)

    def _moved(self, text: str) -> None:
        """The watch has reached this version. Raises Gone when it had been further: then nothing it says holds."""
        reached = version(text)
        if reached is None:
            self._position = text or self._position
            return
        if self._floor is not None and reached < self._floor:
            raise errors.Gone(410, REWOUND, f"the watch went back from {self._floor} to {reached}")
        self._floor = reached
        self.store.advance(reached)
        if reached >= self.store.horizon:
            self._position = text

    def _set_aside(self, event: WatchEvent[T]) -> None:
        """An event whose object does not decode. What cannot be named at all is found by an early comparison."""
        who = event.identity
        log.warning("malformed object", kind=self.kind.kind, name=who.name, namespace=who.namespace, error=event.error)
        key = (who.namespace, who.name)
        if not who.name:
            self._compare_at = min(self._compare_at, self._clock.monotonic() + UNNAMED_COMPARE)
        elif event.type == "DELETED":
            self.malformed.pop(key, None)
            self._tell(self.store.remove(key, who.uid, version(who.resource_version)))
        else:
            self.malformed[key] = event.error
        self._moved(who.resource_version)

    def _take(self, listing: Listing[T], kept: list[Key], before: int) -> None:
        listed = version(listing.resource_version)
        rewound = (listed is not None and listed < before) or self.store.contradicts(listing.items, listed)
        if rewound:
            comparison = self.store.reset(listing.items, listed, kept)
            self._gap("rewound")
            self._epoch += 1
        else:
            comparison = self.store.replace(listing.items, listed, kept)
        if rewound or listed is None or listed >= self.store.horizon:
            self._position = listing.resource_version
        self.malformed = {key: bad.error for bad in listing.malformed if (key := _named(bad)) is not None}
        self._metrics.watch_gaps.labels(self.kind.kind, "missed").inc(comparison.missed)
        if comparison.missed:
            log.error("the watch had missed changes", kind=self.kind.kind, missed=comparison.missed)
        self._heard = self._clock.monotonic()
        self._compare_at = self._heard + self._resync * (1 + self._randomness.uniform(0, 0.2))
        for change in comparison.changes:
            self._tell(change)
        self.synced.set()

    async def _still_there(self, listing: Listing[T]) -> list[Key]:
        """Of the objects a list seems to lack, those that exist: one of its items could not be named."""
        present = {key_of(obj) for obj in listing.items}
        found = []
        for namespace, name in [key for key in self.store if key not in present]:
            try:
                await self._client.get(self.kind, name, namespace)
            except errors.NotFound:
                continue
            except errors.MalformedObject:
                pass
            found.append((namespace, name))
        return found

    def _note(self, error: errors.ApiError) -> None:
        """Count and log a failure, and give up the position where it is worth nothing any more."""
        self.last_error = error
        kind = self.kind.kind
        self._metrics.watch_failures.labels(kind, type(error).__name__).inc()
        log.warning("list or watch failed", kind=kind, error=str(error), position=self._position)
        cause = _lost_position(error)
        if cause and self._position:
            self._position = ""
            self._gap(cause)

    def _gap(self, cause: str) -> None:
        self._metrics.watch_gaps.labels(self.kind.kind, cause).inc()

    def _tell(self, change: Change[T] | None) -> None:
        if change is None:
            return
        for handler in self._handlers:
            self._call(handler, change)

    def _call(self, handler: Handler[T], change: Change[T]) -> None:
        try:
            handler(change.old, change.new)
        except Exception:
            self._metrics.handler_errors.labels(self.kind.kind).inc()
            log.exception("a change handler failed", kind=self.kind.kind)


def _named(bad: Malformed) -> Key | None:
    return (bad.identity.namespace, bad.identity.name) if bad.identity.name else None


def _lost_position(error: errors.ApiError) -> str:
    """Why the position is of no use after this error; empty where the watch can go on from it."""
    if isinstance(error, errors.Gone):
        return "rewound" if error.reason == REWOUND else "expired"
    if isinstance(error, errors.MalformedObject):
        return "garbled"
    too_large = any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
    if isinstance(error, errors.Invalid) or too_large:
        return "rewound"
    return ""
