"""The grant to isolate cards: the union over the faults of an incident, within caps, as long as they last."""

from __future__ import annotations

import json

import pytest

from sickbay.decide import slots
from tests.decide.made import catalogue, fault_type, node, pool, procedure, rule
from tests.decide.story import Story

CARD = fault_type("test.card", scope="Device", isolateDevice=True, clears_by="condition")
OTHER = fault_type("test.other", scope="Device", isolateDevice=True, clears_by="condition", severity="Error")
GATED = rule(procedure(Quarantine={"by": "People"}))


def devices(**faults):
    return {"sickbay.dev/devices": json.dumps([{"uuid": card, "faults": names} for card, names in faults.items()])}


def story(*names, most=4, faults=("test.card", "test.other"), cards=None, slot=True, **facts):
    """A node with sick cards, at the gate of Quarantine; the slot for an isolation is held."""
    limits = pool(deviceIsolation={"faults": list(faults), "maxDevicesPerNode": most})
    annotations = devices(**(cards or {"GPU1": list(names)}))
    made = Story(*names, pool=limits, rule=GATED, types=(CARD, OTHER), annotations=annotations, **facts)
    if slot:
        made.slots.add(slots.ISOLATE)
        made.look()
    return made


def granted(it):
    return it.repair.spec.plan.isolate


def test_a_sick_card_may_be_isolated_while_the_node_waits_at_its_gate():
    it = story("test.card")
    assert (it.phase, granted(it)) == ("WaitingApproval", ["GPU1"])
    assert not it.node.unschedulable


@pytest.mark.parametrize(
    "why",
    [
        pytest.param({"faults": []}, id="the-pool-does-not-opt-in"),
        pytest.param({"slot": False}, id="no-slot"),
        pytest.param({"observe": True}, id="the-pool-observes"),
        pytest.param({"cards": {"GPU9": ["test.reboot"]}}, id="no-card-is-known"),
    ],
)
def test_nothing_is_granted_without(why):
    assert granted(story("test.card", **why)) == []


def test_a_grant_asks_for_its_slot_and_the_plan_does_not_wait_for_it():
    it = story("test.card", slot=False)
    assert it.look().wants_isolation
    assert it.phase == "WaitingApproval"


def test_a_hold_keeps_new_grants_back_and_leaves_those_that_stand():
    it = story("test.card", slot=False)
    it.hold = "NewRepairs"
    it.slots.add(slots.ISOLATE)
    it.look()
    assert granted(it) == []
    it.hold = ""
    it.look()
    it.hold = "NewRepairs"
    it.look()
    assert granted(it) == ["GPU1"]


@pytest.mark.parametrize("way", ["observe", "unowned"])
def test_a_pool_that_is_taken_away_gives_no_card_out_and_none_back(way):
    it = story("test.card")
    if way == "observe":
        it.observe = True
    else:
        it.unowned, it.pool = "pool train is gone", None
    it.facts["annotations"] |= devices(GPU1=["test.card"], GPU2=["test.card"])
    it.look()
    assert granted(it) == ["GPU1"]
    assert not it.repair.ended
    assert it.label("Quarantine") == ""
    it.fault("test.card", "False")
    assert granted(it) == []


def test_a_type_that_is_deleted_gives_no_card_back():
    it = story("test.card", "test.other", cards={"GPU1": ["test.card"], "GPU2": ["test.other"]})
    assert granted(it) == ["GPU1", "GPU2"]
    it.catalogue = catalogue(CARD)
    it.look()
    assert granted(it) == ["GPU1", "GPU2"]


@pytest.mark.case("P064")
@pytest.mark.case("N16")
def test_each_fault_takes_only_its_own_cards_away_with_it():
    it = story("test.card", "test.other", cards={"GPU1": ["test.card"], "GPU2": ["test.other", "test.card"]})
    assert granted(it) == ["GPU1", "GPU2"]
    it.fault("test.card", "False")
    it.settle()
    assert granted(it) == ["GPU2"]


def test_more_cards_than_a_node_may_lack_take_the_node_out_instead():
    cards = {f"GPU{n}": ["test.card"] for n in range(3)}
    it = story("test.card", most=2, cards=cards)
    assert granted(it) == []
    assert it.repair.spec.plan.step("Quarantine") is not None


def test_the_end_of_a_repair_ends_its_grant():
    it = story("test.card")
    it.deny("Quarantine")
    it.ended("Cancelled", "Denied")
    assert granted(it) == []


@pytest.mark.parametrize(
    ("isolated", "slotted", "admitted"),
    [
        pytest.param([], [], True, id="room"),
        pytest.param(["n2"], [], False, id="full"),
        pytest.param([], ["n2"], False, id="full-with-one-on-its-way"),
        pytest.param(["n1"], [], True, id="the-node-counts-already"),
    ],
)
def test_how_many_nodes_may_have_isolated_cards(isolated, slotted, admitted):
    taken = [{"repair": "r", "node": n, "kind": slots.ISOLATE, "since": "2027-03-01T08:00:00Z"} for n in slotted]
    found = pool(deviceIsolation={"maxNodes": 1}, slots=taken)
    view = slots.PoolView(found, 10, isolated=frozenset(isolated))
    assert (slots.refusal(view, [node("n1")], slots.ISOLATE) == "") is admitted
