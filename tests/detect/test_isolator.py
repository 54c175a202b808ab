"""The agent isolates a card on a grant, and on nothing else."""

from __future__ import annotations

import pytest

from sickbay.api import kinds
from sickbay.clock import Clock
from tests.detect.kit import NODE, Machine, agent_on, machine

GRANT = "sickbay.dev/isolate"
XID79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus."


@pytest.fixture
async def host(clock: Clock) -> Machine:
    return await machine(clock)


async def grant(host: Machine, value: str | None) -> None:
    client, _ = host.server.client()
    await client.patch_merge(kinds.NODE.raw, NODE, {"metadata": {"annotations": {GRANT: value}}})


async def test_a_fault_alone_isolates_nothing(host: Machine) -> None:
    async with agent_on(host):
        host.ring.print(XID79)
        await host.clock.sleep(60)
        assert host.condition("NvidiaXID79Error")["status"] == "True"
        assert host.host.acts == []


async def test_cards_follow_the_grant(host: Machine) -> None:
    async with agent_on(host):
        for value, cards in (('["GPU-2"]', {"GPU-2"}), ('["GPU-2","GPU-5"]', {"GPU-2", "GPU-5"}), (None, set())):
            await grant(host, value)
            await host.clock.sleep(5)
            assert host.host.isolated == cards
        assert host.host.acts == ["isolate GPU-2", "isolate GPU-2, GPU-5", "isolate nothing"]
        assert [e["message"] for e in host.events("CardsReturned")] == ["offered again: GPU-2, GPU-5"]


async def test_what_cannot_be_read_is_no_grant(host: Machine) -> None:
    async with agent_on(host):
        await grant(host, "GPU-2")
        await host.clock.sleep(60)
        assert host.host.isolated == frozenset()


async def test_a_grant_that_came_while_the_agent_was_away_is_followed_and_so_is_its_end(host: Machine) -> None:
    await grant(host, '["GPU-2"]')
    async with agent_on(host):
        await host.clock.sleep(5)
        assert host.host.isolated == {"GPU-2"}
    await grant(host, None)
    async with agent_on(host):
        await host.clock.sleep(5)
        assert host.host.isolated == frozenset()


async def test_a_host_that_cannot_is_told_once_and_tried_again(host: Machine) -> None:
    host.host.fails = "no card list is configured"
    async with agent_on(host):
        await grant(host, '["GPU-2"]')
        await host.clock.sleep(600)
        (event,) = host.events("IsolationFailed")
        assert event["message"] == "no card list is configured"
        host.host.fails = ""
        await host.clock.sleep(400)
        assert host.host.isolated == {"GPU-2"}
