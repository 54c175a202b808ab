"""A rack that is repaired as one, in a living world: admitted whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import pytest

from sickbay.clock import Randomness
from sickbay.sim.hand import NODES, POOLS, REPAIRS
from sickbay.sim.invariants import Invariants
from tests.decide import made
from tests.decide.living import REBOOT, living

RACK = "sickbay.dev/rack"
DOMAIN = made.fault_type(
    "test.rack", scope="Domain", domain=RACK, remedy=["RecoverDomain"], clears_by="condition",
    validation={"soak": "20s", "ceiling": "5m"},
)  # fmt: skip


def racks(it, size=4):
    """Put the nodes into racks of so many."""
    for k, name in enumerate(sorted((n["metadata"]["name"] for n in it.world.store.list(NODES)), key=_number)):
        it.admin.merge(NODES, name, {"metadata": {"labels": {RACK: f"rack-{k // size}"}}})


def _number(name):
    return int(name.rpartition("-")[2])


def world(nodes=4, **settings):
    return living(nodes, types=(REBOOT, DOMAIN), start=False, **settings)


def begin(it, replicas=1):
    racks(it)
    it.world.start_components(("decide", "execute"), replicas)


def names(count=4):
    return [f"train-{n}" for n in range(count)]


def _state(repair, step):
    return ((repair.get("status") or {}).get("steps") or {}).get(step, {}).get("state", "")


class Whole:
    """Watches that no part of a group is admitted without the rest."""

    def __init__(self, it):
        self.it, self.broken = it, []
        it.world.store.after_write(self.look)

    def look(self, write):
        if write.resource not in (POOLS, NODES):
            return
        slots = {(s["repair"], s["node"]) for s in self.it.slots("Unavailable")}
        groups = {}
        for r in self.it.world.store.list(REPAIRS):
            group = (r["spec"].get("group") or {}).get("id")
            if group and (r.get("status") or {}).get("phase") not in ("Succeeded", "Cancelled", "Failed", "Cancelling"):
                groups.setdefault(group, []).append(r)
        for group, members in groups.items():
            begun = [r for r in members if self.in_(r, group, slots)]
            fresh = [r for r in members if not _state(r, "Validate")]
            if begun and len(begun) < len(members) and len(fresh) == len(members):
                self.broken.append((write.object, group, [r["spec"]["node"]["name"] for r in begun]))

    def in_(self, repair, group, slots):
        name = repair["spec"]["node"]["name"]
        node = self.it.world.store.find(NODES, name)
        marked = node is None or "sickbay.dev/quarantine" in (node["metadata"].get("annotations") or {})
        return (group, name) in slots or marked


async def test_a_group_waits_until_all_its_members_may_leave_and_then_leaves_as_one():
    async with world(8, maxUnavailable=4, maxParallelRepairs="100%") as it:
        begin(it)
        whole = Whole(it)
        await it.sleep(5)
        it.condition("train-6")
        await it.sleep(5)
        it.condition("train-0", fault="test.rack")
        await it.sleep(30)
        assert it.cordoned("train-6")
        assert not any(it.cordoned(name) for name in names())
        assert it.phase("train-0") == "WaitingSlot"
        it.condition("train-6", "False")
        await it.until(lambda: all(it.cordoned(name) for name in names()), 300)
        assert not it.cordoned("train-6")
        assert whole.broken == []


async def test_a_group_takes_one_repair_slot_under_its_id():
    async with world(maxUnavailable=4, maxParallelRepairs=1) as it:
        begin(it)
        await it.sleep(5)
        it.condition("train-1", fault="test.rack")
        await it.until(lambda: bool(it.acts("train-1")), 60)
        (slot,) = it.slots("Repair")
        assert slot["repair"] == it.repairs("train-3")[0]["spec"]["group"]["id"]


async def test_members_that_no_longer_are_there_are_not_waited_for():
    async with world(maxUnavailable=4) as it:
        begin(it)
        await it.sleep(5)
        it.world.delete_node("train-2", "admin")
        it.condition("train-1", fault="test.rack")
        await it.until(lambda: bool(it.acts("train-1")), 60)
        assert it.repairs("train-1")[0]["spec"]["group"]["members"] == ["train-0", "train-1", "train-3"]


async def test_an_open_repair_in_which_nothing_has_begun_becomes_a_member():
    rule = made.rule(made.procedure(Quarantine={"by": "People"}))
    async with world(rule=rule) as it:
        begin(it)
        await it.sleep(5)
        it.condition("train-2")
        await it.until(lambda: it.phase("train-2") == "WaitingApproval", 30)
        it.condition("train-1", fault="test.rack")
        await it.sleep(10)
        (repair,) = it.repairs("train-2")
        assert repair["spec"]["group"]["leader"] == it.repairs("train-1")[0]["metadata"]["name"]
        assert [f["type"] for f in repair["spec"]["faults"]] == ["test.rack", "test.reboot"]
        asked = [n for n in names() if "intervention.sickbay.dev/quarantine-node" in it.node(n)["metadata"]["labels"]]
        assert asked == ["train-1"], "one question is left"


async def test_a_repair_that_has_begun_is_waited_for():
    async with world() as it:
        begin(it)
        await it.sleep(5)
        it.condition("train-2")
        await it.until(lambda: it.state("train-2", "Repair") == "Running", 60)
        it.condition("train-1", fault="test.rack")
        await it.sleep(20)
        assert not it.cordoned("train-1")
        assert "member train-2" in it.status("train-1")["message"]
        told = [e for e in it.world.store.list("events") if e["reason"] == "QuarantineWaiting"]
        assert len(told) == 1, "people hear of a wait that may last as long as a vendor needs"
        it.condition("train-2", "False")
        await it.until(lambda: all(it.cordoned(name) for name in names()), 600)
        assert [r["spec"].get("group", {}).get("id", "") != "" for r in it.repairs("train-2")] == [False, True]


@pytest.mark.parametrize("again", [True, False], ids=["comes-back", "stays-away"])
async def test_a_member_that_leaves_its_pool_stops_the_whole_group_before_its_next_step(again):
    gated = made.rule(made.procedure(Drain={"by": "People"}))
    async with world(4, rule=gated) as it:
        begin(it)
        it.condition("train-1", fault="test.rack")
        await it.until(lambda: all(it.cordoned(n) for n in names()), 60)
        await it.until(lambda: it.phase("train-1") == "WaitingApproval", 60)
        it.admin.merge(NODES, "train-3", {"metadata": {"labels": {"pool": "spare"}}})
        await it.sleep(60)
        for name in names():
            it.approve(name, "Drain")
        await it.sleep(600)
        assert [it.status(n)["needs"] for n in names()] == ["PoolWithdrawn"] * 4
        assert all("train-3" in it.status(n)["message"] or n == "train-3" for n in names())
        assert [it.acts(n) for n in names()] == [[]] * 4
        assert all(it.cordoned(n) for n in names())
        if not again:
            return
        it.admin.merge(NODES, "train-3", {"metadata": {"labels": {"pool": "train"}}})
        await it.until(lambda: it.phase("train-1") == "WaitingApproval", 120)
        it.approve("train-1", "Drain")
        await it.until(lambda: any("RecoverDomain" in it.acts(n) for n in names()), 300)


async def test_a_node_that_joins_the_rack_later_is_not_taken_down_unasked():
    rule = made.rule(made.procedure(Repair={"by": "People"}))
    async with world(rule=rule) as it:
        begin(it)
        await it.sleep(5)
        it.condition("train-1", fault="test.rack")
        await it.until(lambda: it.phase("train-1") == "WaitingApproval", 60)
        it.world.add_nodes("train", 1)
        it.admin.merge(NODES, "train-4", {"metadata": {"labels": {RACK: "rack-0"}}})
        it.approve("train-1", "Repair")
        await it.sleep(120)
        assert it.acts("train-1") == []
        assert "train-4" in it.status("train-1")["message"]
        it.admin.merge(NODES, "train-4", {"metadata": {"labels": {RACK: "rack-1"}}})
        await it.until(lambda: it.acts("train-1") == ["RecoverDomain"], 120)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 8))])
async def test_caps_hold_and_groups_are_whole_under_everything_at_once(seed):
    """Faults of racks and nodes, two controllers, deaths, people: no part of a group leaves without the rest."""
    lot = Randomness(seed)

    def drawn(words):
        return words[lot.below(len(words))]

    async with world(12, seed=seed, maxUnavailable=5, maxParallelRepairs=2, replicas=2) as it:
        invariants, whole = Invariants(it.world), Whole(it)
        begin(it, replicas=2)
        for _ in range(25):
            await it.sleep(drawn((1, 3, 20, 60)))
            name = f"train-{lot.below(12)}"
            what = drawn(("rack", "rack", "node", "node", "well", "well", "uncordon", "die"))
            if what in ("rack", "node"):
                it.condition(name, fault="test.rack" if what == "rack" else "test.reboot")
            elif what == "well":
                for fault in ("test.rack", "test.reboot"):
                    it.condition(name, "False", fault)
            elif what == "uncordon" and it.cordoned(name):
                it.uncordon(name)
            elif what == "die":
                leading = it.world.leading_process(drawn(("decide", "execute")))
                if leading is not None:
                    leading.crash(5)
        for n in range(12):
            for fault in ("test.rack", "test.reboot"):
                it.condition(f"train-{n}", "False", fault)
        await it.sleep(3600)
        invariants.at_end()
        assert [v.text for v in invariants.violations] == []
        assert whole.broken == []
        assert not [it.told() for n in range(12) if it.phase(f"train-{n}") in ("Running", "WaitingSlot", "Pending")]
