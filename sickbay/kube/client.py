"""A thin client: one method per verb, objects decoded one at a time, every failure one of `errors`.

It knows no resource by name: a `Kind` says where an object lives and as which struct it is read. `Kind` with
`struct=dict` gives plain dicts. There is no PUT on purpose: structs hold only the fields we read, and writing one back
would drop the others.

    listing = await client.list(kinds.NODE)
    async with aclosing(client.watch(kinds.NODE, listing.resource_version)) as events:
        async for event in events:
            ...

Throttled requests (429) wait as long as the server asks and are repeated a few times, since the server has not looked
at them. An eviction is the exception: there 429 is the answer of a disruption budget. Nothing else is repeated here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar

import httpx2
import msgspec

from sickbay.api.kinds import POD, Kind
from sickbay.clock import Clock, SystemClock
from sickbay.kube import decode, errors
from sickbay.kube.decode import Identity, Malformed
from sickbay.kube.exchange import Exchange
from sickbay.kube.metrics import KubeMetrics, RequestMetrics
from sickbay.kube.objects import nameless
from sickbay.kube.outgoing import Outgoing

T = TypeVar("T")

PAGE = 500
"""Items per page: the same as client-go's reflectors; see the measurements in benchmarks/README.md."""

WATCH_SECONDS = 300
"""How long the server keeps one watch open (client-go: 5 to 10 minutes)."""

WATCH_SILENCE = 150.0
"""Seconds without a byte after which a watch counts as dead. The server sends a bookmark about once a minute."""

THROTTLE_TRIES = 4
THROTTLE_WAIT = 1.0
THROTTLE_WAIT_MAX = 30.0
"""Sends of one request under 429, seconds to wait where the server names none, and the longest wait we follow."""

REQUEST_SECONDS = 75
"""After which an answer counts as lost. The server itself gives up after 60 s (its `--request-timeout`)."""

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

_LOST = (httpx2.HTTPError, httpx2.StreamError, OSError, errors.ConfigError)
"""What comes instead of an answer. A ConfigError: the credentials could not be had (token file, exec plug-in)."""

Operation = Mapping[str, Any]
"""One operation of a JSON patch (RFC 6902)."""


@dataclass(slots=True)
class Listing(Generic[T]):
    """A consistent list. `malformed` are the objects that are there but cannot be read."""

    items: list[T] = field(default_factory=list)
    resource_version: str = ""
    malformed: list[Malformed] = field(default_factory=list)


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """ADDED, MODIFIED, DELETED or BOOKMARK. `object` is None for a bookmark and where it does not decode (`error`)."""

    type: str
    object: T | None
    raw: msgspec.Raw
    error: str = ""

    @property
    def identity(self) -> Identity:
        """Names and resourceVersion read from the raw object, also where the rest does not decode."""
        return decode.identity(self.raw)


class Client:
    """Calls to one API server under one User-Agent.

    Every method raises `errors.ApiError` (see the tree there). With `Unreachable` and `ServerError` a write may have
    been carried out: look before repeating. The httpx2 client carries base URL, credentials and TLS. With `exchange`
    only watches go over it, and everything else that way.
    """

    def __init__(
        self,
        http: httpx2.AsyncClient,
        user_agent: str,
        clock: Clock | None = None,
        metrics: KubeMetrics | None = None,
        exchange: Exchange | None = None,
        watch_pace: float = 1.0,
    ) -> None:
        self.http = http
        self.watch_pace = watch_pace
        """How much longer than usual watches stay open and may be silent, and how much rarer caches are compared with a
        list. The server's bookmarks must keep the same pace."""
        self.user_agent = user_agent
        self._outgoing = Outgoing(http, user_agent)
        self._exchange: Exchange = exchange or self._outgoing
        self._clock: Clock = clock or SystemClock()
        self.metrics = metrics or KubeMetrics()
        self.requests = RequestMetrics(self.metrics)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """One object, read from the quorum."""
        body = await self._send("GET", kind.path(namespace, name))
        return decode.decode_object(kind.struct, body)

    async def list(
        self, kind: Kind[T], namespace: str = "", labels: str = "", fields: str = "", limit: int = PAGE
    ) -> Listing[T]:
        """All objects of a kind, read page by page from the quorum. `namespace` empty: of all namespaces.

        When the history behind a continue token is gone the list starts over, once, in one page.
        """
        params = _given(labelSelector=labels, fieldSelector=fields)
        path = kind.path(namespace)
        try:
            return await self._list_pages(kind, path, params, limit)
        except errors.Gone:
            return await self._list_pages(kind, path, params, 0)

    async def resources(self, api_version: str) -> Sequence[Kind[dict[str, Any]]]:
        """The kinds that the server has of a group and version (`v1`, `example.com/v1`). Raises NotFound for none."""
        group, _, version = api_version.rpartition("/")
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        listed = decode.decode_object(dict, await self._send("GET", root))
        return [
            Kind(group, version, str(r["kind"]), str(r["name"]), bool(r.get("namespaced")), dict)
            for r in listed.get("resources") or ()
            if isinstance(r, dict) and r.get("kind") and "/" not in str(r.get("name", "/"))
        ]

    async def current_version(self, kind: Kind[Any], namespace: str = "") -> str:
        """The resourceVersion a list taken now would have; asks for one object at most."""
        body = await self._send("GET", kind.path(namespace), params={"limit": "1"})
        return decode.decode_page(body).resource_version

    async def watch(
        self,
        kind: Kind[T],
        resource_version: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        timeout_seconds: int = WATCH_SECONDS,
        silence: float = WATCH_SILENCE,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Changes after `resource_version`; returns when the server ends the watch.

        Raises Gone when the position is lost, Unreachable when the connection breaks or nothing comes for `silence`
        seconds, MalformedObject when the stream itself is garbled. One object that does not decode is an event with
        `object` None.
        """
        params = _given(labelSelector=labels, fieldSelector=fields, resourceVersion=resource_version)
        params |= {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout_seconds)}
        async with aclosing(self._stream(kind.path(namespace), params, silence)) as lines:
            async for line in lines:
                event = _event(kind, line)
                if event.error:
                    self.metrics.malformed.labels(kind.kind).inc()
                yield event

    async def create(self, kind: Kind[T], obj: T | Mapping[str, Any], namespace: str = "") -> T:
        """Create; `apiVersion` and `kind` are filled in where the object has none."""
        body = msgspec.to_builtins(obj)
        body.setdefault("apiVersion", kind.api_version)
        body.setdefault("kind", kind.kind)
        answer = await self._send("POST", kind.path(namespace), content=msgspec.json.encode(body))
        return decode.decode_object(kind.struct, answer)

    async def patch_json(
        self, kind: Kind[T], name: str, body: Sequence[Operation], namespace: str = "", subresource: str = ""
    ) -> T:
        """JSON patch. Raises Conflict when a `test` on UID or resourceVersion did not hold.

        The server answers 422 to a failed test as to any other patch it cannot apply, without a word on which; so the
        object is read and compared.
        """
        try:
            return await self._patch(JSON_PATCH, kind, name, body, namespace, subresource)
        except errors.Invalid as error:
            if not error.causes and await self._test_failed(kind, name, body, namespace):
                raise errors.Conflict(409, "Conflict", f"{kind.kind} {name}: changed since it was read") from error
            raise

    async def patch_merge(
        self, kind: Kind[T], name: str, body: Mapping[str, Any], namespace: str = "", subresource: str = ""
    ) -> T:
        """JSON merge patch. With `metadata.resourceVersion` (or `uid`) in the body it is conditional."""
        return await self._patch(MERGE_PATCH, kind, name, body, namespace, subresource)

    async def patch_strategic(
        self, kind: Kind[T], name: str, body: Mapping[str, Any], namespace: str = "", subresource: str = ""
    ) -> T:
        """Strategic merge patch: lists merge by their key. Built-in kinds only."""
        return await self._patch(STRATEGIC_PATCH, kind, name, body, namespace, subresource)

    async def delete(
        self,
        kind: Kind[Any],
        name: str,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace: int | None = None,
        propagation: str = "",
    ) -> None:
        """Delete. `grace` in seconds; `propagation` Background, Foreground or Orphan.

        Raises Conflict when the object has another UID or version than given.
        """
        options = _delete_options(uid, resource_version, grace, propagation)
        await self._send("DELETE", kind.path(namespace, name), content=msgspec.json.encode(options))

    async def evict(self, name: str, namespace: str, uid: str, grace: int | None = None) -> None:
        """Evict a pod by the eviction API. TooManyRequests with `budget`: a disruption budget says not now.

        ServerError: more than one budget covers the pod, which the server never evicts. `grace` in seconds.
        """
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _delete_options(uid, "", grace, ""),
        }
        path = f"{POD.path(namespace, name)}/eviction"
        await self._send("POST", path, content=msgspec.json.encode(body), tries=1)

    async def pod_log(self, name: str, namespace: str, lines: int, timestamps: bool = False) -> str:
        """The last lines of what a pod's container has written, through its kubelet.

        `timestamps`: each line begins with the moment in which it was written (RFC 3339) and a space.
        """
        params = {"tailLines": str(lines)} | ({"timestamps": "true"} if timestamps else {})
        body = await self._send("GET", f"{POD.path(namespace, name)}/log", params=params)
        return body.decode("utf-8", "replace")

    async def _list_pages(self, kind: Kind[T], path: str, params: dict[str, str], limit: int) -> Listing[T]:
        listing: Listing[T] = Listing()
        token = ""
        while True:
            query = params | _given(limit=str(limit) if limit else "", **{"continue": token})
            page = decode.decode_page(await self._send("GET", path, params=query))
            items, malformed = decode.decode_items(kind.struct, page.items)
            listing.items += items
            listing.malformed += malformed
            if malformed:
                self.metrics.malformed.labels(kind.kind).inc(len(malformed))
            listing.resource_version = page.resource_version
            token = page.continue_token
            if not token:
                return listing

    async def _patch(
        self, content_type: str, kind: Kind[T], name: str, body: Any, namespace: str, subresource: str
    ) -> T:
        path = kind.path(namespace, name) + (f"/{subresource}" if subresource else "")
        answer = await self._send("PATCH", path, content=msgspec.json.encode(body), content_type=content_type)
        return decode.decode_object(kind.struct, answer)

    async def _test_failed(self, kind: Kind[Any], name: str, body: Sequence[Operation], namespace: str) -> bool:
        tested = {op["path"]: op["value"] for op in body if op["op"] == "test"}
        version, uid = tested.get("/metadata/resourceVersion"), tested.get("/metadata/uid")
        if version is None and uid is None:
            return False
        now = decode.identity(await self._send("GET", kind.path(namespace, name)))
        return (version is not None and version != now.resource_version) or (uid is not None and uid != now.uid)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, str] | None = None,
        content: bytes | None = None,
        content_type: str = "application/json",
        tries: int = THROTTLE_TRIES,
    ) -> bytes:
        content_type = content_type if content is not None else ""
        while True:
            tries -= 1
            started = self._clock.monotonic()
            try:
                async with asyncio.timeout(REQUEST_SECONDS):
                    status, body, headers = await self._exchange.exchange(method, path, params, content, content_type)
            except _LOST as error:
                self.requests.lost(method)
                _lost(f"{method} {path}", error)
            self.requests.answered(method, status, self._clock.monotonic() - started)
            if status < 300:
                return body
            failure = errors.from_response(status, body, headers)
            if not isinstance(failure, errors.TooManyRequests) or tries <= 0:
                raise failure
            self.metrics.throttled.inc()
            await self._clock.sleep(min(failure.retry_after or THROTTLE_WAIT, THROTTLE_WAIT_MAX))

    async def _stream(self, path: str, params: dict[str, str], silence: float) -> AsyncGenerator[bytes, None]:
        """Lines of a watch. A rest without an end is dropped: the server ends every event with a newline."""
        request = self._outgoing.request("GET", path, params=params, silence=silence)
        try:
            async with asyncio.timeout(silence):
                response = await self.http.send(request, stream=True)
        except _LOST as error:
            _lost(f"watch {path}", error)
        try:
            if response.status_code >= 300:
                raise errors.from_response(response.status_code, await _told(response, silence), response.headers)
            splitter = decode.LineSplitter()
            chunks = response.aiter_bytes()
            while (chunk := await _next(chunks, silence, path)) is not None:
                for line in splitter.feed(chunk):
                    yield line
        finally:
            await response.aclose()


async def _told(response: httpx2.Response, silence: float) -> bytes:
    """What a refusal says; nothing where the connection breaks before that: its status is known all the same."""
    try:
        async with asyncio.timeout(silence):
            return await response.aread()
    except (TimeoutError, *_LOST):
        return b""


async def _next(chunks: AsyncIterator[bytes], silence: float, path: str) -> bytes | None:
    """The next chunk, None at the end. The deadline runs on the event loop, which is virtual in a simulation."""
    try:
        async with asyncio.timeout(silence):
            return await anext(chunks, None)
    except TimeoutError:
        raise errors.Unreachable(f"watch {path}: nothing received for {silence:g} s") from None
    except _LOST as error:
        _lost(f"watch {path}", error)


def _lost(what: str, error: Exception) -> NoReturn:
    if isinstance(error, errors.ConfigError):
        raise errors.Unauthorized(401, "CredentialsUnavailable", str(error)) from None
    raise errors.Unreachable(f"{what}: {str(error) or type(error).__name__}") from error


def _event(kind: Kind[T], line: bytes) -> WatchEvent[T]:
    type_, raw = decode.decode_line(line)
    if type_ == "ERROR":
        raise errors.from_response(0, bytes(raw))
    if type_ == "BOOKMARK":
        return WatchEvent(type_, None, raw)
    try:
        obj = decode.decoder(kind.struct).decode(raw)
        error = nameless(obj)
    except (msgspec.DecodeError, UnicodeDecodeError) as failure:
        error = str(failure)
    return WatchEvent(type_, None, raw, error) if error else WatchEvent(type_, obj, raw)


def _given(**params: str) -> dict[str, str]:
    return {name: value for name, value in params.items() if value}


def _delete_options(uid: str, resource_version: str, grace: int | None, propagation: str) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = _given(uid=uid, resourceVersion=resource_version)
    if preconditions:
        options["preconditions"] = preconditions
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if propagation:
        options["propagationPolicy"] = propagation
    return options
