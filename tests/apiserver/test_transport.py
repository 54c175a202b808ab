"""The in-process transport: pieces as they come, back-pressure, and an end to the app's task."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import httpx2
import pytest

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.store import Store
from sickbay.apiserver.transport import DirectTransport, InProcessTransport, Message, Receive, Send
from sickbay.apiserver.writes import SYSTEM
from sickbay.clock import Randomness, SystemClock


def client_of(app: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=InProcessTransport(app), base_url="http://app")


async def answer(send: Send, body: bytes = b"", status: int = 200, *, more: bool = False) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"x-a", b"1")]})
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def test_a_request_arrives_whole_and_its_answer_comes_back() -> None:
    seen: dict[str, Any] = {}

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        seen.update(scope, body=(await receive())["body"])
        await answer(send, b"hello", 201)

    async with client_of(app) as client:
        found = await client.post("/a%2Fb/c?x=1&y=%20", content=b"body", headers={"X-Thing": "v"})
    assert (found.status_code, found.content, found.headers["x-a"]) == (201, b"hello", "1")
    assert (seen["method"], seen["path"], seen["query_string"], seen["body"]) == (
        "POST",
        "/a/b/c",
        b"x=1&y=%20",
        b"body",
    )
    assert (b"x-thing", b"v") in seen["headers"]


async def test_pieces_are_handed_over_while_the_app_still_runs() -> None:
    go_on = asyncio.Event()

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        await answer(send, b"one\n", more=True)
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"two\n", "more_body": False})

    async with client_of(app) as client, client.stream("GET", "/") as stream:
        lines = stream.aiter_lines()
        assert await anext(lines) == "one"
        go_on.set()
        assert [line async for line in lines] == ["two"]


async def test_the_app_waits_until_its_piece_is_taken() -> None:
    sent: list[int] = []

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        await answer(send, b"", more=True)
        for number in range(5):
            await send({"type": "http.response.body", "body": b"%d\n" % number, "more_body": True})
            sent.append(number)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async with client_of(app) as client, client.stream("GET", "/") as stream:
        lines = stream.aiter_lines()
        await anext(lines)
        for _ in range(20):
            await asyncio.sleep(0)  # noqa: TID251 - gives the app every chance to run ahead
        assert sent == [0]
        assert [line async for line in lines] == ["1", "2", "3", "4"]


async def test_closing_the_stream_ends_the_app() -> None:
    ended: list[str] = []

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        try:
            await answer(send, b"one\n", more=True)
            await asyncio.Event().wait()
        finally:
            ended.append("app")

    async with client_of(app) as client:
        async with client.stream("GET", "/") as stream, aclosing(stream.aiter_bytes()) as pieces:
            assert await anext(pieces) == b"one\n"
        assert ended == ["app"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_cancelling_the_reader_ends_the_app_before_it_has_answered() -> None:
    ended: list[str] = []

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("app")

    async with client_of(app) as client:
        reader = asyncio.ensure_future(client.get("/"))
        for _ in range(5):
            await asyncio.sleep(0)  # noqa: TID251 - lets the request reach the app
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
    assert ended == ["app"]


async def test_an_app_that_breaks_before_it_answers_raises_its_error() -> None:
    async def app(scope: Message, receive: Receive, send: Send) -> None:
        raise ValueError("broken")

    async with client_of(app) as client:
        with pytest.raises(ValueError, match="broken"):
            await client.get("/")


async def test_an_app_that_breaks_in_the_middle_breaks_the_stream() -> None:
    async def app(scope: Message, receive: Receive, send: Send) -> None:
        await answer(send, b"one\n", more=True)
        raise ValueError("broken")

    async with client_of(app) as client, client.stream("GET", "/") as stream:
        with pytest.raises(httpx2.ReadError, match="broken"):
            [line async for line in stream.aiter_lines()]


async def test_an_app_that_ends_without_an_answer_is_a_protocol_error() -> None:
    async def app(scope: Message, receive: Receive, send: Send) -> None:
        return

    async with client_of(app) as client:
        with pytest.raises(httpx2.RemoteProtocolError, match="without an answer"):
            await client.get("/")


@pytest.fixture
def server() -> ApiServer:
    return ApiServer(Store(SystemClock(), Randomness(1)), anonymous=SYSTEM)


def both(server: ApiServer) -> tuple[httpx2.AsyncClient, httpx2.AsyncClient]:
    direct = httpx2.AsyncClient(transport=DirectTransport(server), base_url="http://app")
    return direct, client_of(server)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/v1/namespaces", b""),
        ("GET", "/api/v1/namespaces?limit=1", b""),
        ("GET", "/api/v1/nodes/absent", b""),
        ("GET", "/nowhere", b""),
        ("GET", "/healthz", b""),
        ("POST", "/api/v1/nodes", b"{"),
        ("PUT", "/api/v1/nodes", b"{}"),
        ("PATCH", "/api/v1/namespaces/default", b'{"metadata":{"labels":{"a":5}}}'),
    ],
)
async def test_the_direct_way_gives_the_same_answers(server: ApiServer, method: str, path: str, body: bytes) -> None:
    headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    direct, letter = both(server)
    first = await direct.request(method, path, content=body, headers=headers)
    second = await letter.request(method, path, content=body, headers=headers)
    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert first.headers == second.headers


async def test_the_direct_way_streams_watches(server: ApiServer) -> None:
    direct, _ = both(server)
    async with direct, direct.stream("GET", "/api/v1/nodes?watch=1") as stream:
        await direct.post("/api/v1/nodes", json={"metadata": {"name": "a"}})
        line = json.loads(await anext(stream.aiter_lines()))
    assert (line["type"], line["object"]["metadata"]["name"]) == ("ADDED", "a")


async def test_others_get_between_two_requests_of_one_task(server: ApiServer) -> None:
    direct, _ = both(server)
    order: list[str] = []

    async def ask(name: str) -> None:
        for _ in range(20):
            await direct.get("/version")
            order.append(name)

    await asyncio.gather(ask("a"), ask("b"))
    assert order.index("b") < 19
    assert order.index("a") < 19
