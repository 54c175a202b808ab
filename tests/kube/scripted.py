"""A transport that answers by script and remembers what it was asked, and streams made of chunks, waits and breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx2

from sickbay.clock import Clock
from sickbay.kube.client import Client

Answer = httpx2.Response | Exception | Callable[[httpx2.Request], httpx2.Response]
Piece = bytes | float | Exception


class Script:
    """Answers in turn. Running out of answers is a failure of the test."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def add(self, *answers: Answer) -> None:
        self._answers += answers

    @property
    def left(self) -> int:
        return len(self._answers)

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        assert self._answers, f"unexpected request: {request.method} {request.url}"
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    def body(self, index: int = -1) -> Any:
        """What the request carried."""
        return json.loads(self.requests[index].content)

    def query(self, index: int = -1) -> dict[str, str]:
        return dict(self.requests[index].url.params)


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in pieces; a number waits so many seconds, an exception breaks the connection."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, bytes):
                yield piece
            else:
                await asyncio.sleep(piece)  # noqa: TID251 - the network's time is the loop's

    async def aclose(self) -> None:
        self.closed = True


def client_for(script: Script, clock: Clock | None = None) -> Client:
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(script), base_url="http://api")
    return Client(http, "sickbay-test", clock)


def node(name: str, version: int = 1, **more: Any) -> dict[str, Any]:
    """A Node as JSON. `more` goes into metadata."""
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)} | more
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": {}}


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> httpx2.Response:
    return httpx2.Response(status, json=content, headers=headers)


def page(items: Sequence[Any], version: str = "100", token: str = "") -> httpx2.Response:
    return answer({"kind": "List", "metadata": {"resourceVersion": version, "continue": token}, "items": items})


def refusal(status: int, reason: str = "", message: str = "no", **more: Any) -> httpx2.Response:
    headers = more.pop("headers", None)
    return answer({"kind": "Status", "code": status, "reason": reason, "message": message} | more, status, headers)


def line(type_: str, obj: Any) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return line("BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": str(version)}})


def stream(*pieces: Piece) -> httpx2.Response:
    return httpx2.Response(200, stream=Pieces(pieces))
