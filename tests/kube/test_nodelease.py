"""The Lease shared by remediators of a node: one holder at a time, and no convention where there is no namespace."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.api.core import Node
from sickbay.api.kinds import LEASE, NODE
from sickbay.clock import Clock, rfc3339_micro
from sickbay.kube import errors
from sickbay.kube.nodelease import Hold, NodeLease, Taken
from tests.kube.served import Server

RESOURCE, NAMESPACE = "leases.coordination.k8s.io", "medik8s-leases"
HELD = Taken(Hold.HELD, "sickbay")


@pytest.fixture
async def server(clock: Clock) -> Server:
    made = Server(clock)
    made.store.create("namespaces", {"metadata": {"name": NAMESPACE}})
    made.store.create("nodes", {"metadata": {"name": "n1"}})
    return made


@pytest.fixture
async def node(server: Server) -> Node:
    return await server.client()[0].get(NODE, "n1")


@pytest.fixture
async def leases(server: Server) -> NodeLease:
    return NodeLease(server.client()[0], server.clock)


def lease(server: Server) -> dict[str, Any] | None:
    return server.store.find(RESOURCE, "node-n1", NAMESPACE)


def held_by(server: Server, holder: str, duration: int = 300) -> None:
    now = rfc3339_micro(server.clock.now())
    spec = {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": now, "leaseTransitions": 4}
    server.store.create(RESOURCE, {"metadata": {"name": "node-n1"}, "spec": spec}, namespace=NAMESPACE)


async def test_a_free_lease_is_made_in_our_name_and_goes_with_its_node(
    server: Server, node: Node, leases: NodeLease
) -> None:
    assert await leases.take(node) == HELD
    made = lease(server)
    assert made is not None
    assert made["spec"]["holderIdentity"] == "sickbay"
    assert made["spec"]["leaseDurationSeconds"] == 3600
    assert made["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node.uid}]


async def test_taking_it_again_renews(server: Server, node: Node, leases: NodeLease, clock: Clock) -> None:
    await leases.take(node)
    first = lease(server)
    await clock.sleep(600)
    assert await leases.take(node) == HELD
    second = lease(server)
    assert first is not None
    assert second is not None
    assert second["spec"]["renewTime"] > first["spec"]["renewTime"]
    assert second["spec"]["acquireTime"] == first["spec"]["acquireTime"]
    assert second["spec"]["leaseTransitions"] == first["spec"]["leaseTransitions"]


async def test_another_leader_of_ours_takes_over_at_once(server: Server, node: Node, leases: NodeLease) -> None:
    await leases.take(node)
    assert await NodeLease(server.client()[0], server.clock).take(node) == HELD


async def test_a_foreign_holder_is_named_and_left_alone(server: Server, node: Node, leases: NodeLease) -> None:
    held_by(server, "node-maintenance")
    before = lease(server)
    taken = await leases.take(node)
    assert taken == Taken(Hold.OTHER, "node-maintenance")
    assert not taken.free_to_act
    assert lease(server) == before


async def test_a_foreign_holder_that_falls_silent_in_our_sight_is_succeeded(
    server: Server, node: Node, leases: NodeLease, clock: Clock
) -> None:
    held_by(server, "node-maintenance", duration=300)
    await clock.sleep(1000)
    assert (await leases.take(node)).hold is Hold.OTHER, "its times may be of a skewed clock: we have only just seen it"
    await clock.sleep(299)
    assert (await leases.take(node)).hold is Hold.OTHER
    await clock.sleep(1)
    assert await leases.take(node) == HELD
    made = lease(server)
    assert made is not None
    assert made["spec"]["leaseTransitions"] == 5


async def test_a_foreign_holder_that_renews_keeps_it(
    server: Server, node: Node, leases: NodeLease, clock: Clock
) -> None:
    held_by(server, "node-maintenance", duration=300)
    client, _ = server.client()
    for _ in range(5):
        assert (await leases.take(node)).hold is Hold.OTHER
        await clock.sleep(200)
        renewed = {"spec": {"renewTime": rfc3339_micro(clock.now())}}
        await client.patch_merge(LEASE, "node-n1", renewed, NAMESPACE)


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": ""}, {"holderIdentity": None}])
async def test_a_lease_without_holder_is_taken(
    server: Server, node: Node, leases: NodeLease, spec: dict[str, Any]
) -> None:
    server.store.create(RESOURCE, {"metadata": {"name": "node-n1"}, "spec": spec}, namespace=NAMESPACE)
    assert await leases.take(node) == HELD


async def test_where_the_namespace_is_missing_the_convention_is_not_in_use(clock: Clock, node: Node) -> None:
    bare = Server(clock)
    leases = NodeLease(bare.client()[0], clock)
    taken = await leases.take(node)
    assert taken == Taken(Hold.UNUSED)
    assert taken.free_to_act
    await leases.release("n1")


async def test_our_lease_is_gone_when_we_are_done(server: Server, node: Node, leases: NodeLease) -> None:
    await leases.take(node)
    await leases.release("n1")
    assert lease(server) is None
    await leases.release("n1")


async def test_a_lease_that_is_anothers_by_now_is_not_released(server: Server, node: Node, leases: NodeLease) -> None:
    await leases.take(node)
    client, _ = server.client()
    await client.patch_merge(LEASE, "node-n1", {"spec": {"holderIdentity": "other"}}, NAMESPACE)
    await leases.release("n1")
    made = lease(server)
    assert made is not None
    assert made["spec"]["holderIdentity"] == "other"


async def test_a_race_for_the_lease_is_lost_in_peace(server: Server, node: Node, leases: NodeLease) -> None:
    held_by(server, "")

    def quicker(write: Any) -> None:
        if write.verb == "patch" and write.user_agent == "sickbay-test":
            server.store.patch(RESOURCE, "node-n1", {"spec": {"holderIdentity": "quicker"}}, namespace=NAMESPACE)

    server.store.before_write(quicker)
    assert (await leases.take(node)).hold is Hold.OTHER


async def test_an_outage_is_told_to_the_caller(server: Server, node: Node) -> None:
    client, cut = server.client()
    cut.down = True
    with pytest.raises(errors.Unreachable):
        await NodeLease(client, server.clock).take(node)
