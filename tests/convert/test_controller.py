"""The controller in a world: alerts end to end, two replicas, a cloud that cannot be asked, and what is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.transport import InProcessTransport
from sickbay.clock import Randomness
from sickbay.convert import intake
from sickbay.convert.controller import ConvertController, ConvertOptions
from sickbay.convert.notice import Notice
from sickbay.kube.client import Client
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import NODES, condition_of
from sickbay.sim.listings import FakeEvents
from sickbay.sim.loop import VirtualLoop
from sickbay.sim.world import World

EVENTS = "infraevents.sickbay.dev"
TYPE: Obj = {
    "apiVersion": "sickbay.dev/v1alpha1",
    "kind": "FaultType",
    "metadata": {"name": "acme.hot"},
    "spec": {
        "class": "GPU", "severity": "Error", "scope": "Node", "remedy": [], "clearsBy": "condition",
        "match": [{"alert": {"name": "GpuHot", "node": "instance"}}],
    },
}  # fmt: skip


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(cast(VirtualLoop, asyncio.get_running_loop()), seed=5)
    made.fleet.add_pool(PoolSpec("train", nodes=3))
    made.settle()
    made.start()
    yield made
    await made.stop()
    assert made.problems == []


class Replica:
    """One convert of its own, with its webhook."""

    def __init__(self, world: World, name: str = "a") -> None:
        headers = {"authorization": f"Bearer {world.controller_token()}"}
        http = httpx2.AsyncClient(
            transport=InProcessTransport(world.server), base_url="http://apiserver", headers=headers
        )
        self.registry, client = CollectorRegistry(), Client(http, "sickbay-convert", world.clock)
        self.controller = ConvertController(
            client, world.clock, Randomness(7), ConvertOptions(identity=name), self.registry,
            [FakeEvents(world.listings)],
        )  # fmt: skip
        self.app = intake.app(self.controller.take_alerts, self.controller.take_notices, lambda: "t", self.registry)
        self.task = asyncio.create_task(self.controller.run())

    async def post(self, *alerts: Obj) -> int:
        return await self.send("/alerts", {"version": "4", "alerts": alerts})

    async def send(self, path: str, message: Obj) -> int:
        body = json.dumps(message).encode()
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://convert") as http:
            answer = await http.post(path, content=body, headers={"authorization": "Bearer t"})
            return int(answer.status_code)

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def alert(status: str = "firing", node: str = "train-0:9400", print_: str = "aa") -> Obj:
    return {"status": status, "fingerprint": print_, "startsAt": "2027-03-01T08:00:00Z",
            "labels": {"alertname": "GpuHot", "instance": node}}  # fmt: skip


def condition(world: World, type_: str, node: str = "train-0") -> Obj:
    return dict(condition_of(world.store.get(NODES, node), type_))


async def test_what_was_acknowledged_stands_on_the_node_and_outlives_the_process(world: World) -> None:
    world.person("alice").create("faulttypes.sickbay.dev", TYPE)
    first = Replica(world)
    await world.clock.sleep(30)
    assert await first.post(alert(), alert(node="train-1", print_="bb"), alert(node="elsewhere", print_="cc")) == 200
    assert condition(world, "AcmeHot")["status"] == condition(world, "AcmeHot", "train-1")["status"] == "True"
    assert condition(world, "AcmeHot", "train-2") == {}
    await first.end()
    second = Replica(world, "b")
    await world.clock.sleep(3600)
    assert condition(world, "AcmeHot")["status"] == "True"
    assert await second.post(alert("resolved")) == 200
    assert condition(world, "AcmeHot")["status"] == "False"
    assert condition(world, "AcmeHot", "train-1")["status"] == "True"
    await second.end()


async def test_only_the_leader_takes_alerts(world: World) -> None:
    world.person("alice").create("faulttypes.sickbay.dev", TYPE)
    leader = Replica(world)
    await world.clock.sleep(30)
    other = Replica(world, "b")
    await world.clock.sleep(30)
    assert (await other.post(alert()), condition(world, "AcmeHot")) == (503, {})
    assert await leader.post(alert()) == 200
    await leader.end()
    await other.end()


async def test_the_same_message_again_writes_nothing(world: World) -> None:
    world.person("alice").create("faulttypes.sickbay.dev", TYPE)
    convert = Replica(world)
    await world.clock.sleep(30)
    await convert.post(alert())
    before = world.store.get(NODES, "train-0")["status"]["conditions"]
    for _ in range(5):
        assert await convert.post(alert()) == 200
    assert world.store.get(NODES, "train-0")["status"]["conditions"] == before
    await convert.end()


async def test_a_message_of_a_provider_is_recorded_and_nothing_follows_from_what_it_lacks(world: World) -> None:
    convert = Replica(world)
    await world.clock.sleep(30)
    made = {"eventId": "e-1", "instanceId": world.node("train-0")["spec"]["providerID"], "eventStatus": "Scheduled",
            "eventType": "SystemMaintenance.PerformanceImpact"}  # fmt: skip
    world.listings.failing = "nobody asks here"
    assert await convert.send("/announcements/alibaba-ecs", {"content": made}) == 200
    await world.clock.sleep(1)
    assert (phases(world), condition(world, "InfraFreeze")["status"]) == (["Scheduled"], "True")
    foreign = {**made, "eventId": "e-2", "instanceId": "x"}
    assert await convert.send("/announcements/alibaba-ecs", {"content": foreign}) == 200
    await world.clock.sleep(600)
    assert phases(world) == ["Scheduled"]
    assert await convert.send("/announcements/alibaba-ecs", {"content": {**made, "eventStatus": "Executed"}}) == 200
    await world.clock.sleep(1)
    assert (phases(world), condition(world, "InfraFreeze")["status"]) == (["Completed"], "False")
    assert await convert.send("/announcements/weather", {}) == 404
    assert await convert.send("/announcements/aws", {"detail": 1}) == 400
    await convert.end()


def announced(world: World, **more: Any) -> Notice:
    resource = world.node("train-0")["spec"]["providerID"]
    given = {"source": "azure", "id": "A1", "type": "Freeze", "phase": "Scheduled", "resource": resource, **more}
    return Notice(**given)


def phases(world: World) -> list[str]:
    return [event["status"]["phase"] for event in world.store.list(EVENTS)]


async def test_a_provider_that_cannot_be_asked_closes_nothing(world: World) -> None:
    """Azure/AKS#4757: time-outs turned the state unknown for hours; others read a transport error as the end."""
    world.start_components(("convert",))
    world.listings.put(announced(world))
    await world.clock.sleep(60)
    world.listings.failing = "connection timed out"
    world.listings.entries.clear()
    await world.clock.sleep(3600)
    assert (phases(world), condition(world, "InfraFreeze")["status"]) == (["Scheduled"], "True")
    assert world.staff.metric("sickbay_convert_source_failures_total", {"source": "fake"}) > 100
    world.listings.failing = ""
    await world.clock.sleep(9)
    assert phases(world) == ["Scheduled"], "one list without it is not enough"
    await world.clock.sleep(12)
    assert (phases(world), condition(world, "InfraFreeze")["status"]) == (["Gone"], "False")


async def test_entries_of_other_clusters_are_counted_and_not_kept(world: World) -> None:
    """aws-node-termination-handler#787: events of other clusters led to 600 restarts."""
    world.start_components(("convert",))
    world.listings.put(announced(world, resource="i-of-somebody-else"))
    await world.clock.sleep(120)
    assert world.store.list(EVENTS) == []
    assert world.staff.metric("sickbay_convert_unresolved_events_total", {"source": "azure"}) > 0


async def test_an_event_that_stands_for_days_is_hardly_written(world: World) -> None:
    world.start_components(("convert",))
    world.listings.put(announced(world))
    await world.clock.sleep(3 * 3600)
    written = [w for w in world.journal.writes if w.by == "convert" and w.object.startswith("InfraEvent/")]
    assert 2 <= len(written) <= 2 + 3 * 6, "lastSeen, every ten minutes"
    assert len([w for w in world.journal.writes if w.by == "convert" and w.object == "Node/train-0"]) == 1


async def test_records_of_ended_events_go_after_thirty_days(world: World) -> None:
    world.start_components(("convert",))
    world.listings.put(announced(world, source="oci", phase="SCHEDULED", type="NONE"))
    await world.clock.sleep(60)
    world.listings.put(announced(world, source="oci", phase="CANCELED", type="NONE"))
    await world.clock.sleep(60)
    (event,) = world.store.list(EVENTS)
    assert event["status"]["terminal"] is True
    old = {"status": {"since": "2027-01-20T08:00:00Z"}}
    world.person("admin").merge(EVENTS, event["metadata"]["name"], old, subresource="status")
    await world.clock.sleep(120)
    assert world.store.list(EVENTS) == [], "and what the provider still lists as over is not kept again"


@pytest.mark.case("P034")
@pytest.mark.case("P035")
async def test_gauges_are_counted_at_the_scrape_by_type_with_the_reason_beside(world: World) -> None:
    """node-problem-detector#474: the gauge stayed at 1 after the condition had cleared."""
    world.start_components(("convert",))
    await world.clock.sleep(30)
    fault = {"type": "ReadonlyFilesystem", "status": "True", "reason": "FilesystemIsReadOnly", "message": ""}
    world.set_condition("train-0", "node-problem-detector", fault)
    await world.clock.sleep(1)
    labels = {"type": "ReadonlyFilesystem", "reason": "FilesystemIsReadOnly", "status": "True"}
    assert world.staff.metric("sickbay_node_condition", labels) == 1
    world.set_condition("train-0", "node-problem-detector", {**fault, "status": "False", "reason": "FilesystemOk"})
    await world.clock.sleep(1)
    assert world.staff.metric("sickbay_node_condition", {"type": "ReadonlyFilesystem"}) == 0
