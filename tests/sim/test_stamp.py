"""The stamp on Nodes: who changed what we keep there, in the words of the admission policy."""

from __future__ import annotations

import json

import pytest

from sickbay.api.names import CHANGED_BY, INQUIRY, QUARANTINE
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import NODES, Hand
from sickbay.sim.history import CONTROLLER
from tests.support.simworld import running_world

LABEL = "intervention.sickbay.dev/drain-node"


def stamp(world):
    text = (world.node("train-0")["metadata"].get("annotations") or {}).get(CHANGED_BY)
    return json.loads(text) if text else None


async def marked(world, **annotations):
    ours = Hand(world.store, CONTROLLER, "sickbay-execute")
    meta = {"annotations": {QUARANTINE: "{}", **annotations}, "labels": {LABEL: "inquiring"}}
    ours.merge(NODES, "train-0", {"metadata": meta, "spec": {"unschedulable": True}})


@pytest.mark.parametrize(
    ("patch", "what"),
    [
        pytest.param({"spec": {"unschedulable": None}}, "unschedulable", id="uncordon"),
        pytest.param({"metadata": {"annotations": {QUARANTINE: None}}}, QUARANTINE, id="mark removed"),
        pytest.param({"metadata": {"labels": {LABEL: "approved"}}}, LABEL, id="approval"),
        pytest.param(
            {"spec": {"unschedulable": None, "taints": [{"key": QUARANTINE, "effect": "NoSchedule"}]}},
            "unschedulable,taint",
            id="two things",
        ),
    ],
)
async def test_a_persons_change_to_what_is_ours_is_stamped_in_the_same_write(patch, what):
    async with running_world(PoolSpec("train", nodes=1)) as world:
        await marked(world)
        writes = []
        world.store.after_write(lambda write: writes.append(write.user))
        world.person("alice").merge(NODES, "train-0", patch)
        assert writes == ["alice"]
        assert stamp(world) == {"user": "alice", "what": what}


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"metadata": {"labels": {"team": "x"}}}, id="what is not ours"),
        pytest.param({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, id="another taint"),
    ],
)
async def test_what_is_not_ours_is_not_stamped(patch):
    async with running_world(PoolSpec("train", nodes=1)) as world:
        await marked(world)
        world.person("alice").merge(NODES, "train-0", patch)
        assert stamp(world) is None


async def test_a_node_without_a_mark_of_ours_is_never_stamped():
    async with running_world(PoolSpec("train", nodes=1)) as world:
        world.person("alice").merge(NODES, "train-0", {"spec": {"unschedulable": True}})
        assert stamp(world) is None


async def test_an_open_question_is_a_mark():
    async with running_world(PoolSpec("train", nodes=1)) as world:
        world.person("admin").merge(NODES, "train-0", {"metadata": {"annotations": {INQUIRY: "{}"}}})
        world.person("alice").merge(NODES, "train-0", {"metadata": {"labels": {LABEL: "denied"}}})
        assert stamp(world) == {"user": "alice", "what": LABEL}
