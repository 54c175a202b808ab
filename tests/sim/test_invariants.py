"""The invariants notice each breach. Here nobody keeps the rules: the writes are made by hand, in our name."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import pytest

from sickbay.api import names
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import BUDGETS, HOLDS, NODES, PODS, POOLS, REPAIRS, Hand
from sickbay.sim.history import CONTROLLER
from sickbay.sim.invariants import Invariants
from tests.support.simworld import pod, running_world

APPROVAL = "intervention.sickbay.dev/drain-node"
GATE = {"by": "People", "timeout": "24h"}


class Rogue:
    """Writes in the name of our controllers whatever it likes."""

    def __init__(self, world) -> None:
        self.world, self.invariants = world, Invariants(world)
        self.hand = Hand(world.store, CONTROLLER, "sickbay-execute")
        self.person = world.person("admin")

    def pool(self, **spec):
        body = {"nodeSelector": {"matchLabels": {"pool": "train"}}, "mode": "Act", "rule": "r", **spec}
        self.person.create(POOLS, {"metadata": {"name": "train"}, "spec": body})

    def open(self, node="train-0", number=1, steps=(), **status):
        """A NodeRepair with its status; returns its UID."""
        name = f"{node}-{number}"
        uid = self.world.node(node)["metadata"]["uid"]
        plan = {"steps": [{"step": "Drain", "approval": GATE} if s == "gated" else {"step": s} for s in steps]}
        spec = {"node": {"name": node, "uid": uid}, "pool": {"name": "train"}, "plan": plan}
        made = self.hand.create(REPAIRS, {"metadata": {"name": name}, "spec": spec})
        self.status(name, **status)
        return made["metadata"]["uid"]

    def status(self, name="train-0-1", **status):
        self.hand.merge(REPAIRS, name, {"status": status}, subresource="status")

    def quarantine(self, uid, node="train-0", prior=False):
        mark = {"repair": f"{node}-1", "uid": uid, "prior": {"unschedulable": prior}}
        meta = {"annotations": {names.QUARANTINE: json.dumps(mark)}}
        self.hand.merge(NODES, node, {"metadata": meta, "spec": {"unschedulable": True}})

    def release(self, node="train-0"):
        meta = {"annotations": {names.QUARANTINE: None, names.CHANGED_BY: None}}
        self.hand.merge(NODES, node, {"metadata": meta, "spec": {"unschedulable": None}})

    def ask(self, uid, attempt=1):
        inquiry = {"repair": "train-0-1", "uid": uid, "step": "Drain", "attempt": attempt}
        meta = {"labels": {APPROVAL: "inquiring"}, "annotations": {names.INQUIRY: json.dumps(inquiry)}}
        self.hand.merge(NODES, "train-0", {"metadata": meta})

    def answer(self, word="approved", by=None):
        (by or self.person).merge(NODES, "train-0", {"metadata": {"labels": {APPROVAL: word}}})

    def slot(self, kind, node="train-0", others=()):
        """Give the repair of a node a slot, beside those of others (node, kind)."""
        held = [(node, kind), *others]
        slots = [{"repair": f"{n}-1", "node": n, "kind": k, "since": "2027-03-01T08:00:00Z"} for n, k in held]
        self.hand.merge(POOLS, "train", {"status": {"slots": slots}}, subresource="status")

    def claim(self, attempt=1, name="train-0-1"):
        """Repair runs, and its attempt is claimed."""
        report = {"state": "Claimed", "attempt": attempt, "planGeneration": 1, "term": 1}
        self.status(name, steps={"Repair": {"state": "Running", "report": report}})

    def hold(self, level, **scope):
        self.person.create(
            HOLDS, {"metadata": {"name": "h"}, "spec": {"scope": scope or {"all": True}, "level": level}}
        )

    @property
    def broken(self):
        return [violation.text for violation in self.invariants.violations]


@asynccontextmanager
async def rogue(nodes=4):
    async with running_world(PoolSpec("train", nodes=nodes)) as world:
        await world.clock.sleep(1)
        yield Rogue(world)


RUNNING = {"phase": "Running", "current": {"step": "Drain", "attempt": 1, "deadline": "2027-03-01T09:00:00Z"}}


async def test_a_clean_life_breaks_nothing():
    async with rogue() as r:
        r.pool(maxUnavailable=1)
        uid = r.open(steps=("Quarantine", "gated", "Repair", "Validate"), **RUNNING)
        r.slot("Unavailable")
        r.quarantine(uid)
        r.ask(uid)
        r.answer()
        r.slot("Repair")
        r.status(steps={"Drain": {"state": "Running"}})
        r.status(steps={"Drain": {"state": "Done"}})
        r.claim()
        r.world.journal.act("Reboot", "train-0", key=f"{uid}/Repair/1")
        r.hand.merge(NODES, "train-0", {"metadata": {"labels": {APPROVAL: None}, "annotations": {names.INQUIRY: None}}})
        r.status(steps={"Repair": {"state": "Done"}, "Validate": {"state": "Done"}})
        r.release()
        r.status(phase="Succeeded", outcome="Repaired")
        await r.world.clock.sleep(1)
        assert r.broken == []


@pytest.mark.parametrize(
    ("ask", "answer", "attempt", "broken"),
    [
        pytest.param(False, True, 1, True, id="never asked"),
        pytest.param(True, False, 1, True, id="not answered"),
        pytest.param(True, True, 2, True, id="answered for another attempt"),
        pytest.param(True, True, 1, False, id="answered"),
    ],
)
async def test_a_gated_step_needs_its_own_approval(ask, answer, attempt, broken):
    async with rogue() as r:
        uid = r.open(steps=("gated",), **RUNNING)
        if ask:
            r.ask(uid, attempt)
        if answer:
            r.answer()
        r.status(steps={"Drain": {"state": "Running"}})
        assert any("without its own approval" in text for text in r.broken) is broken


async def test_our_own_hand_cannot_approve():
    async with rogue() as r:
        uid = r.open(steps=("gated",), **RUNNING)
        r.ask(uid)
        r.answer(by=r.hand)
        r.status(steps={"Drain": {"state": "Running"}})
        assert any("without its own approval" in text for text in r.broken)


async def test_an_approval_does_not_count_for_the_next_incident():
    async with rogue() as r:
        first = r.open(steps=("gated",), **RUNNING)
        r.ask(first)
        r.answer()
        r.status(phase="Cancelled", outcome="SelfRecovered")
        r.open(number=2, steps=("gated",), **RUNNING)
        r.status("train-0-2", steps={"Drain": {"state": "Running"}})
        assert any("train-0-2: Drain (attempt 1) began without" in text for text in r.broken)


@pytest.mark.parametrize(
    ("begun", "validated", "uncordoned", "broken"),
    [
        pytest.param(True, False, False, True, id="repaired and not validated"),
        pytest.param(True, True, False, False, id="validated"),
        pytest.param(True, False, True, False, id="a person took it back"),
        pytest.param(False, False, False, False, id="rolled back before Repair"),
    ],
)
async def test_a_node_returns_only_after_a_passed_validation(begun, validated, uncordoned, broken):
    async with rogue() as r:
        uid = r.open(steps=("Quarantine", "Repair", "Validate"), **RUNNING)
        r.quarantine(uid)
        if begun:
            r.status(steps={"Repair": {"state": "Running"}})
        if validated:
            r.status(steps={"Validate": {"state": "Done"}})
        if uncordoned:
            r.person.merge(NODES, "train-0", {"spec": {"unschedulable": None}})
        r.release()
        assert any("without a passed validation" in text for text in r.broken) is broken


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        pytest.param({"spec": {"taints": None}}, "removed the foreign taint k:NoSchedule", id="taint removed"),
        pytest.param(
            {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "z", "effect": "NoExecute"}]}},
            "added the taint z:NoExecute, which is not ours",
            id="taint added",
        ),
        pytest.param({"metadata": {"labels": {"team": "mine"}}}, "touched the foreign label team", id="label"),
        pytest.param({"metadata": {"annotations": {"note": None}}}, "touched the foreign annotation note", id="note"),
        pytest.param({"spec": {"unschedulable": None}}, "lifted a cordon that is not ours", id="cordon"),
    ],
)
async def test_what_is_foreign_is_not_touched(patch, told):
    async with rogue() as r:
        meta = {"labels": {"team": "x"}, "annotations": {"note": "y"}}
        spec = {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}
        r.person.merge(NODES, "train-0", {"metadata": meta, "spec": spec})
        r.hand.merge(NODES, "train-0", patch)
        assert any(told in text for text in r.broken)


async def test_a_cordon_that_was_there_before_us_is_not_lifted():
    async with rogue() as r:
        r.person.merge(NODES, "train-0", {"spec": {"unschedulable": True}})
        uid = r.open(**RUNNING)
        r.quarantine(uid, prior=True)
        r.release()
        assert any("lifted a cordon that is not ours" in text for text in r.broken)


@pytest.mark.parametrize(("limit", "broken"), [(1, True), (2, False), ("25%", True), ("50%", False)])
async def test_no_more_nodes_are_out_of_service_than_the_pool_allows(limit, broken):
    async with rogue() as r:
        r.pool(maxUnavailable=limit)
        uid = r.open("train-0", **RUNNING)
        r.slot("Unavailable")
        r.quarantine(uid)
        r.open("train-1", **RUNNING)
        r.slot("Unavailable", "train-1")
        assert any("nodes out of service, maxUnavailable is" in text for text in r.broken) is broken


async def test_a_node_that_offers_nothing_may_be_closed_beyond_the_limit():
    async with rogue() as r:
        r.pool(maxUnavailable=1)
        r.person.merge(NODES, "train-1", {"spec": {"unschedulable": True}})
        r.world.machine("train-0").set_service("containerd", "hung")
        await r.world.clock.sleep(1)
        r.quarantine(r.open(**RUNNING))
        assert r.broken == []


@pytest.mark.parametrize(("limit", "broken"), [(1, True), (2, False)])
async def test_no_more_repairs_run_in_parallel_than_the_pool_allows(limit, broken):
    async with rogue() as r:
        r.pool(maxParallelRepairs=limit)
        for node in ("train-0", "train-1"):
            r.open(node, **RUNNING)
            r.status(f"{node}-1", steps={"Drain": {"state": "Running"}})
        assert any("2 repairs in parallel" in text for text in r.broken) is broken


async def test_nothing_starts_while_the_breaker_is_open():
    async with rogue() as r:
        r.pool()
        closed = {"breaker": {"state": "Open", "openedAt": "2027-03-01T08:00:00Z"}, "slots": []}
        slot = {"repair": "train-0-1", "node": "train-0", "since": "2027-03-01T08:00:00Z"}
        r.hand.merge(POOLS, "train", {"status": closed}, subresource="status")
        r.hand.merge(POOLS, "train", {"status": {"slots": [{**slot, "kind": "Validate"}]}}, subresource="status")
        assert r.broken == []
        r.hand.merge(POOLS, "train", {"status": {"slots": [{**slot, "kind": "Unavailable"}]}}, subresource="status")
        assert r.broken == ["pool train: train-0-1 started while the breaker is open"]


async def test_nobody_closes_a_node_or_begins_a_step_without_a_slot():
    async with rogue() as r:
        r.pool()
        r.quarantine(r.open(**RUNNING))
        r.status(steps={"Drain": {"state": "Running"}})
        assert r.broken == [
            "node train-0 was closed without a slot in pool train",
            "train-0-1: Drain began without a Repair slot in pool train",
        ]


async def test_an_envelope_has_to_agree_too():
    async with rogue() as r:
        r.pool()
        site = {"nodeSelector": {"matchLabels": {"pool": "train"}}}
        r.person.create(POOLS, {"metadata": {"name": "site"}, "spec": site})
        r.open(**RUNNING)
        r.slot("Repair")
        r.status(steps={"Drain": {"state": "Running"}})
        assert r.broken == ["train-0-1: Drain began without a Repair slot in pool site"]


@pytest.mark.parametrize(
    ("kind", "limits", "told"),
    [
        ("Repair", {"maxParallelRepairs": 1}, "2 Repair slots are given, maxParallelRepairs is 1"),
        ("Validate", {"maxParallelValidations": 1}, "2 Validate slots are given, maxParallelValidations is 1"),
        ("Unavailable", {"maxUnavailable": 1}, "2 nodes out of service, maxUnavailable is 1"),
    ],
)
async def test_no_more_slots_are_given_than_there_are(kind, limits, told):
    async with rogue() as r:
        r.pool(**limits)
        r.slot(kind)
        assert r.broken == []
        r.slot(kind, others=[("train-1", kind)])
        assert r.broken == [f"pool train: {told}"]


@pytest.mark.parametrize(
    ("after", "reset", "annotated", "broken"),
    [
        pytest.param(10, "Auto", "", True, id="too early"),
        pytest.param(1000, "Auto", "", False, id="after its cooldown"),
        pytest.param(1000, "Manual", "", True, id="by itself, though only people may"),
        pytest.param(10, "Manual", "2027-03-01T08:00:01Z", False, id="by a person"),
        pytest.param(10, "Auto", "2027-02-01T08:00:01Z", True, id="by an old reset"),
    ],
)
async def test_a_breaker_closes_in_time_or_by_a_word_that_names_its_moment(after, reset, annotated, broken):
    async with rogue() as r:
        r.pool(breaker={"cooldown": "15m", "reset": reset})
        opened = {"state": "Open", "openedAt": "2027-03-01T08:00:01Z"}
        r.hand.merge(POOLS, "train", {"status": {"breaker": opened}}, subresource="status")
        await r.world.clock.sleep(after)
        if annotated:
            r.person.merge(POOLS, "train", {"metadata": {"annotations": {names.RESET_BREAKER: annotated}}})
        r.hand.merge(POOLS, "train", {"status": {"breaker": {"state": "Closed"}}}, subresource="status")
        assert any("the breaker left Open" in text for text in r.broken) is broken


@pytest.mark.parametrize(
    ("level", "step", "begun", "broken"),
    [
        ("NewRepairs", "Quarantine", False, True),
        ("NewRepairs", "Drain", True, False),
        ("NextStep", "Drain", True, True),
        ("NextStep", "Validate", True, False),
        ("EveryAct", "Validate", True, True),
    ],
)
async def test_nothing_is_claimed_that_a_hold_forbids(level, step, begun, broken):
    async with rogue() as r:
        steps = {"Quarantine": {"state": "Done"}} if begun else {}
        r.open(**{**RUNNING, "current": {**RUNNING["current"], "step": step}})
        r.status(steps=steps)
        r.hold(level, nodes=["train-0"])
        await r.world.clock.sleep(60)
        r.status(steps={step: {"report": {"state": "Claimed", "attempt": 1, "planGeneration": 1, "term": 1}}})
        assert any(f"{step} was claimed under a Hold of level {level}" in text for text in r.broken) is broken


@pytest.mark.parametrize(("level", "where", "broken"), [
    ("EveryAct", "train-0", True), ("EveryAct", "train-1", False), ("NextStep", "train-0", False),
])  # fmt: skip
async def test_no_act_reaches_a_node_while_everything_is_frozen(level, where, broken):
    async with rogue() as r:
        uid = r.open(**RUNNING)
        r.hold(level, nodes=[where])
        await r.world.clock.sleep(60)
        r.world.journal.act("Reboot", "train-0", key=f"{uid}/Repair/1")
        assert any("under a Hold of level EveryAct" in text for text in r.broken) is broken


async def test_a_node_is_worked_on_by_one_repair_at_a_time():
    async with rogue() as r:
        r.pool(maxParallelRepairs=2)
        for number in (1, 2):
            r.open(number=number, **RUNNING)
        r.status("train-0-1", steps={"Validate": {"state": "Running"}})
        r.status("train-0-2", steps={"Validate": {"state": "Running"}})
        assert "train-0-2: Validate began while train-0-1 works on the same node" in r.broken


@pytest.mark.parametrize(("gated", "broken"), [(True, True), (False, False)])
async def test_what_cannot_be_undone_needs_a_word(gated, broken):
    async with rogue() as r:
        node = {"name": "train-0", "uid": r.world.node("train-0")["metadata"]["uid"]}
        plan = {"steps": [{"step": "Repair", "action": "ReplaceNode", "gateIrreversible": gated}]}
        spec = {"node": node, "pool": {"name": "train"}, "plan": plan}
        made = r.hand.create(REPAIRS, {"metadata": {"name": "train-0-1"}, "spec": spec})
        current = {"step": "Repair", "attempt": 1, "action": "ReplaceNode", "deadline": "2027-03-01T09:00:00Z"}
        r.status(phase="Parked", current=current)
        r.world.journal.act("Replace", "train-0", key=f"{made['metadata']['uid']}/Repair/1")
        assert any("nobody was asked" in text for text in r.broken) is broken


async def test_one_destructive_act_per_attempt():
    async with rogue() as r:
        uid = r.open(**RUNNING)
        for attempt in (1, 2):
            r.claim(attempt)
            r.world.journal.act("Reboot", "train-0", key=f"{uid}/Repair/{attempt}")
        assert r.broken == []
        r.world.journal.act("Reboot", "train-0", key=f"{uid}/Repair/2")
        assert r.broken == [f"Reboot of train-0 under {uid}/Repair/2 came 2 times"]


@pytest.mark.parametrize(
    ("acts", "times"),
    [
        pytest.param([("ResetGPU", "GPU-a"), ("ResetGPU", "GPU-b")], 0, id="two devices"),
        pytest.param([("ResetGPU", "GPU-a"), ("ResetGPU", "GPU-a")], 2, id="one device twice"),
        pytest.param([("ResetGPU", "GPU-a"), ("Reboot", "GPU-a")], 2, id="another act"),
    ],
)
async def test_one_attempt_resets_each_of_its_devices_once(acts, times):
    async with rogue() as r:
        uid = r.open(**RUNNING)
        r.claim(1)
        for kind, target in acts:
            r.world.journal.act(kind, "train-0", key=f"{uid}/Repair/1", target=target)
        assert [text.rpartition(" came ")[2] for text in r.broken] == ([f"{times} times"] if times else [])


async def test_no_act_that_nobody_has_claimed():
    async with rogue() as r:
        uid = r.open(**RUNNING)
        r.status(steps={"Repair": {"state": "Running"}})
        r.world.journal.act("Reboot", "train-0", key=f"{uid}/Repair/1")
        assert r.broken == [f"Reboot of train-0 under {uid}/Repair/1: attempt 1 is not claimed, or over"]


@pytest.mark.parametrize(("by", "broken"), [("admin", True), ("system:serviceaccount:kured:kured", False)])
@pytest.mark.parametrize("what", ["uncordon", "unmark", "spoil"])
async def test_no_act_on_a_node_that_a_person_has_taken_back(what, by, broken):
    async with rogue() as r:
        uid = r.open(**RUNNING)
        r.quarantine(uid)
        r.claim()
        patch = {"spec": {"unschedulable": None}} if what == "uncordon" else {
            "metadata": {"annotations": {names.QUARANTINE: None if what == "unmark" else "{}"}}}  # fmt: skip
        r.world.person(by).merge(NODES, "train-0", patch)
        await r.world.clock.sleep(60)
        r.world.journal.act("Reboot", "train-0", key=f"{uid}/Repair/1")
        assert any("a person took the node back" in text for text in r.broken) is broken


async def test_nothing_begins_on_a_node_that_a_person_has_taken_back():
    async with rogue() as r:
        r.pool()
        r.slot("Unavailable")
        r.quarantine(r.open(**RUNNING))
        r.status(steps={"Quarantine": {"state": "Done"}})
        r.person.merge(NODES, "train-0", {"spec": {"unschedulable": None}})
        await r.world.clock.sleep(60)
        r.slot("Validate")
        r.status(steps={"Validate": {"state": "Running"}})
        assert r.broken == ["train-0-1: Validate began, though a person took the node back at 1s"]


async def test_no_act_for_a_record_that_was_deleted():
    async with rogue() as r:
        uid = r.open(**RUNNING)
        r.claim()
        r.hand.merge(REPAIRS, "train-0-1", {"metadata": {"finalizers": ["sickbay.dev/finalizer"]}})
        r.person.delete(REPAIRS, "train-0-1")
        await r.world.clock.sleep(60)
        r.world.journal.act("Reboot", "train-0", key=f"{uid}/Repair/1")
        assert any("the record was deleted" in text for text in r.broken)


async def test_a_passed_validation_of_a_node_that_is_not_ready_is_a_lie():
    async with rogue() as r:
        r.open(**RUNNING)
        r.world.machine("train-0").set_heartbeat(False)
        await r.world.clock.sleep(120)
        r.status(steps={"Validate": {"state": "Done"}})
        assert "train-0-1: Validate passed, and node train-0 is not Ready" in r.broken


@pytest.mark.parametrize("phase", ["Cancelled", "Cancelling", "Succeeded", "Failed"])
async def test_no_act_for_a_repair_that_is_over(phase):
    async with rogue() as r:
        uid = r.open(phase=phase, current=RUNNING["current"])
        r.world.journal.act("Reboot", "train-0", key=f"{uid}/Repair/1")
        assert any(f"the repair is {phase}" in text for text in r.broken)


async def test_no_act_on_another_node_of_the_same_name():
    async with rogue() as r:
        uid = r.open(**RUNNING)
        r.world.recreate_node("train-0", "", keep_boot=False)
        r.world.journal.act("Reboot", "train-0", key=f"{uid}/Repair/1")
        assert any("the node is another one" in text for text in r.broken)


async def test_pods_leave_only_by_a_drain_and_never_around_their_budget():
    async with rogue() as r:
        for number in (1, 2):
            r.person.create(PODS, pod(f"p{number}", "train-0", labels={"app": "x"}), "default")
        budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "x"}}}}
        r.person.create(BUDGETS, budget, "default")
        await r.world.clock.sleep(5)
        r.hand.delete(PODS, "p1", "default")
        assert [text.partition(": ")[2] for text in r.broken] == [
            "no drain of that node runs",
            "its budget b allows no disruption",
        ]


@pytest.mark.parametrize("phase", ["WaitingApproval", "WaitingSlot", "WaitingJob", "Running", "Parked", "NeedsHuman"])
async def test_every_wait_has_a_deadline(phase):
    async with rogue() as r:
        r.open(phase=phase, current={"step": "Drain"})
        assert r.broken == [f"train-0-1 waits in {phase} without a deadline"]


@pytest.mark.parametrize(
    ("left", "told"),
    [
        pytest.param({"annotations": {names.ISOLATE: "[]"}}, f"{names.ISOLATE} is left behind", id="isolate"),
        pytest.param({"labels": {APPROVAL: "inquiring"}}, f"{APPROVAL} is left behind", id="approval"),
        pytest.param(
            {"annotations": {names.DO_NOT_DISRUPT: "true"}},
            f"is not as it was before train-0-1: annotation {names.DO_NOT_DISRUPT}",
            id="mark",
        ),
    ],
)
async def test_after_the_end_nothing_of_us_is_left(left, told):
    async with rogue() as r:
        r.open(**RUNNING)
        r.hand.merge(NODES, "train-0", {"metadata": left})
        r.status(phase="Cancelled", outcome="SelfRecovered")
        await r.world.clock.sleep(1)
        assert any(told in text for text in r.broken)


async def test_what_others_changed_meanwhile_is_theirs():
    async with rogue() as r:
        uid = r.open(**RUNNING)
        r.quarantine(uid)
        r.person.merge(NODES, "train-0", {"metadata": {"labels": {"team": "new"}}})
        foreign = [{"key": "k", "effect": "NoSchedule"}]
        r.person.merge(NODES, "train-0", {"spec": {"taints": foreign}})
        r.release()
        r.status(phase="Cancelled", outcome="SelfRecovered")
        await r.world.clock.sleep(1)
        assert r.broken == []
