"""The controller around the decisions: what restarts, conflicts, lost events and changes of the leader do to it."""

from __future__ import annotations

import pytest

from sickbay.sim.hand import NODES, POOLS
from sickbay.sim.process import CrashPlan
from sickbay.sim.wire import Fault, Scope
from tests.decide import made
from tests.decide.living import Living, living

REBOOT_AGAIN = made.fault_type("test.reboot", clears_by="condition")
WATCHES_OF_NODES = Scope(component="decide", verbs=("watch",), object="Node")


async def come_round(it: Living, node: str = "train-0") -> None:
    """The fault of the node is there now, goes with the reboot, and the node comes back."""
    it.condition(node)
    await it.until(lambda: it.acts(node) != [], 300)
    await it.sleep(70)
    it.condition(node, "False")
    await it.until(lambda: it.phase(node) == "Succeeded", 600)


async def test_a_fault_goes_all_the_way_round():
    async with living() as it:
        await it.sleep(5)
        before = it.marks("train-0")
        await come_round(it)
        assert it.marks("train-0") == before
        assert it.acts("train-0") == ["Reboot"]
        assert it.repairs("train-1") == []
        await it.sleep(30)
        assert it.slots("Repair") == it.slots("Validate") == it.slots("Unavailable") == []


# --- crashes


@pytest.mark.case("P091")
@pytest.mark.parametrize("phase", ["before", "lost", "after"])
@pytest.mark.parametrize("write", [1, 3, 5, 8, 12])
async def test_a_restart_at_any_write_changes_nothing(write, phase):
    async with living() as it:
        await it.sleep(5)
        before = it.marks("train-0")
        process = it.world.processes_of("decide", ())[0]
        process.crash_on(CrashPlan(write, phase, restart=20))
        await come_round(it)
        assert process.starts == 2
        assert it.acts("train-0") == ["Reboot"]
        assert len(it.repairs("train-0")) == 1
        assert it.status("train-0")["outcome"] == "Repaired"
        assert it.marks("train-0") == before


@pytest.mark.case("N26")
async def test_what_happened_while_nobody_looked_is_found_in_what_is_there():
    """A fault comes, a fault goes, a node goes, and the server keeps no history of it."""
    gated = made.rule(made.procedure(Drain={"by": "People"}))
    async with living(3, rule=gated) as it:
        await it.sleep(5)
        it.condition("train-1")
        it.condition("train-2")
        await it.until(lambda: it.phase("train-1") == it.phase("train-2") == "WaitingApproval", 60)
        it.world.processes_of("decide", ())[0].crash(restart=600)
        await it.sleep(60)
        it.condition("train-0")
        it.condition("train-1", "False")
        it.world.delete_node("train-2", "admin")
        it.world.compact_history()
        await it.until(lambda: it.phase("train-0") == "WaitingApproval", 700)
        await it.until(lambda: it.phase("train-1") == "Cancelled", 300)
        assert it.status("train-1")["outcome"] == "SelfRecovered"
        await it.until(lambda: it.status("train-2")["outcome"] == "NodeGone", 60)
        assert it.acts("train-0") == it.acts("train-1") == []


# --- lost events


@pytest.mark.case("P077")
@pytest.mark.case("R46")
@pytest.mark.case("N18")
@pytest.mark.parametrize("change", ["comes", "goes"])
async def test_a_fault_whose_event_is_lost_is_found_by_comparison(change):
    gated = made.rule(made.procedure(Drain={"by": "People"}))
    async with living(rule=gated) as it:
        await it.sleep(5)
        if change == "goes":
            it.condition("train-0")
            await it.until(lambda: it.phase("train-0") == "WaitingApproval", 60)
        it.world.add_fault(Fault(loses=True, scope=WATCHES_OF_NODES), 2)
        it.condition("train-0", "True" if change == "comes" else "False")
        if change == "comes":
            await it.until(lambda: it.phase("train-0") != "", 300)
        else:
            await it.until(lambda: it.state("train-0", "Validate") == "Running", 300)


# --- conflicts and a server in trouble


@pytest.mark.case("R40")
async def test_refusals_delay_and_neither_lose_nor_double_a_step():
    async with living(seed=3) as it:
        await it.sleep(5)
        before = it.marks("train-0")
        codes = (409, 429, 500, 503, 504)
        it.world.add_fault(Fault(rate=0.5, codes=codes, scope=Scope(component="decide")), None)
        it.condition("train-0")
        await it.until(lambda: it.acts("train-0") == ["Reboot"], 1800)
        await it.sleep(70)
        it.condition("train-0", "False")
        await it.until(lambda: it.phase("train-0") == "Succeeded", 3600)
        assert it.acts("train-0") == ["Reboot"]
        assert len(it.repairs("train-0")) == 1
        assert it.marks("train-0") == before


@pytest.mark.case("P089")
async def test_what_cannot_be_written_is_not_done():
    async with living() as it:
        await it.sleep(5)
        it.world.add_fault(Fault(rate=1.0, codes=(504,), scope=Scope(component="decide", object="RepairPool")), None)
        it.condition("train-0")
        await it.sleep(900)
        assert not it.cordoned("train-0")
        assert it.acts("train-0") == []


# --- leaders


async def test_another_leader_goes_on_where_the_last_one_stood():
    async with living(replicas=2) as it:
        await it.sleep(20)
        it.condition("train-0")
        for _ in range(4):
            leader = it.world.leading_process("decide")
            assert leader is not None
            leader.pause()
            await it.sleep(40)
            leader.resume()
            await it.sleep(5)
        await it.until(lambda: it.acts("train-0") == ["Reboot"], 120)
        await it.sleep(70)
        it.condition("train-0", "False")
        await it.until(lambda: it.phase("train-0") == "Succeeded", 300)
        assert it.acts("train-0") == ["Reboot"]
        assert len(it.repairs("train-0")) == 1


@pytest.mark.parametrize(
    ("limits", "envelope", "cap"),
    [
        pytest.param({"maxUnavailable": 2}, None, 2, id="the-pool's-own-cap"),
        pytest.param({}, {"maxUnavailable": 1}, 1, id="an-envelope's-cap"),
    ],
)
@pytest.mark.case("P188")
async def test_no_two_controllers_exceed_a_cap_between_them(limits, envelope, cap):
    """The leaders are paused, robbed and crashed all the time, while five nodes are sick."""
    envelopes = [made.pool("site", rule=None, **{**WIDE_ENVELOPE, **envelope})] if envelope else []
    async with living(5, replicas=2, seed=1, envelopes=envelopes, **limits) as it:
        most = Most(it)
        await it.sleep(20)
        for n in range(5):
            it.condition(f"train-{n}")
        for turn in range(6):
            leader = it.world.leading_process("decide")
            if leader is not None and turn % 3 == 0:
                leader.pause()
                it.world.loop.call_later(30, leader.resume)
            elif leader is not None and turn % 3 == 1:
                leader.crash(restart=3)
            else:
                it.world.steal_lease("decide")
            await it.sleep(25)
            for n in range(5):
                if it.acts(f"train-{n}"):
                    it.condition(f"train-{n}", "False")
        assert most.cordoned == cap, "never more, and as many as there may be"


WIDE_ENVELOPE = {"breaker": {"threshold": "100%", "maxNodes": 100000}, "storm": {"nodes": 0}}
WIDE_ENVELOPE |= {"maxParallelRepairs": "100%", "maxParallelValidations": "100%", "maxUnavailable": "100%"}


async def test_a_slot_that_somebody_took_just_before_our_write_is_seen_by_it():
    """A controller that has lost its lease without knowing has the other half of the race."""
    async with living(maxUnavailable=1) as it:
        await it.sleep(5)
        times, seen = [], []
        other = {"repair": "other", "node": "train-1", "kind": "Unavailable", "since": "2027-03-01T08:00:05Z"}

        def meanwhile(request):
            wanted = (request.component, request.resource) == ("decide", "repairpools")
            if wanted and it.world.loop.time() >= 5 and len(times) < 3:
                times.append(it.world.loop.time())
                it.admin.merge(POOLS, "train", {"status": {"slots": [other], "unavailable": len(times)}}, "", "status")

        def after(write):
            if times and write.resource == POOLS and it.world.loop.time() < times[-1] + 10:
                seen.append([s["repair"] for s in it.slots("Unavailable")])

        it.world.weather.before.append(meanwhile)
        it.world.store.after_write(after)
        it.condition("train-0")
        await it.until(lambda: it.cordoned("train-0"), 120)
        assert len(times) == 3
        assert seen
        assert all(repairs == ["other"] for repairs in seen), "neither overwritten nor joined by ours"


class Most:
    """The most nodes that were cordoned at one time."""

    def __init__(self, it: Living) -> None:
        self.cordoned = 0
        self._it = it
        it.world.store.after_write(self._look)

    def _look(self, write) -> None:
        if write.resource == NODES:
            cordoned = [n for n in self._it.world.store.list(NODES) if n["spec"].get("unschedulable")]
            self.cordoned = max(self.cordoned, len(cordoned))


@pytest.mark.case("P188")
async def test_slots_are_given_to_the_most_needy_and_the_others_wait_and_say_so():
    types = (
        made.fault_type("test.reboot", clears_by="condition"),
        made.fault_type("test.worse", class_="Node", clears_by="condition"),
    )
    gated = made.rule(made.procedure(Drain={"by": "People"}))
    async with living(3, rule=gated, types=types, maxUnavailable=1) as it:
        await it.sleep(5)
        it.condition("train-0")
        await it.until(lambda: it.cordoned("train-0"), 30)
        it.condition("train-1")
        await it.sleep(30)
        it.condition("train-2", fault="test.worse")
        await it.sleep(30)
        status = it.status("train-1")
        assert (status["phase"], status["current"]["waitsFor"]) == ("WaitingSlot", "Slot")
        assert status["conditions"][0]["type"] == "WouldQuarantine"
        assert "1 of at most 1 nodes" in status["message"]
        it.condition("train-0", "False")
        await it.until(lambda: it.cordoned("train-2"), 400)
        assert not it.cordoned("train-1")
        assert not it.cordoned("train-0")


async def test_a_full_envelope_elsewhere_holds_up_nobody_who_is_not_in_it():
    """train-0 is worse, but its own envelope is full: train-1 need not wait for it."""
    types = (
        made.fault_type("test.reboot", clears_by="condition"),
        made.fault_type("test.worse", class_="Node", clears_by="condition"),
    )
    small = {"nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "train-0"}}, "maxUnavailable": 0}
    envelope = made.pool("one", rule=None, **{**WIDE_ENVELOPE, **small})
    async with living(3, types=types, envelopes=[envelope], maxUnavailable=1) as it:
        await it.sleep(5)
        it.condition("train-0", fault="test.worse")
        await it.until(lambda: it.phase("train-0") == "WaitingSlot", 30)
        it.condition("train-1")
        await it.until(lambda: it.cordoned("train-1"), 60)
        assert not it.cordoned("train-0")


async def test_a_slot_that_another_pool_refuses_is_not_taken_and_given_back_again_and_again():
    """The envelope sorts behind the pool: its own pool would have had room for both."""
    envelope = made.pool("zone", rule=None, **{**WIDE_ENVELOPE, "maxUnavailable": 1})
    async with living(3, envelopes=[envelope]) as it:
        await it.sleep(5)
        for node in ("train-0", "train-1", "train-2"):
            it.condition(node)
        await it.until(lambda: any(it.cordoned(node) for node in ("train-0", "train-1", "train-2")), 60)
        await it.sleep(30)
        assert it.written().count("RepairPool/train") < 20


# --- a person's word


@pytest.mark.case("P082")
async def test_a_cancel_is_remembered_until_the_fault_has_cleared():
    async with living() as it:
        await it.sleep(5)
        it.condition("train-0")
        await it.until(lambda: it.cordoned("train-0"), 30)
        it.uncordon("train-0")
        await it.until(lambda: it.phase("train-0") == "Cancelled", 60)
        before = it.marks("train-0")
        for status in ("Unknown", "True", "Unknown", "True"):
            await it.sleep(120)
            it.condition("train-0", status)
        await it.sleep(300)
        assert len(it.repairs("train-0")) == 1
        assert it.marks("train-0") == before
        it.condition("train-0", "False")
        await it.sleep(30)
        it.condition("train-0")
        await it.until(lambda: len(it.repairs("train-0")) == 2, 60)


async def test_a_cancel_is_remembered_by_whoever_leads_next():
    async with living() as it:
        await it.sleep(5)
        it.condition("train-0")
        await it.until(lambda: it.cordoned("train-0"), 30)
        it.uncordon("train-0")
        await it.until(lambda: it.phase("train-0") == "Cancelled", 60)
        for _ in range(3):
            it.world.processes_of("decide", ())[0].crash(restart=10)
            await it.sleep(200)
        assert len(it.repairs("train-0")) == 1
        assert not it.cordoned("train-0")


@pytest.mark.parametrize("fault", [False, True], ids=["no-fault", "a-fault-rides-along"])
async def test_a_repair_that_was_opened_by_hand_and_deleted_comes_to_its_end(fault):
    async with living() as it:
        await it.sleep(5)
        plan = {"steps": [{"step": "Repair", "action": "RebootNode"}]}
        spec = {"origin": "Manual", "node": {"name": "train-0"}, "plan": plan}
        it.admin.create("noderepairs.sickbay.dev", {"metadata": {"name": "by-hand"}, "spec": spec})
        await it.until(lambda: it.cordoned("train-0"), 30)
        if fault:
            it.condition("train-0")
            await it.sleep(10)
        it.admin.delete("noderepairs.sickbay.dev", "by-hand")
        await it.sleep(60)
        left = [o for o in it.repairs("train-0") if not (o.get("status") or {}).get("endedAt")]
        assert left == []
        assert not it.cordoned("train-0")


@pytest.mark.parametrize("crash", [False, True], ids=["steady", "restarted-in-between"])
@pytest.mark.parametrize("gates", [{"Drain": {"by": "People"}}, {}], ids=["waiting", "rebooting"])
async def test_a_deleted_record_leaves_the_persons_word_behind(gates, crash):
    async with living(rule=made.rule(made.procedure(**gates))) as it:
        await it.sleep(5)
        before = it.marks("train-0")
        it.condition("train-0")
        await it.until(lambda: it.phase("train-0") == "WaitingApproval" if gates else it.acts("train-0") != [], 30)
        acts = it.acts("train-0")
        name = it.repairs("train-0")[0]["metadata"]["name"]
        if crash:
            it.world.processes_of("decide", ())[0].crash_on(CrashPlan(3, "after", restart=20))
        it.admin.delete("noderepairs.sickbay.dev", name)
        await it.until(lambda: name not in [r["metadata"]["name"] for r in it.repairs("train-0")], 120)
        await it.sleep(200)
        (kept,) = it.repairs("train-0")
        assert (kept["status"]["phase"], kept["status"]["outcome"]) == ("Cancelled", "CancelledByPerson")
        assert name in kept["spec"]["plan"]["reason"]
        assert it.marks("train-0") == before
        assert it.acts("train-0") == acts


@pytest.mark.case("R11")
async def test_a_stronger_fault_that_joins_is_no_way_around_the_budget():
    types = (made.fault_type("test.reset", remedy=["ResetGPU"], clears_by="condition", severity="Error"), REBOOT_AGAIN)
    gated = made.rule(made.procedure(Drain={"by": "People"}))
    spent = {"perNode": {"repairs": 0}, "then": "NeedsHuman"}
    async with living(rule=gated, types=types, budgets=spent) as it:
        await it.sleep(5)
        it.condition("train-0", fault="test.reset")
        await it.until(lambda: it.phase("train-0") == "WaitingApproval", 30)
        it.condition("train-0")
        await it.sleep(10)
        it.approve("train-0", "Drain")
        await it.until(lambda: it.status("train-0").get("needs") == "BudgetSpent", 120)
        assert it.acts("train-0") == []
        assert it.cordoned("train-0")


# --- what is configured changes


@pytest.mark.parametrize("what", ["pool", "rule", "type"])
async def test_an_open_repair_is_carried_to_its_end_by_what_it_carries(what):
    """Pool, rule or fault type is deleted in mid-repair: nothing is taken for gone, and the way back stays free."""
    resource = {"pool": POOLS, "rule": "repairrules.sickbay.dev", "type": "faulttypes.sickbay.dev"}[what]
    name = {"pool": "train", "rule": "standard", "type": "test.reboot"}[what]
    async with living() as it:
        await it.sleep(5)
        it.condition("train-0")
        await it.until(lambda: it.acts("train-0") == ["Reboot"], 120)
        it.admin.delete(resource, name)
        await it.sleep(70)
        if what == "type":
            assert it.state("train-0", "Validate") == "Running"
            it.admin.create(resource, dict(REBOOT_AGAIN))
        it.condition("train-0", "False")
        await it.until(lambda: it.phase("train-0") == "Succeeded", 600)
        assert not it.cordoned("train-0")


async def test_a_pool_that_is_gone_lets_nothing_start():
    gated = made.rule(made.procedure(Drain={"by": "People"}))
    async with living(rule=gated) as it:
        await it.sleep(5)
        it.condition("train-0")
        await it.until(lambda: it.phase("train-0") == "WaitingApproval", 60)
        it.admin.delete(POOLS, "train")
        it.approve("train-0", "Drain")
        await it.sleep(120)
        assert it.state("train-0", "Drain") == "Waiting"
        assert it.cordoned("train-0"), "that its pool is gone does not make the fault go"
        it.condition("train-0", "False")
        await it.until(lambda: it.phase("train-0") == "Cancelled", 600)
        assert not it.cordoned("train-0")


@pytest.mark.case("N21")
async def test_observe_writes_nothing_but_its_record():
    async with living(2, mode="Observe") as it:
        await it.sleep(5)
        before = it.marks("train-0")
        it.condition("train-0")
        await it.until(lambda: it.phase("train-0") == "WouldAct", 30)
        await it.sleep(300)
        ours = [w for w in it.world.journal.writes if w.object.split("/")[0] in ("Node", "Pod")]
        assert ours == []
        assert it.marks("train-0") == before
        assert it.acts("train-0") == []
        it.condition("train-0", "False")
        await it.until(lambda: it.status("train-0").get("outcome") == "Observed", 60)


@pytest.mark.case("R06")
async def test_a_cordon_that_is_not_ours_is_never_touched():
    async with living() as it:
        await it.sleep(5)
        it.admin.merge(NODES, "train-0", {"spec": {"unschedulable": True}})
        await it.sleep(600)
        it.world.processes_of("decide", ())[0].crash(restart=5)
        await it.sleep(600)
        assert it.cordoned("train-0")
        assert [w for w in it.world.journal.writes if w.object == "Node/train-0"] == []


# --- writes


async def test_a_repair_that_waits_is_not_written_again_and_again():
    gated = made.rule(made.procedure(Drain={"by": "People"}))
    async with living(rule=gated) as it:
        await it.sleep(5)
        it.condition("train-0")
        await it.until(lambda: it.phase("train-0") == "WaitingApproval", 60)
        await it.sleep(60)
        before = it.written()
        await it.sleep(1200)
        assert it.written() == before
