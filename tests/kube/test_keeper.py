"""An agent's Lease is renewed through every trouble, and made where it is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sickbay.clock import Clock, Randomness
from sickbay.kube import errors
from sickbay.kube.keeper import LeaseKeeper
from tests.kube.served import Server

RESOURCE, NAME, NAMESPACE = "leases.coordination.k8s.io", "node-1", "sickbay-agents"
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "u1"}


@pytest.fixture
async def server(clock: Clock) -> Server:
    made = Server(clock)
    made.store.create("namespaces", {"metadata": {"name": NAMESPACE}})
    made.store.create("nodes", {"metadata": {"name": "node-1"}})
    return made


@asynccontextmanager
async def kept(keeper: LeaseKeeper) -> AsyncIterator[None]:
    task = asyncio.create_task(keeper.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


def keeper(server: Server) -> tuple[LeaseKeeper, Any]:
    client, cut = server.client()
    made = LeaseKeeper(
        client, server.clock, Randomness(1), name=NAME, namespace=NAMESPACE, identity="agent-1", owner=OWNER
    )
    return made, cut


def spec(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = server.get(RESOURCE, NAME, NAMESPACE)["spec"]
    return found


async def test_the_lease_is_made_and_renewed_every_thirty_seconds(server: Server, clock: Clock) -> None:
    made, _ = keeper(server)
    async with kept(made):
        await clock.sleep(1)
        assert spec(server)["renewTime"] == "2027-03-01T08:00:00.000000Z"
        assert spec(server)["holderIdentity"] == "agent-1"
        assert spec(server)["leaseDurationSeconds"] == 180
        assert server.get(RESOURCE, NAME, NAMESPACE)["metadata"]["ownerReferences"] == [OWNER]
        await clock.sleep(60)
        assert spec(server)["renewTime"] == "2027-03-01T08:01:00.000000Z"
        assert spec(server)["acquireTime"] == "2027-03-01T08:00:00.000000Z"


async def test_a_deleted_lease_is_made_anew(server: Server, clock: Clock) -> None:
    made, _ = keeper(server)
    async with kept(made):
        await clock.sleep(1)
        server.store.delete(RESOURCE, NAME, NAMESPACE)
        await clock.sleep(31)
        assert spec(server)["acquireTime"] == "2027-03-01T08:00:30.000000Z"


async def test_after_an_outage_renewals_go_on_soon(server: Server, clock: Clock) -> None:
    made, cut = keeper(server)
    async with kept(made):
        await clock.sleep(1)
        cut.down = True
        await clock.sleep(300)
        cut.down = False
        back = clock.now()
        await clock.sleep(46)
        assert spec(server)["renewTime"] >= back.strftime("%Y-%m-%dT%H:%M:%S")


async def test_one_renewal_that_fails_tells_its_caller(server: Server) -> None:
    made, cut = keeper(server)
    cut.down = True
    with pytest.raises(errors.Unreachable):
        await made.renew()
