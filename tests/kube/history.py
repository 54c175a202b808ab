"""A tiny API server of one cluster-scoped kind, made to be unfair: it serves LIST and WATCH of Nodes from a history and
breaks, doubles, reorders, loses, delays and compacts on command.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from sickbay.api.core import Node
from sickbay.clock import Clock
from sickbay.kube import decode
from sickbay.kube.client import Client
from tests.kube.scripted import answer, bookmark, line, node, page, refusal


class History:
    """Objects, every change that led to them, and the mischief to come."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.revision = 100
        self.objects: dict[str, dict[str, Any]] = {}
        self.log: list[tuple[int, str, dict[str, Any]]] = []
        self.compacted = 0
        self.era = 0
        self.list_delay = 0.0
        self.refuse: list[httpx2.Response | Exception] = []
        self.lists = 0
        self.watches: list[str] = []
        self.open = 0
        self._made = 0
        self._lost: set[int] = set()
        self._doubled: set[int] = set()
        self._swapped: set[int] = set()
        self._news = asyncio.Event()
        self._breaks = 0
        self._ends = 0

    # -- the world changes

    def create(self, name: str) -> dict[str, Any]:
        self._made += 1
        return self._record("ADDED", node(name, uid=f"uid-{name}-{self._made}"))

    def update(self, name: str, **meta: Any) -> dict[str, Any]:
        old = self.objects[name]
        return self._record("MODIFIED", old | {"metadata": old["metadata"] | meta})

    def replace(self, name: str, obj: dict[str, Any]) -> dict[str, Any]:
        return self._record("MODIFIED", obj)

    def delete(self, name: str) -> dict[str, Any]:
        return self._record("DELETED", self.objects[name])

    def struct(self, obj: dict[str, Any]) -> Node:
        """As the client gives back the answer to a write."""
        return decode.decode_object(Node, httpx2.Response(200, json=obj).content)

    def _record(self, type_: str, obj: dict[str, Any]) -> dict[str, Any]:
        self.revision += 1
        obj = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.revision)}}
        name = obj["metadata"]["name"]
        if type_ == "DELETED":
            del self.objects[name]
        else:
            self.objects[name] = obj
        self.log.append((self.revision, type_, obj))
        self._wake()
        return obj

    # -- mischief

    def lose_last(self) -> None:
        """No watch will tell of the last change."""
        self._lost.add(self.revision)

    def double_last(self) -> None:
        """Watches tell of the last change twice."""
        self._doubled.add(self.revision)

    def swap_last(self) -> None:
        """Watches tell of the last change before the one before it."""
        self._swapped.add(self.revision)

    def compact(self) -> None:
        """Positions before now are lost; a watch that is open goes on."""
        self.compacted = self.revision

    def break_watches(self) -> None:
        self._breaks += 1
        self._wake()

    def end_watches(self) -> None:
        self._ends += 1
        self._wake()

    def bookmark(self) -> None:
        self.log.append((self.revision, "BOOKMARK", {}))
        self._wake()

    def rewind(self) -> None:
        """The server comes back from an old backup: objects stay, versions start again from low numbers."""
        self.era += 1
        self.revision = 10
        self.log.clear()
        self.compacted = 0
        for name in list(self.objects):
            self._record("ADDED", self.objects[name])
        self.log.clear()
        self.compacted = self.revision
        self.break_watches()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # -- serving

    def client(self) -> Client:
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self._serve), base_url="http://api")
        return Client(http, "sickbay-test", self.clock)

    async def _serve(self, request: httpx2.Request) -> httpx2.Response:
        if self.refuse:
            refused = self.refuse.pop(0)
            if isinstance(refused, Exception):
                raise refused
            return refused
        query = request.url.params
        name = request.url.path.removeprefix("/api/v1/nodes").strip("/")
        if name:
            found = self.objects.get(name)
            return answer(found) if found is not None else refusal(404, "NotFound")
        if "watch" in query:
            self.watches.append(query["resourceVersion"])
            return httpx2.Response(200, stream=_Watch(self, int(query["resourceVersion"])))
        if query.get("limit") == "1":
            return page(list(self.objects.values())[:1], str(self.revision))
        self.lists += 1
        items, revision = list(self.objects.values()), self.revision
        await self.clock.sleep(self.list_delay)
        return page(items, str(revision))

    async def lines(self, position: int) -> AsyncIterator[bytes]:
        if position < self.compacted:
            yield line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
            return
        breaks, ends = self._breaks, self._ends
        index = next((i for i, (rev, _, _) in enumerate(self.log) if rev > position), len(self.log))
        while True:
            news = self._news
            while index < len(self.log):
                for text in self._told(index):
                    yield text
                index += 1
            if breaks != self._breaks:
                raise httpx2.ReadError("reset")
            if ends != self._ends:
                return
            await news.wait()

    def _told(self, index: int) -> list[bytes]:
        """The lines for one entry of the log, after mischief."""
        revision, type_, obj = self.log[index]
        if type_ == "BOOKMARK":
            return [bookmark(revision)]
        if revision in self._lost:
            return []
        text = [line(type_, obj)]
        if revision in self._doubled:
            text *= 2
        if revision in self._swapped and index > 0 and self.log[index - 1][1] != "BOOKMARK":
            _, before_type, before = self.log[index - 1]
            text.append(line(before_type, before))
        return text


class _Watch(httpx2.AsyncByteStream):
    def __init__(self, history: History, position: int) -> None:
        self._history = history
        self._position = position

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._history.open += 1
        try:
            async for text in self._history.lines(self._position):
                yield text
        finally:
            self._history.open -= 1
