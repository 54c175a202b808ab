"""Writing Events: what happened to an object, for people who look at it with `kubectl describe`.

    recorder = EventRecorder(client, clock, randomness, component="sickbay-execute")
    recorder.event(reference(kinds.NODE, node), NORMAL, "QuarantineDone", "cordoned for gpu.xid.79")

`event` returns at once and never raises: an Event is a courtesy, no decision hangs on it. One task (`run`) writes them.
They are core/v1 Events, which every reader sees through events.k8s.io/v1 too; those about cluster-scoped objects go to
namespace `default`, as the API server demands.
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from sickbay.api.core import ObjectReference
from sickbay.api.kinds import EVENT, Kind
from sickbay.clock import Clock, Randomness, rfc3339
from sickbay.kube import errors
from sickbay.kube.backoff import Backoff
from sickbay.kube.client import Client
from sickbay.kube.eventbook import UPDATE_EVERY, EventBook, Series
from sickbay.kube.metrics import KubeMetrics
from sickbay.kube.objects import key_of, uid_of

NORMAL, WARNING = "Normal", "Warning"

NOTE_MAX = 1024
"""Bytes of a message that events.k8s.io/v1 accepts."""

TRIES = 4
"""Sends of one Event before it is dropped."""

_NAME_MAX = 220
"""Characters of the object's name in the Event's own name, which may have 253 in all."""

_HOPELESS = (errors.Forbidden, errors.Invalid, errors.NotFound, errors.MalformedObject)

log = structlog.get_logger(__name__)


def reference(kind: Kind[Any], obj: Any) -> ObjectReference:
    """The reference to an object, as Events carry it."""
    namespace, name = key_of(obj)
    return ObjectReference(
        api_version=kind.api_version, kind=kind.kind, namespace=namespace, name=name, uid=uid_of(obj)
    )


class EventRecorder:
    """See the module. `component` names the writer, `instance` this process of it."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        *,
        component: str,
        instance: str = "",
        metrics: KubeMetrics | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._randomness = randomness
        self._component = component
        self._instance = instance or component
        self._metrics = metrics or client.metrics
        self._book = EventBook()
        self._more = asyncio.Event()

    def event(
        self, regarding: ObjectReference, type_: str, reason: str, message: str, action: str = "",
        related: ObjectReference | None = None,
    ) -> None:  # fmt: skip
        """Note that something happened; `related`: what else it is about. Never raises, never waits."""
        message = _cut(message, NOTE_MAX)
        now, at = self._clock.now(), self._clock.monotonic()
        if self._book.note(regarding, type_, reason, message, action, now, at, related):
            self._more.set()
        else:
            self._metrics.events_dropped.labels("rate").inc()

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            self._more.clear()
            await self.flush()
            due = self._book.next_due()
            if due is None:
                await self._more.wait()
            else:
                await self._clock.sleep(max(0.0, due - self._clock.monotonic()))

    async def flush(self) -> None:
        """Write what is due now. Never raises an ApiError."""
        for series in self._book.due(self._clock.monotonic()):
            await self._write(series)

    async def _write(self, series: Series) -> None:
        backoff = Backoff(self._randomness, 0.5, 10.0)
        count = series.count
        for attempt in range(1, TRIES + 1):
            try:
                await self._send(series, count)
            except errors.ApiError as error:
                if isinstance(error, _HOPELESS) or attempt == TRIES:
                    self._metrics.events_dropped.labels(type(error).__name__).inc()
                    log.warning("event not written", reason=series.reason, message=series.message, error=str(error))
                    return
                await self._clock.sleep(backoff.next())
            else:
                series.written = count
                series.due = self._clock.monotonic() + UPDATE_EVERY
                self._metrics.events_sent.inc()
                return

    async def _send(self, series: Series, count: int) -> None:
        namespace = series.regarding.namespace or "default"
        if series.written:
            update = {"count": count, "lastTimestamp": rfc3339(series.last)}
            try:
                await self._client.patch_merge(EVENT, series.name, update, namespace)
                return
            except errors.NotFound:
                series.name = ""  # expired: Events live an hour by default
        if not series.name:
            series.name = f"{series.regarding.name[:_NAME_MAX]}.{self._randomness.hex(16)}"
        try:
            await self._client.create(EVENT, self._event(series, count, namespace), namespace)
        except errors.AlreadyExists:
            return  # an earlier try arrived whose answer was lost

    def _event(self, series: Series, count: int, namespace: str) -> dict[str, Any]:
        about, related = series.regarding, series.related
        return {
            **({"related": {"kind": related.kind, "name": related.name}} if related is not None else {}),
            "metadata": {"name": series.name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "type": series.type,
            "reason": series.reason,
            "message": series.message,
            "action": series.action,
            "count": count,
            "firstTimestamp": rfc3339(series.first),
            "lastTimestamp": rfc3339(series.last),
            "source": {"component": self._component, "host": self._instance},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }


def _cut(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8, with an ellipsis where something is missing."""
    encoded = text.encode("utf-8", "replace")  # kernel lines may hold bytes that are no text
    if len(encoded) <= limit:
        return encoded.decode()
    return encoded[: limit - 3].decode("utf-8", "ignore") + "…"
