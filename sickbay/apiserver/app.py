"""The API server as one ASGI app: who calls, what for, may they, and the answer.

    request -> identity (auth) -> target (requests) -> permission (rbac) -> reading or writing -> answer or watch

Everything between reading the body and sending the answer is synchronous, so requests never see each other half done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from sickbay.apiserver import discovery, podlogs, reading, reviews, scale, writing
from sickbay.apiserver.attributes import Attributes, of_path, of_resource
from sickbay.apiserver.auth import Authenticator
from sickbay.apiserver.calls import Answer, Call, ResourceCall, WatchStream, decode_body, encode, json_answer
from sickbay.apiserver.errors import StatusError, bad_request, method_not_allowed, no_such_path
from sickbay.apiserver.openapi import documents
from sickbay.apiserver.rbac import AllowAll, Authorizer, refused
from sickbay.apiserver.requests import Query, Target, parse_target
from sickbay.apiserver.reviews import Reviewer
from sickbay.apiserver.store import Store
from sickbay.apiserver.tables import check_accept
from sickbay.apiserver.watching import BOOKMARK_SECONDS, WatchFeed, at_once
from sickbay.apiserver.writes import Caller

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

KUBERNETES_VERSION = "v1.36.3"
"""The version whose behaviour is followed and which /version names, so that kubectl sees no skew."""
MAX_BODY = 3 * 1024 * 1024
"""Bytes; kube-apiserver's limit on a request's body."""


HEALTH = ("/healthz", "/livez", "/readyz")
"""Answered to everybody: who watches over a process has no token."""
PAGE_NOT_FOUND = Answer(404, b"404 page not found\n", content_type=b"text/plain; charset=utf-8")
"""Outside the groups that are served the real server answers without a Status; a client must bear it."""


class ApiServer:
    """Serves a store. `tokens` maps bearer tokens to identities.

    `anonymous` is who a caller without a token is; None refuses them. Without an `authorizer` (such as `rbac.Rbac`)
    everybody who is let in may do everything.
    """

    def __init__(
        self,
        store: Store,
        tokens: Mapping[str, Caller] | None = None,
        *,
        anonymous: Caller | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.store = store
        self.authenticator = Authenticator(tokens or {}, anonymous)
        self.authorizer = authorizer or AllowAll()
        self.logs: podlogs.Logs = podlogs.nobody
        """Who plays the kubelets, where somebody does."""
        self.bookmarks = BOOKMARK_SECONDS
        """Seconds between two bookmarks of a watch."""
        self.told: Callable[[str, Callable[[], None]], Callable[[], None]] = at_once
        """Of a resource and the bell of one of its watches: what is called when there is something to be sent."""
        self._reviewer = Reviewer(self.authorizer, self.authenticator)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"the API server speaks HTTP, not {scope['type']}")
        try:
            body = await _read_body(receive)
        except StatusError as error:
            await send_answer(refusal(error), send)
            return
        answer = self.answer(scope, body)
        if isinstance(answer, WatchStream):
            await self._stream(answer, receive, send)
        else:
            await send_answer(answer, send)

    def answer(self, scope: MutableMapping[str, Any], body: bytes) -> Answer | WatchStream:
        """What one request gets, in one go. `scope` is ASGI's."""
        try:
            return self._answer(scope, body)
        except StatusError as error:
            return refusal(error)

    def _answer(self, scope: MutableMapping[str, Any], body: bytes) -> Answer | WatchStream:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if b"impersonate-group" in headers:
            groups = (value for key, value in scope["headers"] if key == b"impersonate-group")
            headers[b"impersonate-group"] = b"\n".join(groups)
        if scope["path"] in HEALTH:
            return Answer(200, b"ok", content_type=b"text/plain; charset=utf-8")
        caller = self.authenticator.caller(headers)
        query = Query(scope["query_string"])
        if manager := query.text("fieldManager"):
            caller = replace(caller, field_manager=manager)
        call = Call(scope["method"], scope["path"], query, headers, body, caller)
        target = parse_target(call.path)
        if target is None:
            self._permit(caller, of_path(call))
            return self._document(call)
        self._permit(caller, of_resource(call, target))
        if (target.group, target.plural) in reviews.KINDS:
            return self._review(call, target)
        view = self.store.resources.find(target.group, target.version, target.plural)
        if view is None and target.group not in discovery.group_versions(self.store.resources):
            return PAGE_NOT_FOUND
        if view is None or target.deeper or (target.namespace and not view.type.namespaced):
            raise no_such_path()
        if view.type.namespaced and not target.namespace and (target.name or call.method != "GET"):
            # Across namespaces objects can be listed and watched, and no more.
            raise no_such_path() if target.name else method_not_allowed()
        check_accept(call.accept)
        request = ResourceCall(call, target, view)
        if (request.key, target.subresource) == ("pods", "log"):
            return podlogs.answer(self.store, request, self.logs)
        return dispatch(self.store, request)

    def _permit(self, caller: Caller, wanted: Attributes) -> None:
        if not self.authorizer.decide(caller, wanted).allowed:
            raise refused(caller, wanted)

    def _review(self, call: Call, target: Target) -> Answer:
        if call.method != "POST" or target.name:
            raise method_not_allowed()
        return json_answer(201, self._reviewer.answer(target.group, target.plural, call.caller, decode_body(call)))

    def _document(self, call: Call) -> Answer:
        """Paths that name no resource."""
        if call.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        if call.path == "/version":
            return json_answer(200, version_document())
        registry = self.store.resources
        found = discovery.answer(registry, call) or documents.answer(registry, call)
        return PAGE_NOT_FOUND if found is None else found

    async def _stream(self, answer: WatchStream, receive: Receive, send: Send) -> None:
        feed = WatchFeed(self.store, answer.watch, self.bookmarks, self.told)
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        listener = asyncio.ensure_future(_end_with_client(receive, feed))
        try:
            async with aclosing(feed.pieces()) as pieces:
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            listener.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def dispatch(store: Store, request: ResourceCall) -> Answer | WatchStream:
    target = request.target
    if target.subresource == "scale" and "scale" in request.view.type.subresources:
        return scale.answer(store, request)
    match request.call.method, bool(target.name):
        case "GET", True:
            return reading.get(store, request)
        case "GET", False:
            return reading.list_or_watch(store, request)
        case "POST", _:
            return writing.create(store, request)
        case "PUT", True:
            return writing.update(store, request)
        case "PATCH", True:
            return writing.patch(store, request)
        case "DELETE", True:
            return writing.delete(store, request)
        case "DELETE", False:
            return writing.delete_collection(store, request)
        case _:
            raise method_not_allowed()


def refusal(error: StatusError) -> Answer:
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if error.retry_after is not None:
        headers = ((b"retry-after", str(error.retry_after).encode()),)
    return Answer(error.code, encode(error.body()), headers)


def version_document() -> dict[str, str]:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{KUBERNETES_VERSION}+sickbay",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


async def _end_with_client(receive: Receive, feed: WatchFeed) -> None:
    """A watch that has nothing to send would not notice that nobody reads it."""
    while (await receive())["type"] != "http.disconnect":
        pass
    feed.stop()


async def _read_body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise bad_request("the client went away")
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > MAX_BODY:
            raise StatusError(413, "RequestEntityTooLarge", f"Request entity is too large: limit is {MAX_BODY}")
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)


def headers_of(answer: Answer) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", answer.content_type),
        (b"content-length", str(len(answer.body)).encode()),
        (b"cache-control", b"no-cache, private"),
        *answer.headers,
    ]


async def send_answer(answer: Answer, send: Send) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": headers_of(answer)})
    await send({"type": "http.response.body", "body": answer.body, "more_body": False})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
