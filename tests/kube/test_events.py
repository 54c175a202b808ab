"""Events arrive, are counted, and never disturb whoever reports them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sickbay.api.core import ObjectReference
from sickbay.api.kinds import NODE, NODE_REPAIR, POD
from sickbay.clock import Clock, Randomness
from sickbay.kube.events import NORMAL, WARNING, EventRecorder, reference
from tests.kube.scripted import Script, answer, client_for, refusal
from tests.kube.served import Cut, Server

ABOUT = ObjectReference(api_version="v1", kind="Node", name="n1", uid="u1")


@pytest.fixture
async def server(clock: Clock) -> Server:
    return Server(clock)


@asynccontextmanager
async def recording(server: Server) -> AsyncIterator[tuple[EventRecorder, Cut]]:
    client, cut = server.client()
    recorder = EventRecorder(
        client, server.clock, Randomness(1), component="sickbay-execute", instance="sickbay-controller-0"
    )
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder, cut
        assert not task.done(), "the recorder never ends by itself"
    finally:
        task.cancel()
        await asyncio.wait([task])


def events(server: Server, namespace: str = "default") -> list[dict[str, Any]]:
    return list(server.store.list("events", namespace))


async def test_an_event_says_who_what_why_and_when(server: Server, clock: Clock) -> None:
    async with recording(server) as (recorder, _):
        recorder.event(ABOUT, NORMAL, "QuarantineDone", "cordoned for gpu.xid.79", action="Quarantine")
        await clock.sleep(1)
    (event,) = events(server)
    assert event["involvedObject"]["name"] == "n1"
    assert event["involvedObject"]["uid"] == "u1"
    assert event["metadata"]["name"].startswith("n1.")
    wanted = {
        "type": "Normal",
        "reason": "QuarantineDone",
        "message": "cordoned for gpu.xid.79",
        "action": "Quarantine",
        "count": 1,
        "firstTimestamp": "2027-03-01T08:00:00Z",
        "lastTimestamp": "2027-03-01T08:00:00Z",
        "source": {"component": "sickbay-execute", "host": "sickbay-controller-0"},
        "reportingComponent": "sickbay-execute",
        "reportingInstance": "sickbay-controller-0",
    }
    assert {key: event[key] for key in wanted} == wanted


async def test_repetitions_are_counted_in_one_event(server: Server, clock: Clock) -> None:
    async with recording(server) as (recorder, _):
        for _ in range(7):
            recorder.event(ABOUT, WARNING, "DrainBlocked", "pod a blocked by pdb b")
            await clock.sleep(4)
        await clock.sleep(20)
    (event,) = events(server)
    assert event["count"] == 7
    assert event["firstTimestamp"] == "2027-03-01T08:00:00Z"
    assert event["lastTimestamp"] == "2027-03-01T08:00:24Z"


async def test_events_about_namespaced_objects_stand_beside_them(server: Server, clock: Clock) -> None:
    server.store.create("namespaces", {"metadata": {"name": "train"}})
    about = ObjectReference(api_version="v1", kind="Pod", namespace="train", name="p", uid="u")
    async with recording(server) as (recorder, _):
        recorder.event(about, NORMAL, "Evicted", "m")
        await clock.sleep(1)
    assert events(server) == []
    assert len(events(server, "train")) == 1


async def test_an_event_that_expired_is_written_anew(server: Server, clock: Clock) -> None:
    async with recording(server) as (recorder, _):
        recorder.event(ABOUT, NORMAL, "R", "m")
        await clock.sleep(1)
        server.store.delete("events", events(server)[0]["metadata"]["name"], "default")
        await clock.sleep(20)
        recorder.event(ABOUT, NORMAL, "R", "m")
        await clock.sleep(20)
    (event,) = events(server)
    assert event["count"] == 2


async def test_an_outage_delays_an_event(server: Server, clock: Clock) -> None:
    async with recording(server) as (recorder, cut):
        cut.down = True
        recorder.event(ABOUT, NORMAL, "R", "m")
        await clock.sleep(1)
        cut.down = False
        await clock.sleep(20)
    assert len(events(server)) == 1


async def test_a_lost_answer_makes_no_second_event(server: Server, clock: Clock) -> None:
    async with recording(server) as (recorder, cut):
        cut.lose_answers = 1
        recorder.event(ABOUT, NORMAL, "R", "m")
        await clock.sleep(20)
    assert len(events(server)) == 1


async def test_a_long_outage_drops_events_and_holds_nobody_up(server: Server, clock: Clock) -> None:
    async with recording(server) as (recorder, cut):
        cut.down = True
        recorder.event(ABOUT, NORMAL, "R", "first")
        await clock.sleep(120)
        cut.down = False
        recorder.event(ABOUT, NORMAL, "R", "second")
        await clock.sleep(20)
        assert recorder._metrics.events_dropped.labels("Unreachable")._value.get() == 1
    assert [event["message"] for event in events(server)] == ["second"]


async def test_a_refused_event_is_not_tried_again(clock: Clock) -> None:
    script = Script(refusal(403, "Forbidden"), answer({"metadata": {"name": "e"}}))
    recorder = EventRecorder(client_for(script, clock), clock, Randomness(1), component="c")
    recorder.event(ABOUT, NORMAL, "R", "m")
    await recorder.flush()
    assert len(script.requests) == 1


async def test_a_flood_about_one_object_is_held_back(server: Server, clock: Clock) -> None:
    async with recording(server) as (recorder, _):
        for n in range(100):
            recorder.event(ABOUT, NORMAL, "R", f"m{n}")
        await clock.sleep(30)
        assert recorder._metrics.events_dropped.labels("rate")._value.get() == 75
    assert len(events(server)) == 25


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        pytest.param("x" * 1024, "x" * 1024, id="as long as may be"),
        pytest.param("x" * 2000, "x" * 1021 + "…", id="too long"),
        pytest.param("bad \udcff byte", "bad ? byte", id="bytes that are no text"),
        pytest.param("é" * 600, "é" * 510 + "…", id="counted in bytes, cut between letters"),
    ],
)
async def test_a_long_message_is_cut(server: Server, clock: Clock, message: str, kept: str) -> None:
    async with recording(server) as (recorder, _):
        recorder.event(ABOUT, NORMAL, "R", message)
        await clock.sleep(1)
    assert events(server)[0]["message"] == kept


async def test_a_very_long_object_name_still_makes_a_name(server: Server, clock: Clock) -> None:
    async with recording(server) as (recorder, _):
        recorder.event(ObjectReference(kind="Node", name="n" * 253, uid="u"), NORMAL, "R", "m")
        await clock.sleep(1)
    assert len(events(server)[0]["metadata"]["name"]) <= 253


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        (NODE, {"metadata": {"name": "n", "uid": "u"}}, ("v1", "Node", "", "n", "u")),
        (POD, {"metadata": {"name": "p", "namespace": "ns"}}, ("v1", "Pod", "ns", "p", "")),
        (NODE_REPAIR, {"metadata": {"name": "r"}}, ("sickbay.dev/v1alpha1", "NodeRepair", "", "r", "")),
    ],
)
def test_a_reference_names_kind_and_object(kind: Any, obj: Any, expected: tuple[str, ...]) -> None:
    found = reference(kind, obj)
    assert (found.api_version, found.kind, found.namespace, found.name, found.uid) == expected
