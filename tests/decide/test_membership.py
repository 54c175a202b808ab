"""Which pool a node belongs to is remembered, and never for longer than it is true."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from sickbay.api.core import Node
from sickbay.api.kinds import REPAIR_POOL
from sickbay.api.repair_pool import RepairPool
from sickbay.clock import Randomness, SystemClock
from sickbay.decide.membership import Memberships
from sickbay.decide.slots import owner_and_envelopes
from sickbay.kube.informer import Informer
from tests.kube.scripted import Script, client_for


def pool(name: str, version: int, team: str = "a", rule: str = "r", slots: int = 0) -> RepairPool:
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "resourceVersion": str(version),
                "creationTimestamp": f"2026-01-01T00:00:0{ord(name[0]) % 10}Z",
            },
            "spec": {"nodeSelector": {"matchLabels": {"team": team}}, "rule": rule},
            "status": {"nodes": slots},
        },
        RepairPool,
    )


def node(version: int = 1, team: str = "a") -> Node:
    meta = {"name": "n", "uid": "u", "resourceVersion": str(version), "labels": {"team": team}}
    return msgspec.convert({"metadata": meta}, Node)


@pytest.fixture
def pools() -> Informer[RepairPool]:
    return Informer(client_for(Script()), REPAIR_POOL, SystemClock(), Randomness(1))


def told(found: tuple[RepairPool | None, list[RepairPool]]) -> tuple[str, list[str]]:
    owner, envelopes = found
    return owner.metadata.name if owner else "", [each.metadata.name for each in envelopes]


async def test_a_pools_status_is_that_of_now_and_its_nodes_are_not_looked_for_again(pools: Any) -> None:
    pools.observe_write(pool("x", 1))
    memberships = Memberships(pools)
    assert told(memberships.of(node())) == ("x", [])
    pools.observe_write(pool("x", 2, slots=7))
    owner, _ = memberships.of(node())
    assert owner is not None
    assert owner.status.nodes == 7


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("labels", ("y", ["e"])),
        ("selector", ("y", [])),
        ("rule gone", ("", ["x", "e"])),
        ("pool gone", ("", ["e"])),
        ("older pool", ("d", ["e"])),
    ],
)
async def test_what_moves_a_node_is_noticed_at_once(pools: Any, change: str, expected: Any) -> None:
    for each in (pool("x", 1), pool("y", 2, team="b"), pool("e", 3, rule="")):
        pools.observe_write(each)
    pools.observe_write(pool("e", 4, team="a" if change != "labels" else "b", rule=""))
    memberships = Memberships(pools)
    at = node()
    memberships.of(at)
    match change:
        case "labels":
            at = node(2, "b")
        case "selector":
            pools.observe_write(pool("x", 5, team="c"))
            pools.observe_write(pool("y", 6, team="a"))
            pools.observe_write(pool("e", 7, team="c", rule=""))
        case "rule gone":
            pools.observe_write(pool("x", 5, rule=""))
        case "pool gone":
            pools._tell(pools.store.remove(("", "x")))
        case "older pool":
            pools.observe_write(pool("d", 5))
    assert told(memberships.of(at)) == told(owner_and_envelopes(pools.all(), at))
    assert sorted(told(memberships.of(at))[1]) == sorted(expected[1])
    assert told(memberships.of(at))[0] == expected[0]


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("ab"), st.booleans()), max_size=12))
def test_it_always_says_what_a_fresh_look_says(changes: list[tuple[str, str, bool]]) -> None:
    pools = Informer(client_for(Script()), REPAIR_POOL, SystemClock(), Randomness(1))
    memberships = Memberships(pools)
    for version, (name, team, ruled) in enumerate(changes, 1):
        pools.observe_write(pool(name, version, team, "r" if ruled else ""))
        for at in (node(1, "a"), node(version + 1, "b")):
            assert told(memberships.of(at)) == told(owner_and_envelopes(pools.all(), at))
