"""The app around the store: identities, media types, watches over time, documents."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

import httpx2
import pytest

from sickbay.apiserver.app import MAX_BODY, ApiServer
from sickbay.apiserver.store import Store
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import Caller, Write
from tests.apiserver.conftest import ADMIN

NODES = "/api/v1/nodes"


def connect(app: ApiServer, **headers: str) -> httpx2.AsyncClient:
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    return httpx2.AsyncClient(transport=InProcessTransport(app), base_url="http://ours", headers=given)


async def test_without_a_known_token_nobody_comes_in(timed_store: Store) -> None:
    app = ApiServer(timed_store, {"secret": ADMIN})
    for headers in ({}, {"authorization": "Bearer guess"}, {"authorization": "Basic c2VjcmV0"}):
        async with connect(app, **headers) as client:
            answer = await client.get(NODES)
            assert (answer.status_code, answer.json()["reason"]) == (401, "Unauthorized")


async def test_the_anonymous_identity_is_taken_where_there_is_one(timed_store: Store) -> None:
    app = ApiServer(timed_store, anonymous=ADMIN)
    async with connect(app) as client:
        assert (await client.get(NODES)).status_code == 200
    async with connect(app, authorization="Bearer guess") as client:
        assert (await client.get(NODES)).status_code == 401


async def test_writes_carry_user_groups_and_agent(timed_store: Store) -> None:
    seen: list[Write] = []
    timed_store.after_write(seen.append)
    app = ApiServer(timed_store, {"t": Caller("system:serviceaccount:ns:bot")})
    async with connect(app, authorization="Bearer t", user_agent="sickbay-decide") as client:
        await client.post(NODES, json={"metadata": {"name": "n"}})
    assert [(write.user, write.user_agent) for write in seen] == [("system:serviceaccount:ns:bot", "sickbay-decide")]


async def test_masters_may_act_as_others_and_nobody_else(timed_store: Store) -> None:
    seen: list[Write] = []
    timed_store.after_write(seen.append)
    app = ApiServer(timed_store, {"t": ADMIN, "u": Caller("dev")})
    async with connect(app, authorization="Bearer t", impersonate_user="alice") as client:
        await client.post(NODES, json={"metadata": {"name": "n"}})
    assert seen[0].user == "alice"
    async with connect(app, authorization="Bearer u", impersonate_user="alice") as client:
        answer = await client.get(NODES)
        assert (answer.status_code, answer.json()["reason"]) == (403, "Forbidden")


async def test_a_body_beyond_the_limit_is_refused(client: httpx2.AsyncClient) -> None:
    answer = await client.post(NODES, content=b"x" * (MAX_BODY + 1))
    assert (answer.status_code, answer.json()["reason"]) == (413, "RequestEntityTooLarge")


async def test_yaml_is_read(client: httpx2.AsyncClient) -> None:
    headers = {"content-type": "application/yaml"}
    made = await client.post(NODES, content="metadata: {name: n, labels: {a: b}}", headers=headers)
    assert (made.status_code, made.json()["metadata"]["labels"]) == (201, {"a": "b"})
    broken = await client.post(NODES, content="metadata: {name: [", headers=headers)
    assert (broken.status_code, broken.json()["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_health(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.text) == (200, "ok")


async def test_the_version_is_one_kubectl_knows(client: httpx2.AsyncClient) -> None:
    version = (await client.get("/version")).json()
    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.")


async def lines(client: httpx2.AsyncClient, path: str) -> list[dict[str, Any]]:
    async with client.stream("GET", path) as stream:
        return [json.loads(line) async for line in stream.aiter_lines()]


async def test_bookmarks_come_every_minute_to_those_who_ask(timed_store: Store, client: httpx2.AsyncClient) -> None:
    query = "watch=1&resourceVersion=0&timeoutSeconds=200"
    assert await lines(client, f"{NODES}?{query}") == []
    marks = await lines(client, f"{NODES}?{query}&allowWatchBookmarks=true")
    assert [mark["type"] for mark in marks] == ["BOOKMARK"] * 3
    assert marks[0]["object"] == {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": str(timed_store.revision)},
    }


async def test_a_watch_without_a_time_out_ends_within_an_hour(client: httpx2.AsyncClient) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert await lines(client, f"{NODES}?watch=1") == []
    assert 1800 <= loop.time() - started <= 3600


async def test_a_closed_watch_leaves_nothing_behind(timed_store: Store, client: httpx2.AsyncClient) -> None:
    before = asyncio.all_tasks()
    timed_store.create("nodes", {"metadata": {"name": "n"}})
    async with client.stream("GET", f"{NODES}?watch=1") as stream, aclosing(stream.aiter_bytes()) as pieces:
        assert b'"ADDED"' in await anext(pieces)
        assert len(timed_store.table("nodes").watchers()) == 1
    assert timed_store.table("nodes").watchers() == []
    await asyncio.sleep(1)  # noqa: TID251 - virtual; lets cancelled tasks end
    assert asyncio.all_tasks() == before


async def test_a_watch_ends_when_the_server_disconnects_it(timed_store: Store, client: httpx2.AsyncClient) -> None:
    watch = asyncio.ensure_future(lines(client, f"{NODES}?watch=1"))
    await asyncio.sleep(1)  # noqa: TID251 - virtual
    timed_store.create("nodes", {"metadata": {"name": "n"}})
    timed_store.disconnect()
    assert [event["type"] for event in await watch] == ["ADDED"]


async def test_events_that_wait_are_sent_in_one_piece(timed_store: Store, client: httpx2.AsyncClient) -> None:
    async with client.stream("GET", f"{NODES}?watch=1&resourceVersion=4") as stream:
        for number in range(5):
            timed_store.create("nodes", {"metadata": {"name": f"n{number}"}})
        async with aclosing(stream.aiter_bytes()) as pieces:
            assert (await anext(pieces)).count(b"\n") == 5


async def test_a_slow_reader_gets_everything_in_order(timed_store: Store, client: httpx2.AsyncClient) -> None:
    async def write() -> None:
        for number in range(100):
            timed_store.create("nodes", {"metadata": {"name": f"n{number:03}"}})
            await asyncio.sleep(0.1)  # noqa: TID251 - virtual

    names: list[str] = []
    writer = asyncio.ensure_future(write())
    async with client.stream("GET", f"{NODES}?watch=1&resourceVersion=4&timeoutSeconds=60") as stream:
        async for line in stream.aiter_lines():
            names.append(json.loads(line)["object"]["metadata"]["name"])
            await asyncio.sleep(0.3)  # noqa: TID251 - virtual
    await writer
    assert names == [f"n{number:03}" for number in range(100)]


async def test_deletes_come_from_go_clients_in_protobuf(timed_store: Store, client: httpx2.AsyncClient) -> None:
    made = timed_store.create("nodes", {"metadata": {"name": "n", "finalizers": ["a.b/c"]}})
    uid = made["metadata"]["uid"].encode()
    preconditions = b"\x0a" + bytes([len(uid)]) + uid
    options = b"\x08\x00" + b"\x12" + bytes([len(preconditions)]) + preconditions + b"\x22\x0aForeground"
    body = b"k8s\x00" + b"\x0a\x00" + b"\x12" + bytes([len(options)]) + options
    headers = {"content-type": "application/vnd.kubernetes.protobuf"}
    answer = await client.request("DELETE", f"{NODES}/n", content=body, headers=headers)
    assert answer.status_code == 200
    assert timed_store.get("nodes", "n")["metadata"]["finalizers"] == ["a.b/c", "foregroundDeletion"]


async def test_anything_but_http_is_refused(timed_store: Store) -> None:
    app = ApiServer(timed_store)

    async def nothing(*_: Any) -> Any:
        return {}

    with pytest.raises(RuntimeError, match="speaks HTTP, not websocket"):
        await app({"type": "websocket"}, nothing, nothing)


async def test_kubectl_moves_over_to_itself_what_it_applied_in_its_old_way(client: httpx2.AsyncClient) -> None:
    """The annotation is how an object without managedFields tells."""
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    before = {"metadata": {"name": "x", "annotations": annotations}, "data": {"a": "1", "b": "2"}}
    path = "/api/v1/namespaces/default/configmaps"
    assert (await client.post(path, json=before)).status_code == 201
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "3"}}
    headers = {"content-type": "application/apply-patch+yaml", "user-agent": "kubectl/v1.36.3"}
    answer = await client.patch(f"{path}/x?fieldManager=m", json=config, headers=headers)
    body = answer.json()
    assert (answer.status_code, body["data"], "annotations" in body["metadata"]) == (200, {"a": "3"}, False)
