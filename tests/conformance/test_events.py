"""Events: one object under two APIs."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.conformance.server import Server

OLD = {"count": 3, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:05:00Z"}
WHEN = "2026-01-01T00:00:00.000000Z"


class Log:
    """The Events of a fresh namespace, under both paths."""

    def __init__(self, server: Server, namespace: str) -> None:
        self.server = server
        self.core = f"/api/v1/namespaces/{namespace}/events"
        self.modern = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        self.about = {"kind": "Pod", "name": "p", "namespace": namespace}

    def old_event(self, name: str, **fields: Any) -> dict[str, Any]:
        text = {"reason": "Old", "message": "said", "type": "Warning", "source": {"component": "x", "host": "h"}}
        return {"metadata": {"name": name}, "involvedObject": self.about} | text | OLD | fields

    def modern_event(self, name: str, **fields: Any) -> dict[str, Any]:
        text = {"reason": "New", "note": "said", "type": "Normal", "action": "Do", "eventTime": WHEN}
        reporter = {"reportingController": "c", "reportingInstance": "i"}
        return {"metadata": {"name": name}, "regarding": self.about} | text | reporter | fields


@pytest.fixture
async def log(server: Server) -> Log:
    return Log(server, await server.namespace())


async def test_an_old_event_is_read_in_the_new_api(server: Server, log: Log) -> None:
    await server.made(log.core, log.old_event("e"))
    found = (await server.get(f"{log.modern}/e")).body
    assert (found["kind"], found["apiVersion"]) == ("Event", "events.k8s.io/v1")
    assert (found["regarding"], found["note"], found["reason"]) == (log.about, "said", "Old")
    assert found["deprecatedSource"] == {"component": "x", "host": "h"}
    times = (found["deprecatedFirstTimestamp"], found["deprecatedLastTimestamp"], found["deprecatedCount"])
    assert times == (OLD["firstTimestamp"], OLD["lastTimestamp"], 3)
    assert not {"involvedObject", "message", "source", "count"} & found.keys()


async def test_a_new_event_is_read_in_the_old_api(server: Server, log: Log) -> None:
    made = await server.made(log.modern, log.modern_event("e"))
    assert (made["apiVersion"], made["regarding"]) == ("events.k8s.io/v1", log.about)
    found = (await server.get(f"{log.core}/e")).body
    assert (found["apiVersion"], found["involvedObject"], found["message"]) == ("v1", log.about, "said")
    assert (found["reportingComponent"], found["reportingInstance"], found["action"]) == ("c", "i", "Do")
    assert found["eventTime"] == WHEN


async def test_a_patch_speaks_the_language_of_its_path(server: Server, log: Log) -> None:
    await server.made(log.modern, log.modern_event("e"))
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    answer = await server.patch("merge", f"{log.modern}/e", {"series": series})
    assert (answer.body["series"], answer.body["note"]) == (series, "said")
    old = await server.patch("json", f"{log.core}/e", [{"op": "replace", "path": "/message", "value": "said twice"}])
    assert (old.body["message"], old.body["series"]) == ("said twice", series)
    assert (await server.get(f"{log.modern}/e")).body["note"] == "said twice"


async def test_a_new_event_goes_on_by_its_series_alone(server: Server, log: Log) -> None:
    await server.made(log.modern, log.modern_event("e"))
    answer = await server.patch("merge", f"{log.modern}/e", {"note": "else", "reason": "Other"})
    assert (answer.code, {cause[1] for cause in answer.causes}) == (422, {"message", "reason"})


async def test_both_apis_list_the_same_and_select_by_their_own_fields(server: Server, log: Log) -> None:
    await server.made(log.core, log.old_event("a"))
    await server.made(log.modern, log.modern_event("b"))
    assert (await server.get(log.core)).names == (await server.get(log.modern)).names == ["a", "b"]
    for path, query in (
        (log.core, "involvedObject.name=p,type=Normal"),
        (log.modern, "regarding.name=p,type=Normal"),
        (log.modern, "reportingController=c"),
        (log.core, "reason=New"),
    ):
        answer = await server.get(f"{path}?fieldSelector={quote(query)}")
        assert (answer.code, answer.names) == (200, ["b"]), query


async def test_both_apis_watch_the_same(server: Server, log: Log) -> None:
    first = await server.made(log.core, log.old_event("a"))
    version = first["metadata"]["resourceVersion"]
    await server.made(log.core, log.old_event("b"))
    [event] = await server.watched(f"{log.modern}?watch=1&resourceVersion={version}", 1)
    assert (event["type"], event["object"]["note"], event["object"]["apiVersion"]) == (
        "ADDED",
        "said",
        "events.k8s.io/v1",
    )


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"eventTime": None}, {"eventTime"}),
        ({"type": "Odd"}, {"type"}),
        ({"reportingController": ""}, {"reportingController"}),
        ({"action": ""}, {"action"}),
        ({"reason": ""}, {"reason"}),
        ({"note": "x" * 1025}, {"message"}),
    ],
)
async def test_a_new_event_must_be_complete(
    server: Server, log: Log, fields: dict[str, Any], refused: set[str]
) -> None:
    answer = await server.post(log.modern, log.modern_event("e", **fields))
    assert (answer.code, {cause[1] for cause in answer.causes}) == (422, refused)


async def test_an_event_lies_in_the_namespace_of_its_object(server: Server, log: Log) -> None:
    elsewhere = log.old_event("e", involvedObject={"kind": "Pod", "name": "p", "namespace": "elsewhere"})
    about_node = log.old_event("e", involvedObject={"kind": "Node", "name": "n"})
    for body in (elsewhere, about_node):
        answer = await server.post(log.core, body)
        assert (answer.code, {cause[1] for cause in answer.causes}) == (422, {"involvedObject.namespace"})
    about_node["metadata"] = {"name": server.unique("e")}
    assert (await server.post("/api/v1/namespaces/default/events", about_node)).code == 201
