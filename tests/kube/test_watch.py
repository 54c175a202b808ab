"""A watch: lines out of chunks, each object alone, an end to every silence."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import httpx2
import pytest

from sickbay.api.kinds import NODE
from sickbay.clock import Clock
from sickbay.kube import errors
from sickbay.kube.client import Client, WatchEvent
from tests.kube.scripted import Pieces, Script, answer, bookmark, client_for, line, node, refusal, stream


async def watched(script: Script, clock: Clock, **options: Any) -> list[tuple[str, str]]:
    """Type and name (of a bookmark: version) of every event until the end."""
    seen = []
    async with aclosing(client_for(script, clock).watch(NODE, "100", **options)) as events:
        async for event in events:
            who = event.identity
            seen.append((event.type, who.name or who.resource_version))
    return seen


async def test_a_watch_asks_for_bookmarks_from_where_it_stands(clock: Clock) -> None:
    script = Script(stream())
    assert await watched(script, clock, labels="a=b", timeout_seconds=30) == []
    assert script.query() == {
        "labelSelector": "a=b",
        "resourceVersion": "100",
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "30",
    }


async def test_events_are_cut_out_of_any_chunks(clock: Clock) -> None:
    text = line("ADDED", node("a")) + line("MODIFIED", node("a", 2)) + bookmark(120) + line("DELETED", node("a", 3))
    for size in (1, 7, 64, 10_000):
        chunks = [text[start : start + size] for start in range(0, len(text), size)]
        seen = await watched(Script(stream(*chunks)), clock)
        assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("BOOKMARK", "120"), ("DELETED", "a")]


async def test_a_large_object_comes_through_whole(clock: Clock) -> None:
    big = node("a", annotations={"big": "x" * 1_500_000})
    text = line("ADDED", big)
    script = Script(stream(*(text[start : start + 65_536] for start in range(0, len(text), 65_536))))
    async with aclosing(client_for(script, clock).watch(NODE, "1")) as events:
        found = [event async for event in events]
    assert found[0].object is not None
    assert len(found[0].object.annotations["big"]) == 1_500_000


async def test_an_object_that_does_not_decode_is_an_event_of_its_own(clock: Clock) -> None:
    bad = node("bad", 101) | {"status": 5}
    script = Script(stream(line("MODIFIED", bad), line("ADDED", node("b", 102))))
    client = client_for(script, clock)
    found: list[WatchEvent[Any]] = []
    async with aclosing(client.watch(NODE, "100")) as events:
        async for event in events:
            found.append(event)
    assert found[0].object is None
    assert "status" in found[0].error
    assert (found[0].identity.name, found[0].identity.resource_version) == ("bad", "101")
    assert found[1].object is not None
    assert found[1].object.name == "b"
    assert client.metrics.malformed.labels("Node")._value.get() == 1


async def test_an_error_line_is_raised_as_what_it_says(clock: Clock) -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (9)"}
    with pytest.raises(errors.Gone, match="too old resource version"):
        await watched(Script(stream(line("ADDED", node("a")), line("ERROR", gone))), clock)


async def test_a_refused_watch_is_an_error_and_is_not_repeated(clock: Clock) -> None:
    script = Script(refusal(403, "Forbidden"))
    with pytest.raises(errors.Forbidden):
        await watched(script, clock)
    assert len(script.requests) == 1


@pytest.mark.parametrize("rest", [httpx2.ReadError("reset"), 10_000.0], ids=["it breaks", "it hangs"])
async def test_a_refusal_whose_text_is_lost_is_known_by_its_status(clock: Clock, rest: Any) -> None:
    pieces = Pieces([b'{"kind":', rest])
    with pytest.raises(errors.Gone):
        await watched(Script(httpx2.Response(410, stream=pieces)), clock)
    assert pieces.closed


async def test_a_torn_last_line_is_not_an_event(clock: Clock) -> None:
    seen = await watched(Script(stream(line("ADDED", node("a")), line("ADDED", node("b"))[:30])), clock)
    assert seen == [("ADDED", "a")]


async def test_a_garbled_stream_is_an_error(clock: Clock) -> None:
    with pytest.raises(errors.MalformedObject):
        await watched(Script(stream(b"<html>\n")), clock)


@pytest.mark.parametrize("failure", [httpx2.ReadError("reset"), httpx2.RemoteProtocolError("torn"), OSError("gone")])
async def test_a_broken_connection_is_unreachable(clock: Clock, failure: Exception) -> None:
    with pytest.raises(errors.Unreachable, match="watch /api/v1/nodes"):
        await watched(Script(stream(line("ADDED", node("a")), failure)), clock)


async def test_silence_counts_as_a_dead_connection(clock: Clock) -> None:
    pieces = Pieces([line("ADDED", node("a")), 100.0, bookmark(110), 10_000.0])
    with pytest.raises(errors.Unreachable, match="nothing received for 150 s"):
        await watched(Script(httpx2.Response(200, stream=pieces)), clock)
    assert clock.monotonic() == 250
    assert pieces.closed


async def test_a_server_that_never_answers_the_watch_is_given_up(clock: Clock) -> None:
    async def hang(request: httpx2.Request) -> httpx2.Response:
        await clock.sleep(10_000)
        raise AssertionError("unreachable")

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(hang), base_url="http://api")
    client = Client(http, "sickbay-test", clock)
    with pytest.raises(errors.Unreachable):
        async with aclosing(client.watch(NODE, "1", silence=20)) as events:
            await anext(events)
    assert clock.monotonic() == 20


async def test_leaving_a_watch_closes_its_connection(clock: Clock) -> None:
    pieces = Pieces([line("ADDED", node("a")), 10_000.0])
    async with aclosing(client_for(Script(httpx2.Response(200, stream=pieces)), clock).watch(NODE, "1")) as events:
        assert (await anext(events)).type == "ADDED"
    assert pieces.closed


async def test_raw_kinds_are_watched_as_dicts(clock: Clock) -> None:
    odd = node("a") | {"future": 1}
    async with aclosing(client_for(Script(stream(line("ADDED", odd))), clock).watch(NODE.raw, "1")) as events:
        event = await anext(events)
    assert event.object == odd


async def test_a_throttled_watch_is_an_error_for_the_reflector_to_back_off_on(clock: Clock) -> None:
    with pytest.raises(errors.TooManyRequests):
        await watched(Script(refusal(429, headers={"retry-after": "3"}), answer({})), clock)
