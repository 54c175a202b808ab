"""What others know becomes conditions on a real control plane, under the controller's own identity."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.api import kinds, names
from sickbay.api.objectnames import infra_event_name
from sickbay.clock import rfc3339
from sickbay.convert.notice import Notice
from tests.realcluster.objects import own
from tests.realcluster.world import World
from tests.support.eventually import eventually

pytestmark = pytest.mark.controlplane

FOREIGN = "KernelDeadlock"


async def test_what_a_silent_agent_said_is_unknown_until_it_says_it_again(world: World) -> None:
    """The API server's own record of who wrote what tells the agent's conditions from those of others."""
    (node,) = await world.nodes(1)
    world.run_agent(node)
    await eventually(lambda: world.condition(node, names.DETECTION_BLIND) == "False", 30, "the agent sees")
    await foreign_condition(world, node)
    agent = world._processes[-1]
    await agent.crash()
    (convert,) = await world.start("convert")
    await eventually(lambda: world.condition(node, names.DETECTION_BLIND) == "Unknown", 30, "the agent is silent")
    assert world.typed(node).condition(names.DETECTION_BLIND).reason == "AgentSilent"  # type: ignore[union-attr]
    assert world.condition(node, FOREIGN) == "False"
    assert world.condition(node, "Ready") == "True"
    await convert.stop()
    agent.start()
    await eventually(lambda: world.condition(node, names.DETECTION_BLIND) == "False", 30, "the agent is back")


async def foreign_condition(world: World, node: str) -> None:
    condition = {"type": FOREIGN, "status": "False", "reason": "KernelHasNoDeadlock", "message": ""}
    body = {"status": {"conditions": [condition]}}
    await world.admin.patch_strategic(kinds.NODE, node, body, subresource="status")
    await eventually(lambda: world.condition(node, FOREIGN) == "False", 10, "the foreign condition is seen")


async def test_events_of_a_detector_become_the_condition_of_a_fault_type(world: World) -> None:
    (node,) = await world.nodes(1)
    name = f"acme.{world.name}"
    spec = {
        "class": "Node", "severity": "Error", "scope": "Node", "remedy": [], "clearsBy": "silence",
        "match": [{"event": {"source": "disks", "reason": "BadDisk", "count": 3}}], "validation": {"soak": "3s"},
    }  # fmt: skip
    await world.alice.apply(own("FaultType", name, spec))
    await world.start("convert")
    condition = names.condition_type(name)
    await tell(world, node, 2)
    await eventually(lambda: world.condition(node, "Ready") == "True", 10)
    assert world.condition(node, condition) == ""
    await tell(world, node, 3)
    await eventually(lambda: world.condition(node, condition) == "True", 30, "the third Event makes it bad")
    await eventually(lambda: world.condition(node, condition) == "False", 30, "silence ends it")
    await world.alice.kubectl("delete", "faulttype", name)


async def tell(world: World, node: str, count: int) -> None:
    now = rfc3339(world.clock.now())
    body: dict[str, Any] = {
        "metadata": {"name": f"{node}-{count}", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "type": "Warning", "reason": "BadDisk", "message": "bad", "source": {"component": "disks"},
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    }  # fmt: skip
    for number in range(count):
        meta = {**body["metadata"], "name": f"{node}-{count}-{number}"}
        if count == 3 and number < 2:
            continue  # two have been told already
        await world.admin.create(kinds.EVENT, {**body, "metadata": meta}, "default")


async def test_what_a_provider_announces_becomes_an_infra_event_and_a_condition(world: World) -> None:
    (node,) = await world.nodes(1)
    await world.start("convert")
    notice = Notice(source="azure", id=f"{world.name}-1", type="Freeze", phase="Scheduled", node=node)
    world.listings.put(notice)
    await eventually(lambda: world.condition(node, "InfraFreeze") == "True", 30, "it is announced")
    event = await world.admin.get(kinds.INFRA_EVENT, infra_event_name(*notice.key))
    assert (event.spec.node.uid, event.status.phase) == (world.typed(node).uid, "Scheduled")
    world.listings.entries.clear()
    await eventually(lambda: world.condition(node, "InfraFreeze") == "False", 30, "it is no longer listed")
    await world.admin.delete(kinds.INFRA_EVENT, event.metadata.name)
