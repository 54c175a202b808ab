"""The informer keeps its cache true through everything that can happen to a list and a watch."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from sickbay.api.core import Node
from sickbay.api.kinds import NODE
from sickbay.clock import Clock, Randomness
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer
from tests.kube.history import History
from tests.kube.scripted import Script, bookmark, client_for, line, node, page, refusal, stream

Told = list[tuple[str | None, str | None]]


@asynccontextmanager
async def running(informer: Informer[Any], synced: bool = True) -> AsyncIterator[Told]:
    """Run the informer; gives what its handlers are told, as (old version, new version) pairs of `name@version`."""
    told: Told = []
    informer.on_change(lambda old, new: told.append((shown(old), shown(new))))
    task = asyncio.create_task(informer.run())
    try:
        if synced:
            await informer.synced.wait()
        yield told
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), "the informer must not end by itself"


def shown(obj: Node | None) -> str | None:
    return f"{obj.name}@{obj.metadata.resource_version}" if obj is not None else None


def names(informer: Informer[Node]) -> set[str]:
    return {n.name for n in informer.all()}


def gaps(informer: Informer[Any], cause: str) -> float:
    value: float = informer._metrics.watch_gaps.labels("Node", cause)._value.get()
    return value


@pytest.fixture
async def history(clock: Clock) -> History:
    return History(clock)


@pytest.fixture
def make(history: History, clock: Clock, randomness: Randomness) -> Iterator[Any]:
    yield lambda **options: Informer(history.client(), NODE, clock, randomness, **options)


async def test_what_is_listed_and_what_changes_is_told(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    async with running(make()) as told:
        assert told == [(None, "a@101")]
        history.create("b")
        history.update("a")
        history.delete("b")
        await clock.sleep(1)
        assert told[1:] == [(None, "b@102"), ("a@101", "a@103"), ("b@102", None)]
    assert history.lists == 1


async def test_a_watch_that_ends_goes_on_from_the_last_version_seen(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    informer = make()
    async with running(informer):
        await clock.sleep(20)
        history.update("a")
        history.end_watches()
        await clock.sleep(1)
        history.revision = 150
        history.bookmark()
        history.end_watches()
        await clock.sleep(5)
    assert history.watches == ["101", "102", "150"]
    assert history.lists == 1
    assert informer.last_error is None


async def test_a_broken_watch_misses_nothing_and_needs_no_new_list(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    informer = make()
    async with running(informer) as told:
        await clock.sleep(1)
        history.break_watches()
        history.create("b")
        history.delete("a")
        await clock.sleep(5)
        assert told[1:] == [(None, "b@102"), ("a@101", None)]
    assert history.lists == 1
    assert gaps(informer, "expired") == 0


async def test_a_lost_position_means_a_list_and_what_vanished_is_told(
    history: History, make: Any, clock: Clock
) -> None:
    for name in "abc":
        history.create(name)
    informer = make()
    async with running(informer) as told:
        await clock.sleep(1)
        history.break_watches()
        await clock.sleep(0.01)
        history.delete("b")
        history.update("c")
        history.compact()
        await clock.sleep(10)
        assert told[3:] == [("c@103", "c@105"), ("b@102", None)]
        assert names(informer) == {"a", "c"}
    assert history.lists == 2
    assert gaps(informer, "expired") == 1


async def test_failures_back_off_with_jitter_and_end_nothing(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    times: list[float] = []

    def refuse(request: httpx2.Request) -> httpx2.Response:
        times.append(clock.monotonic())
        return refusal(503, "ServiceUnavailable")

    script = Script(*([refuse] * 9), page([node("a", 101)]), stream(3600.0))
    informer = Informer(client_for(script, clock), NODE, clock, Randomness(3))
    async with running(informer):
        assert names(informer) == {"a"}
    waits = [after - before for before, after in itertools.pairwise(times)]
    for number, wait in enumerate(waits):
        low = min(30.0, 0.8 * 2**number)
        assert low <= wait <= 1.5 * low
    assert len({round(wait / min(30.0, 0.8 * 2**n), 3) for n, wait in enumerate(waits)}) > 4


async def test_a_role_that_is_missing_shows_in_last_error_until_it_is_granted(
    history: History, make: Any, clock: Clock
) -> None:
    history.refuse = [refusal(403, "Forbidden", "nodes is forbidden")] * 3
    informer = make()
    async with running(informer, synced=False):
        await clock.sleep(0.5)
        assert isinstance(informer.last_error, errors.Forbidden)
        assert not informer.synced.is_set()
        await clock.sleep(20)
        assert informer.synced.is_set()
        history.end_watches()
        await clock.sleep(1)
        assert informer.last_error is None


async def test_an_unreachable_server_keeps_the_cache_and_the_position(
    history: History, make: Any, clock: Clock
) -> None:
    history.create("a")
    informer = make()
    async with running(informer) as told:
        history.refuse = [httpx2.ConnectError("refused")] * 4
        history.break_watches()
        await clock.sleep(60)
        assert names(informer) == {"a"}
        assert len(told) == 1
        history.update("a")
        await clock.sleep(1)
        assert told[1:] == [("a@101", "a@102")]
    assert history.lists == 1


async def test_a_silent_watch_is_given_up_and_goes_on(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    informer = make(silence=50)
    async with running(informer):
        await clock.sleep(49)
        assert history.watches == ["101"]
        assert informer.age() == pytest.approx(49)
        await clock.sleep(3)
        assert history.watches == ["101", "101"]
        history.update("a")
        await clock.sleep(1)
        assert informer.age() == pytest.approx(1)
    assert history.lists == 1


async def test_a_garbled_stream_means_a_list(clock: Clock, randomness: Randomness) -> None:
    script = Script(page([node("a", 5)]), stream(b"<html>\n"), page([node("a", 9)], "110"), stream(3600.0))
    informer = Informer(client_for(script, clock), NODE, clock, randomness)
    async with running(informer):
        await clock.sleep(5)
        assert [shown(n) for n in informer.all()] == ["a@9"]
    assert gaps(informer, "garbled") == 1


async def test_a_server_that_lost_its_history_is_believed(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    history.create("b")
    informer = make()
    async with running(informer) as told:
        del history.objects["b"]
        history.rewind()
        await clock.sleep(30)
        assert ("b@102", None) in told
        history.update("a")
        await clock.sleep(1)
        assert told[-1] == ("a@11", "a@12")
        assert names(informer) == {"a"}
    assert gaps(informer, "rewound") >= 1


async def test_a_watch_that_goes_back_in_time_means_a_list(history: History, make: Any, clock: Clock) -> None:
    informer = make()
    async with running(informer):
        await clock.sleep(1)
        history.create("a")
        history.create("b")
        history.swap_last()
        await clock.sleep(30)
        assert names(informer) == {"a", "b"}
    assert gaps(informer, "rewound") == 1


async def test_events_told_twice_are_told_on_once(history: History, make: Any, clock: Clock) -> None:
    async with running(make()) as told:
        history.create("a")
        history.double_last()
        history.delete("a")
        history.double_last()
        await clock.sleep(1)
        assert told == [(None, "a@101"), ("a@101", None)]


# -- odd objects


BAD = {"status": {"conditions": "none"}}


async def test_a_malformed_object_in_a_list_is_named_and_hides_nothing(
    history: History, make: Any, clock: Clock
) -> None:
    history.create("a")
    history.replace("a", history.objects["a"] | BAD)
    history.create("b")
    informer = make()
    async with running(informer) as told:
        assert names(informer) == {"b"}
        assert list(informer.malformed) == [("", "a")]
        history.replace("a", {k: v for k, v in history.objects["a"].items() if k != "status"})
        await clock.sleep(1)
        assert names(informer) == {"a", "b"}
        assert informer.malformed == {}
        assert told[-1] == (None, "a@104")


async def test_an_object_that_becomes_malformed_keeps_its_last_readable_version(
    history: History, make: Any, clock: Clock
) -> None:
    history.create("a")
    informer = make()
    async with running(informer) as told:
        history.replace("a", history.objects["a"] | BAD)
        await clock.sleep(1)
        assert [shown(n) for n in informer.all()] == ["a@101"]
        assert "conditions" in informer.malformed["", "a"]
        await informer.relist()
        assert [shown(n) for n in informer.all()] == ["a@101"]
        history.delete("a")
        await clock.sleep(1)
        assert told[-1] == ("a@101", None)
        assert informer.malformed == {}


async def test_an_item_that_cannot_even_be_named_hides_no_deletion_and_makes_none_up(
    history: History, make: Any, clock: Clock
) -> None:
    for name in "abc":
        history.create(name)
    informer = make()
    async with running(informer):
        history.break_watches()
        await clock.sleep(0.01)
        history.delete("c")
        history.compact()
        history.objects["b"] = {"metadata": {"name": 5}}

        async def serve(request: httpx2.Request) -> httpx2.Response:
            if request.url.path.endswith("/b"):
                return httpx2.Response(200, json={"metadata": {"name": 5}})
            return await history._serve(request)

        informer._client = Client(
            httpx2.AsyncClient(transport=httpx2.MockTransport(serve), base_url="http://api"), "sickbay-test", clock
        )
        await clock.sleep(10)
        assert names(informer) == {"a", "b"}


async def test_an_event_of_which_nothing_can_be_read_brings_a_comparison_soon(
    clock: Clock, randomness: Randomness
) -> None:
    script = Script(
        page([node("a", 5)]),
        stream(line("MODIFIED", {"metadata": 5}), 61.0, bookmark(101)),
        page([node("a", 102)], "103"),
        stream(3600.0),
    )
    informer = Informer(client_for(script, clock), NODE, clock, randomness)
    async with running(informer):
        await clock.sleep(70)
        assert [shown(n) for n in informer.all()] == ["a@102"]


# -- trust, but compare


async def test_a_deletion_that_no_watch_told_is_found_by_comparison(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    history.create("b")
    informer = make(resync=600)
    async with running(informer) as told:
        history.delete("b")
        history.lose_last()
        history.update("a")
        await clock.sleep(590)
        assert names(informer) == {"a", "b"}
        history.bookmark()
        await clock.sleep(300)
        assert names(informer) == {"a"}
        assert told[-1] == ("b@102", None)
    assert gaps(informer, "missed") == 1


async def test_a_healthy_watch_passes_the_comparison_unnoticed(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    informer = make(resync=300)
    async with running(informer) as told:
        for _ in range(100):
            await clock.sleep(10)
            history.update("a")
        await clock.sleep(1)
        assert len(told) == 101
    assert 3 <= history.lists <= 5
    assert gaps(informer, "missed") == 0


# -- our own writes


async def test_our_own_write_is_in_the_cache_at_once_and_told_once(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    informer = make()
    async with running(informer) as told:
        informer.observe_write(history.struct(history.update("a")))
        assert [shown(n) for n in informer.all()] == ["a@102"]
        await clock.sleep(1)
        assert told[1:] == [("a@101", "a@102")]


async def test_a_slow_watch_does_not_take_our_write_back(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    informer = make()
    async with running(informer) as told:
        history.update("a")
        informer.observe_write(history.struct(history.update("a")))
        await clock.sleep(1)
        assert told[1:] == [("a@101", "a@103")]


async def test_the_late_answer_to_a_write_does_not_raise_the_dead(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    informer = make()
    async with running(informer):
        answer = history.struct(history.update("a"))
        history.delete("a")
        await clock.sleep(1)
        informer.observe_write(answer)
        assert names(informer) == set()


async def test_a_list_on_demand_shows_what_the_watch_has_not_told_yet(
    history: History, make: Any, clock: Clock
) -> None:
    history.create("a")
    informer = make()
    async with running(informer) as told:
        history.create("b")
        history.lose_last()
        history.delete("a")
        history.lose_last()
        await informer.relist()
        assert names(informer) == {"b"}
        history.update("b")
        await clock.sleep(1)
        assert told[-1] == ("b@102", "b@104")
    assert len(history.watches) == 1


async def test_a_list_on_demand_that_fails_tells_the_caller(history: History, make: Any, clock: Clock) -> None:
    informer = make()
    async with running(informer):
        await clock.sleep(1)
        history.refuse = [httpx2.ConnectError("refused")]
        with pytest.raises(errors.Unreachable):
            await informer.relist()


async def test_reading_afresh_goes_on_until_it_succeeds(history: History, make: Any, clock: Clock) -> None:
    informer = make()
    async with running(informer):
        await clock.sleep(1)
        history.refuse = [httpx2.ConnectError("refused"), httpx2.ConnectError("refused")]
        await informer.read_afresh()
        assert history.refuse == []


async def test_a_slow_list_on_demand_takes_back_nothing_the_watch_told(
    history: History, make: Any, clock: Clock
) -> None:
    history.create("a")
    history.create("b")
    informer = make()
    async with running(informer) as told:
        history.list_delay = 10
        asking = asyncio.create_task(informer.relist())
        await clock.sleep(5)
        history.delete("b")
        history.update("a")
        await asking
        assert names(informer) == {"a"}
        assert told[2:] == [("b@102", None), ("a@101", "a@104")]
    assert gaps(informer, "missed") == 0


# -- handlers and indexes


async def test_a_handler_that_raises_keeps_nobody_from_being_told(history: History, make: Any, clock: Clock) -> None:
    informer = make()

    def broken(old: Node | None, new: Node | None) -> None:
        raise KeyError("bug")

    informer.on_change(broken)
    async with running(informer) as told:
        history.create("a")
        history.create("b")
        await clock.sleep(1)
        assert told == [(None, "a@101"), (None, "b@102")]
    assert informer._metrics.handler_errors.labels("Node")._value.get() == 2


async def test_a_handler_that_comes_late_is_told_what_is_there(history: History, make: Any) -> None:
    history.create("a")
    informer = make()
    async with running(informer):
        late: Told = []
        informer.on_change(lambda old, new: late.append((shown(old), shown(new))))
        assert late == [(None, "a@101")]


async def test_objects_are_found_by_index(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    informer = make(indexes={"pool": lambda n: [n.labels.get("pool", "")]})
    async with running(informer):
        history.update("a", labels={"pool": "x"})
        await clock.sleep(1)
        assert [n.name for n in informer.by_index("pool", "x")] == ["a"]
        assert informer.by_index("pool", "") == []
        assert informer.get("a") is not None


async def test_selectors_go_to_list_and_watch(clock: Clock, randomness: Randomness) -> None:
    script = Script(page([]), stream(3600.0))
    informer = Informer(client_for(script, clock), NODE, clock, randomness, labels="pool=x", fields="metadata.name=a")
    async with running(informer):
        await clock.sleep(1)
    for query in (script.query(0), script.query(1)):
        assert query["labelSelector"] == "pool=x"
        assert query["fieldSelector"] == "metadata.name=a"


async def test_nothing_stays_open_when_the_informer_is_stopped(history: History, make: Any, clock: Clock) -> None:
    history.create("a")
    async with running(make()):
        await clock.sleep(1)
        assert history.open == 1
    await clock.sleep(0)
    assert history.open == 0
