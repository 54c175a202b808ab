"""WATCH: from where, what is told, bookmarks, and the end of history."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from tests.conformance.server import PARTIAL, TABLE, Server, seen


class Shelf:
    """Config maps of a fresh namespace, and the version after each write."""

    def __init__(self, server: Server, path: str) -> None:
        self.server = server
        self.path = path

    async def make(self, name: str, **labels: str) -> str:
        made = await self.server.made(self.path, {"metadata": {"name": name, "labels": labels}})
        return str(made["metadata"]["resourceVersion"])

    async def change(self, name: str, **metadata: Any) -> str:
        answer = await self.server.patch("merge", f"{self.path}/{name}", {"metadata": metadata})
        return str(answer.body["metadata"]["resourceVersion"])

    async def watch(self, count: int, query: str = "", **headers: str) -> list[dict[str, Any]]:
        return await self.server.watched(f"{self.path}?watch=1&{query}", count, **headers)


@pytest.fixture
async def shelf(server: Server) -> Shelf:
    return Shelf(server, f"/api/v1/namespaces/{await server.namespace()}/configmaps")


async def test_a_watch_from_a_version_tells_what_came_after(shelf: Shelf) -> None:
    await shelf.make("a")
    since = await shelf.make("b")
    changed = await shelf.change("a", labels={"x": "y"})
    await shelf.make("c")
    await shelf.server.delete(f"{shelf.path}/b")
    events = await shelf.watch(3, f"resourceVersion={since}")
    assert seen(events) == [("MODIFIED", "a"), ("ADDED", "c"), ("DELETED", "b")]
    first = events[0]["object"]
    assert (first["kind"], first["metadata"]["labels"], first["metadata"]["resourceVersion"]) == (
        "ConfigMap",
        {"x": "y"},
        changed,
    )
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    assert versions[0] > int(since)


@pytest.mark.parametrize("query", ["", "resourceVersion=0"], ids=["no version", "version 0"])
async def test_a_watch_from_anywhere_begins_with_what_is_there(shelf: Shelf, query: str) -> None:
    await shelf.make("a")
    await shelf.make("b")
    assert seen(await shelf.watch(2, query)) == [("ADDED", "a"), ("ADDED", "b")]


async def test_events_come_while_the_watch_is_open(shelf: Shelf) -> None:
    since = await shelf.make("a")
    async with aclosing(shelf.server.lines(f"{shelf.path}?watch=1&resourceVersion={since}")) as lines:
        for number in range(3):
            await shelf.change("a", labels={"n": str(number)})
            event = await asyncio.wait_for(anext(lines), 5)
            assert event["object"]["metadata"]["labels"] == {"n": str(number)}


async def test_a_selecting_watch_sees_objects_enter_and_leave(shelf: Shelf) -> None:
    since = await shelf.make("a", mood="calm")
    await shelf.make("b", mood="wild")
    await shelf.change("a", labels={"mood": "wild"})
    await shelf.change("a", annotations={"note": "1"})
    left = await shelf.change("a", labels={"mood": "calm"})
    await shelf.change("a", annotations={"note": "2"})
    await shelf.server.delete(f"{shelf.path}/b")
    events = await shelf.watch(5, f"resourceVersion={since}&labelSelector=mood%3Dwild")
    assert seen(events) == [("ADDED", "b"), ("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("DELETED", "b")]
    gone = events[3]["object"]["metadata"]
    assert (gone["labels"], gone["resourceVersion"]) == ({"mood": "wild"}, left)


async def test_a_watch_of_one_name_sees_only_it(shelf: Shelf) -> None:
    since = await shelf.make("a")
    await shelf.make("b")
    await shelf.change("a", labels={"x": "y"})
    await shelf.make("c")
    await shelf.server.delete(f"{shelf.path}/a")
    events = await shelf.watch(2, f"resourceVersion={since}&fieldSelector=metadata.name%3Da")
    assert seen(events) == [("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_watch_of_all_namespaces(server: Server, shelf: Shelf) -> None:
    since = await shelf.make("a")
    other = Shelf(server, f"/api/v1/namespaces/{await server.namespace()}/configmaps")
    await other.make("b")
    await shelf.make("c")
    path = f"/api/v1/configmaps?watch=1&resourceVersion={since}"
    assert seen(await server.watched(path, 2)) == [("ADDED", "b"), ("ADDED", "c")]


async def test_a_deleted_object_is_told_in_its_last_state(shelf: Shelf) -> None:
    since = await shelf.make("a", x="y")
    await shelf.change("a", finalizers=["a.b/c"])
    await shelf.server.delete(f"{shelf.path}/a")
    await shelf.change("a", finalizers=None)
    events = await shelf.watch(3, f"resourceVersion={since}")
    assert [event["type"] for event in events] == ["MODIFIED", "MODIFIED", "DELETED"]
    last = events[2]["object"]["metadata"]
    assert last["labels"] == {"x": "y"}
    assert last["deletionTimestamp"]
    assert int(last["resourceVersion"]) > int(events[1]["object"]["metadata"]["resourceVersion"])


async def test_a_watch_ends_at_its_time_out(shelf: Shelf) -> None:
    await shelf.make("a")
    events = await shelf.watch(10, "resourceVersion=0&timeoutSeconds=1")
    assert seen(events) == [("ADDED", "a")]


async def test_initial_events_end_with_a_marked_bookmark(shelf: Shelf) -> None:
    await shelf.make("a")
    version = await shelf.make("b")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    events = await shelf.watch(3, query)
    assert seen(events) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
    mark = events[2]["object"]
    assert (mark["kind"], mark["apiVersion"]) == ("ConfigMap", "v1")
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(mark["metadata"]["resourceVersion"]) >= int(version)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("sendInitialEvents=true", 422),
        ("resourceVersionMatch=NotOlderThan", 422),
        ("resourceVersion=abc", 500),
        ("labelSelector=%3D%3D", 400),
        ("timeoutSeconds=x", 400),
    ],
)
async def test_a_watch_that_makes_no_sense_is_refused(shelf: Shelf, query: str, code: int) -> None:
    answer = await shelf.server.get(f"{shelf.path}?watch=1&{query}")
    assert answer.code == code


async def test_a_watch_from_a_forgotten_version_is_told_so_in_the_stream(shelf: Shelf) -> None:
    since = await shelf.make("a")
    await shelf.make("b")
    await shelf.make("c")
    shelf.server.forget()
    [event] = await shelf.watch(1, f"resourceVersion={since}")
    status = event["object"]
    assert (event["type"], status["kind"], status["code"]) == ("ERROR", "Status", 410)
    assert status["reason"] == "Expired"
    assert status["message"].startswith("too old resource version: ")
    assert (await shelf.server.get(shelf.path)).names == ["a", "b", "c"]


async def test_a_watch_of_tables_carries_cells(shelf: Shelf) -> None:
    since = await shelf.make("a")
    await shelf.make("b")
    [event] = await shelf.watch(1, f"resourceVersion={since}", accept=TABLE)
    assert (event["type"], event["object"]["kind"]) == ("ADDED", "Table")
    assert event["object"]["rows"][0]["cells"][:2] == ["b", 0]


async def test_a_watch_of_metadata_leaves_the_rest_out(shelf: Shelf) -> None:
    since = await shelf.make("a")
    await shelf.server.made(shelf.path, {"metadata": {"name": "b"}, "data": {"big": "x"}})
    [event] = await shelf.watch(1, f"resourceVersion={since}", accept=PARTIAL)
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert event["object"]["metadata"]["name"] == "b"
    assert "data" not in event["object"]


async def test_the_first_table_of_a_watch_alone_names_its_columns(server: Server) -> None:
    path = f"/api/v1/namespaces/{await server.namespace()}/configmaps"
    for name in ("a", "b"):
        await server.made(path, {"metadata": {"name": name}})
    first, second = await server.watched(f"{path}?watch=1", 2, accept=TABLE)
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert not second["object"]["columnDefinitions"]


async def test_a_watch_may_begin_without_what_is_there(server: Server) -> None:
    path = f"/api/v1/namespaces/{await server.namespace()}/configmaps"
    await server.made(path, {"metadata": {"name": "a"}})
    query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    assert await server.watched(f"{path}?{query}", 1) == []


async def test_a_watch_from_any_moment_marks_where_its_beginning_ends(server: Server) -> None:
    path = f"/api/v1/namespaces/{await server.namespace()}/configmaps"
    await server.made(path, {"metadata": {"name": "a"}})
    added, mark = await server.watched(f"{path}?watch=1&allowWatchBookmarks=true", 2)
    assert (added["type"], mark["type"]) == ("ADDED", "BOOKMARK")
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
