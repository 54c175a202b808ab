"""A server under test: raw requests, and short ways to say what they bring."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx2

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.rbac import Rbac
from sickbay.apiserver.store import Store
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import Caller
from sickbay.clock import Randomness

Obj = dict[str, Any]
PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
NODES = "/api/v1/nodes"
WATCH_SECONDS = 5
"""What a watch under test waits for its events at most."""


@dataclass(frozen=True)
class Answer:
    code: int
    body: Obj
    headers: httpx2.Headers

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def causes(self) -> set[tuple[str, str, str]]:
        """Reason, field and message of each; the real server names some twice."""
        causes = (self.body.get("details") or {}).get("causes") or ()
        return {(cause.get("reason", ""), cause.get("field", ""), cause.get("message", "")) for cause in causes}

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


def clients_of(store: Store) -> Callable[[str], httpx2.AsyncClient]:
    """Clients on our server: `admin` with all rights, `dev` of the group `people` with those that roles give."""
    tokens = {"admin": Caller("admin", ("system:masters",)), "dev": Caller("dev", ("people",))}
    app = ApiServer(store, tokens, authorizer=Rbac(store))

    def connect(user: str) -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {user}"}
        return httpx2.AsyncClient(transport=InProcessTransport(app), base_url="http://ours", headers=headers)

    return connect


class Server:
    """One of the two."""

    def __init__(self, connect: Callable[[str], httpx2.AsyncClient], forget: Callable[[], None], *, real: bool) -> None:
        self._connect = connect
        self.client = connect("admin")
        self.real = real
        self.forget = forget
        """Make the server forget all history: watches from before must start over."""
        self._randomness = Randomness() if real else Randomness(2)

    @asynccontextmanager
    async def seen_by(self, user: str) -> AsyncGenerator[Server, None]:
        """The same server as another user meets it."""
        other = Server(self._connect, self.forget, real=self.real)
        await other.client.aclose()
        other.client = self._connect(user)
        async with other.client:
            yield other

    def unique(self, prefix: str) -> str:
        """A name nobody else on this server has."""
        return f"{prefix}-{self._randomness.hex(8)}"

    async def call(self, method: str, path: str, body: Any = None, content_type: str = "", **headers: str) -> Answer:
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        if body is not None:
            given["content-type"] = content_type or "application/json"
        content = body if isinstance(body, str | bytes) or body is None else json.dumps(body)
        answer = await self.client.request(method, path, content=content, headers=given)
        is_json = answer.text.startswith("{")
        return Answer(answer.status_code, answer.json() if is_json else {"text": answer.text}, answer.headers)

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.call("GET", path, **headers)

    async def post(self, path: str, body: Any) -> Answer:
        return await self.call("POST", path, body)

    async def put(self, path: str, body: Any) -> Answer:
        return await self.call("PUT", path, body)

    async def patch(self, kind: str, path: str, body: Any) -> Answer:
        return await self.call("PATCH", path, body, PATCH_TYPES[kind])

    async def delete(self, path: str, **options: Any) -> Answer:
        return await self.call("DELETE", path, options or None)

    async def made(self, path: str, body: Any) -> Obj:
        """Create; the object as the server has it."""
        answer = await self.post(path, body)
        assert answer.code == 201, answer.body
        return answer.body

    async def namespace(self) -> str:
        """A fresh namespace in which pods can be made."""
        name = self.unique("ns")
        await self.made("/api/v1/namespaces", {"metadata": {"name": name}})
        await self.made(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        return name

    async def node(self, *, spec: Obj | None = None, status: Obj | None = None, **metadata: Any) -> str:
        """The path of a fresh node."""
        name = self.unique("node")
        parts = {"spec": spec, "status": status}
        body = {"metadata": {"name": name} | metadata} | {key: value for key, value in parts.items() if value}
        await self.made(NODES, body)
        return f"{NODES}/{name}"

    async def watched(self, path: str, count: int, **headers: str) -> list[Obj]:
        """The first `count` events of a watch, or fewer when no more come in time."""
        events: list[Obj] = []

        async def collect() -> None:
            async with aclosing(self.lines(path, **headers)) as lines:
                async for event in lines:
                    events.append(event)
                    if len(events) == count:
                        return

        with suppress(TimeoutError):
            await asyncio.wait_for(collect(), WATCH_SECONDS)
        return events

    async def lines(self, path: str, **headers: str) -> AsyncGenerator[Obj, None]:
        async with self.client.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200, await answer.aread()
            async for line in answer.aiter_lines():
                yield json.loads(line)


def seen(events: list[Obj]) -> list[tuple[str, str]]:
    """Type and object name of each event."""
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]
