"""No store can stop a repair: messages and metrics that find no taker degrade reporting, and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sickbay.notify.channels import NotDelivered
from sickbay.sim.builders import _Recorded
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import FAULT_TYPES, NODES, POOLS, REPAIRS, RULES
from sickbay.sim.world import World
from tests.support.simworld import running_world

FAULT = {
    "class": "Node",
    "severity": "Critical",
    "scope": "Node",
    "match": [{"condition": {"type": "Wobbles", "status": "True"}}],
    "remedy": [{"action": "RebootNode"}],
    "clearsBy": "reboot",
}


def furnish(world: World) -> None:
    admin = world.person("admin")
    steps = [{"step": step} for step in ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")]
    admin.create(RULES, {"metadata": {"name": "all"}, "spec": {"rules": [{"name": "all", "procedure": steps}]}})
    pool = {"nodeSelector": {"matchLabels": {"pool": "train"}}, "mode": "Act", "rule": "all", "maxUnavailable": "100%"}
    admin.create(POOLS, {"metadata": {"name": "train"}, "spec": {**pool, "provider": {"name": "fake"}}})
    admin.create(FAULT_TYPES, {"metadata": {"name": "lab.wobbles"}, "spec": FAULT})


def refuses(clock: Any) -> Callable[..., Awaitable[None]]:
    async def send(*_: Any) -> None:
        raise NotDelivered("the service is down")

    return send


def hangs(clock: Any) -> Callable[..., Awaitable[None]]:
    async def send(*_: Any) -> None:
        await clock().sleep(60)
        raise NotDelivered("no answer")

    return send


@pytest.mark.case("N28")
@pytest.mark.parametrize("trouble", [refuses, hangs])
async def test_a_repair_goes_all_the_way_though_nobody_can_be_told(
    monkeypatch: pytest.MonkeyPatch, trouble: Callable[..., Any]
) -> None:
    holder: list[World] = []
    monkeypatch.setattr(_Recorded, "send", trouble(lambda: holder[0].clock))
    async with running_world(PoolSpec("train", nodes=20), prepare=furnish) as world:
        holder.append(world)
        world.start_components(("decide", "execute", "notify"))
        await world.clock.sleep(30)
        world.set_condition("train-3", "npd", {"type": "Wobbles", "status": "True"})
        await world.clock.sleep(120)
        world.set_condition("train-3", "npd", {"type": "Wobbles", "status": "False"})
        await world.clock.sleep(1800)
        (repair,) = world.store.list(REPAIRS)
        assert repair["status"]["outcome"] == "Repaired"
        assert not world.store.get(NODES, "train-3")["spec"].get("unschedulable")
        assert world.journal.messages == []
        # The reporting says that it is degraded, and what waits is found again in the object: nothing piles up.
        assert world.staff.metric("sickbay_messages_failed_total", {"channel": "recorded"}) > 0
        assert world.staff.metric("sickbay_queue_depth", {"queue": "notify"}) <= 1


@pytest.mark.case("N28")
async def test_what_could_not_be_told_is_told_when_the_channel_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    working = _Recorded.send
    monkeypatch.setattr(_Recorded, "send", refuses(None))
    async with running_world(PoolSpec("train", nodes=2), prepare=furnish) as world:
        world.start_components(("decide", "execute", "notify"))
        await world.clock.sleep(30)
        world.set_condition("train-1", "npd", {"type": "Wobbles", "status": "True"})
        await world.clock.sleep(300)
        assert world.journal.messages == []
        monkeypatch.setattr(_Recorded, "send", working)
        await world.clock.sleep(120)
        assert any("train-1" in message.text for message in world.journal.messages)
