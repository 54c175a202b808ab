"""Reach the API server without a socket: an httpx2 transport that runs the ASGI app in the caller's own event loop.

httpx2's own ASGI transport collects the whole body before it returns, so a watch through it never yields. This one
hands over each piece as the app sends it, one at a time: the app's `send` returns when the reader has taken the piece,
which is the back-pressure a socket would give. No threads, no sockets, no timers: on a deterministic loop the order of
everything is the loop's. Closing the response ends the app's task.

    InProcessTransport   any ASGI app, to the letter of ASGI
    DirectTransport      our own server, without what ASGI costs; the simulator's way
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import httpx2

from sickbay.apiserver.app import ApiServer, headers_of
from sickbay.apiserver.calls import Answer, WatchStream

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class InProcessTransport(httpx2.AsyncBaseTransport):
    """Serves every request by `app`, whatever host it names."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        exchange = _Exchange(body)
        task = asyncio.ensure_future(self._app(_scope(request), exchange.receive, exchange.send))
        exchange.run(task)
        try:
            status, headers = await exchange.start()
        except BaseException:
            await exchange.aclose()
            raise
        return httpx2.Response(status, headers=headers, stream=exchange, request=request)


class DirectTransport(httpx2.AsyncBaseTransport):
    """Serves every request by `server`, in one step where the answer has an end.

    An ordinary request needs no task and no queue between the two sides, which are most of its price. It still takes
    two turns of the loop, one on the way there and one on the way back, so that others get between what a controller
    reads and what it writes, as over a socket. Watches stream.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._streams = InProcessTransport(server)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if b"watch=" in request.url.query:
            return await self._streams.handle_async_request(request)
        body = await request.aread()
        await _turn()
        answer = self._server.answer(_scope(request), body)
        await _turn()
        if isinstance(answer, WatchStream):
            return await self._streams.handle_async_request(request)
        return httpx2.Response(answer.status, headers=headers_of(answer), content=answer.body, request=request)

    async def exchange(
        self, method: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> Answer:
        """The same for callers in this process that have no use for HTTP's objects either, watches apart."""
        await _turn()
        answer = self._server.answer({"method": method, "path": path, "query_string": query, "headers": headers}, body)
        await _turn()
        if isinstance(answer, WatchStream):
            raise httpx2.UnsupportedProtocol(f"{method} {path} asks for a watch, which has no end")
        return answer


async def _turn() -> None:
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, no time


def _scope(request: httpx2.Request) -> MutableMapping[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(key.lower(), value) for key, value in request.headers.raw],
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.split(b"?")[0],
        "query_string": request.url.query,
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }


class _Exchange(httpx2.AsyncByteStream):
    """One request and its answer, between the app's task and the reader."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body
        self._head: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = asyncio.get_running_loop().create_future()
        self._piece: bytes | None = None
        self._filled = asyncio.Event()
        self._taken = asyncio.Event()
        self._closed = asyncio.Event()
        self._done = False
        self._task: asyncio.Future[None] | None = None

    def run(self, task: asyncio.Future[None]) -> None:
        self._task = task
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Future[None]) -> None:
        self._done = True
        self._filled.set()
        error = None if task.cancelled() else task.exception()
        if self._head.done():
            return
        if task.cancelled():
            self._head.cancel()
            return
        self._head.set_exception(error or httpx2.RemoteProtocolError("the app ended without an answer"))

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._closed.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if not self._head.done():
                self._head.set_result((message["status"], list(message.get("headers", ()))))
            return
        piece = message.get("body", b"")
        if not message.get("more_body", False):
            self._done = True
        self._piece = piece
        self._taken.clear()
        self._filled.set()
        if not self._done:
            await self._taken.wait()

    async def start(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        return await self._head

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await self._filled.wait()
            piece, self._piece = self._piece, None
            self._filled.clear()
            self._taken.set()
            if piece:
                yield piece
            if self._done and self._piece is None:
                self._raise_if_broken()
                return

    def _raise_if_broken(self) -> None:
        task = self._task
        if task is not None and task.done() and not task.cancelled() and (error := task.exception()):
            raise httpx2.ReadError(f"the connection broke: {error}") from error

    async def aclose(self) -> None:
        self._closed.set()
        task = self._task
        if task is None or task.done():
            return
        task.cancel()
        await asyncio.wait([task])
