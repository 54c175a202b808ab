"""What holds of decisions over any fleet, whatever order things come in and whoever decides."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sickbay.api import holds
from sickbay.api.duration import parse_duration
from sickbay.api.hold import Hold
from sickbay.api.repair_pool import RepairPool
from sickbay.clock import parse_time, rfc3339
from sickbay.decide import breaker, limits, opening, slots, storm
from sickbay.decide.arbitration import ordered
from sickbay.decide.faults import active_faults
from sickbay.decide.slots import REPAIR, UNAVAILABLE
from sickbay.decide.storm import Onset
from tests.decide import made
from tests.decide.story import Story

QUIET = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
FAULTS = ("test.reboot", "test.reset", "test.service", "test.hardware", "test.support", "test.node")
ENDS = (("Succeeded", "Repaired"), ("Cancelled", "CancelledByPerson"), ("Failed", "GaveUp"), ("Cancelled", "Denied"))


def ended(number: int, fault: str, end: tuple[str, str], after: int):
    """A repair of the node's past."""
    name = f"n1-x-{number}"
    moment = rfc3339(made.at(after))
    return made.record(
        metadata={"name": name, "uid": f"u{number}", "creationTimestamp": moment},
        spec={"node": {"name": "n1", "uid": "uid-n1"}, "pool": {"name": "train"}, "faults": [{"type": fault}]},
        status={"phase": end[0], "outcome": end[1], "endedAt": moment},
    )


PASTS = st.lists(st.tuples(st.sampled_from(FAULTS), st.sampled_from(ENDS), st.integers(0, 5000)), max_size=6)


@given(st.sets(st.sampled_from(FAULTS), min_size=1), PASTS, st.randoms(use_true_random=False), st.integers(0, 90000))
@QUIET
def test_which_repair_is_opened_does_not_depend_on_the_order_in_which_things_arrive(faults, past, lots, later):
    the_node, catalogue, now = made.node(faults=sorted(faults)), made.catalogue(), made.at(6000 + later)
    active = active_faults(the_node, catalogue)
    history = [ended(number, *each) for number, each in enumerate(past)]
    seen = {fault.name: made.at(100) for fault in active}

    def opened(active, history):
        given_ = (the_node, active, made.pool(), made.rule(), history, seen, made.PREFIX, "1.0.0", now)
        return opening.open_repair(*given_)

    first = opened(active, history)
    assert opened(active, history) == first, "the same snapshot gives the same decision"
    lots.shuffle(active)
    lots.shuffle(history)
    assert opened(active, history) == first
    assert [fault.name for fault in ordered(active)] == [fault.name for fault in ordered(reversed(active))]


@given(
    st.lists(st.tuples(st.sampled_from(["NewRepairs", "NextStep", "EveryAct"]), st.booleans()), max_size=5),
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from(FAULTS), st.integers(0, 90)), max_size=10),
    st.randoms(use_true_random=False),
)
@QUIET
def test_holds_storms_and_envelopes_are_judged_in_any_order(levels, sick, lots):
    found = [
        msgspec.convert({"metadata": {"name": f"h{i}"}, "spec": {"scope": {"all": True}, "level": level,
                         "faults": ["test.reboot"] if narrow else []}}, Hold)
        for i, (level, narrow) in enumerate(levels)
    ]  # fmt: skip
    onsets = [Onset(f"n{n}", fault, made.at(at), {"sickbay.dev/rack": f"r{n % 2}"}) for n, fault, at in sick]
    pools = [made.pool("site", rule=None), made.pool(), made.pool("other"), made.pool("driver", rule=None)]
    windy = made.pool(storm={"nodes": 3, "window": "60s"})

    def judged():
        level = holds.known_level(holds.strictest(found, made.node(), ["train"], ["test.reboot"], made.at(0)))
        owner, envelopes = slots.owner_and_envelopes(pools, made.node(labels={"pool": "train"}))
        return level, storm.judge(windy, onsets, made.at(100)), owner, envelopes

    first = judged()
    for things in (found, onsets, pools):
        lots.shuffle(things)
    assert judged() == first


# --- two controllers at once


@dataclass
class Controller:
    """What one of two controllers has in its cache: the pool as it last read it, and which nodes it saw out."""

    pool: RepairPool
    out: frozenset[str] = frozenset()
    faulty: int = 0


@dataclass
class Server:
    """The pool as it stands, under a version that every write must name."""

    pool: RepairPool
    version: int = 1
    out: set[str] = field(default_factory=set)
    sick: set[str] = field(default_factory=set)


class TwoControllers(RuleBasedStateMachine):
    """Both believe that they lead. What is granted is granted by a conditional write of the pool, or not at all."""

    @initialize(
        unavailable=st.integers(1, 3), parallel=st.integers(1, 2), threshold=st.integers(2, 4), manual=st.booleans()
    )
    def begin(self, unavailable, parallel, threshold, manual):
        spec = {
            "maxUnavailable": unavailable,
            "maxParallelRepairs": parallel,
            "breaker": {"threshold": threshold, "maxNodes": 10, "reset": "Manual" if manual else "Auto",
                        "cooldown": "5m"},
            "storm": {"nodes": 0},
        }  # fmt: skip
        self.now, self.server = 0.0, Server(made.pool(**spec))
        self.two = [Controller(self.server.pool), Controller(self.server.pool)]
        self.opened_at: float | None = None

    @rule(which=st.integers(0, 1))
    def it_reads_afresh(self, which):
        """A watch delivers, or the process has started anew."""
        server = self.server
        self.two[which] = Controller(server.pool, frozenset(server.out), len(server.sick))

    @rule(number=st.integers(0, 5))
    def a_node_falls_ill(self, number):
        self.server.sick.add(f"n{number}")

    @rule(number=st.integers(0, 5))
    def a_node_is_well(self, number):
        self.server.sick.discard(f"n{number}")

    @rule(seconds=st.sampled_from([1, 20, 400]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule(which=st.integers(0, 1), number=st.integers(0, 5), kind=st.sampled_from([UNAVAILABLE, REPAIR]))
    def it_asks_for_a_slot(self, which, number, kind):
        me, name = self.two[which], f"n{number}"
        if kind == REPAIR and name not in self.server.out:
            return
        the_node = made.node(name, unschedulable=name in me.out)
        repair = made.record(metadata={"name": f"r-{name}", "uid": f"u-{name}"}, spec={"node": {"name": name}},
                             status={"phase": "WaitingSlot", "current": {"step": "Quarantine"}})  # fmt: skip
        view = slots.PoolView(me.pool, 6, me.out)
        now = made.at(self.now)
        judged = breaker.judge(me.pool, 6, me.faulty, None, now)
        moment = limits.Moment(view, judged, [], [], now)
        status = msgspec.structs.replace(me.pool.status, breaker=judged)
        lacking = slots.lacking(me.pool, repair, [the_node], kind)
        if lacking and limits.refusal(moment, repair, lacking, kind) is None:
            status.slots = slots.granted(view, repair, lacking, kind, now)
        self._write(me, status)

    def _write(self, me: Controller, status) -> None:
        """Refused where somebody has written since. A reader of its own write sees it at once."""
        server, before = self.server, self.server.pool.status
        if me.pool.metadata.resource_version != server.pool.metadata.resource_version:
            me.pool = server.pool
            return
        new = {(s.repair, s.kind) for s in status.slots} - {(s.repair, s.kind) for s in before.slots}
        if before.breaker.state == "Open" and status.breaker.state == "Open":
            assert not new, "started while the breaker is open"
        if before.breaker.state != "Open" and status.breaker.state == "Open":
            self.opened_at = self.now
        if before.breaker.state == "Open" and status.breaker.state != "Open":
            assert self.now - (self.opened_at or 0.0) >= 300 - 1, "left Open before its cooldown"
            assert server.pool.spec.breaker.reset == "Auto"
        server.version += 1
        meta = msgspec.structs.replace(server.pool.metadata, resource_version=str(server.version))
        server.pool = me.pool = msgspec.structs.replace(server.pool, metadata=meta, status=status)

    @rule(number=st.integers(0, 5))
    def execute_cordons_what_holds_a_slot(self, number):
        name = f"n{number}"
        if any(s.node == name and s.kind == UNAVAILABLE for s in self.server.pool.status.slots):
            self.server.out.add(name)

    @rule(which=st.integers(0, 1))
    def it_drops_slots_whose_cordon_it_has_seen(self, which):
        me = self.two[which]
        kept = [s for s in me.pool.status.slots if s.kind != UNAVAILABLE or s.node not in me.out]
        if kept != me.pool.status.slots:
            self._write(me, msgspec.structs.replace(me.pool.status, slots=kept))

    @rule(number=st.integers(0, 5))
    def a_repair_is_over(self, number):
        """Its node returns, and its slots go; whoever tidies writes under the version that stands."""
        name, server = f"n{number}", self.server
        if name not in server.out:
            return
        server.out.discard(name)
        reader = Controller(server.pool)
        kept = [s for s in server.pool.status.slots if s.node != name]
        self._write(reader, msgspec.structs.replace(server.pool.status, slots=kept))

    @invariant()
    def no_cap_is_exceeded(self):
        if not hasattr(self, "server"):
            return
        spec, held = self.server.pool.spec, self.server.pool.status.slots
        promised = {s.node for s in held if s.kind == UNAVAILABLE}
        assert len(self.server.out | promised) <= spec.max_unavailable
        assert sum(s.kind == REPAIR for s in held) <= spec.max_parallel_repairs


TwoControllers.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TestTwoControllers = TwoControllers.TestCase


# --- a plan has an end

SLACK = 61
"""Seconds after a deadline when decide has surely noticed."""


def longest(story: Story) -> float:
    """The sum of all that the plan gives its steps.

    Each remedy comes with an act and a validation of a day at most, with what a climb inserts (a gate of a day), and
    once with a wait for proof; RepairHardware may take 14 days.
    """
    plan = story.repair.spec.plan
    gates = sum(parse_duration(s.approval.timeout).total_seconds() for s in plan.steps if s.approval is not None)
    repair = plan.step("Repair")
    remedies = sum(max(1, rung.attempts or 1) for rung in repair.ladder) if repair is not None else 1
    return gates + (remedies + 1) * made.hours(24 + 24 + 2) + made.hours(14 * 24)


@given(
    fault=st.sampled_from(FAULTS),
    steps=st.sampled_from([made.FULL, ("Repair",), ("Quarantine", "Drain"), ("Quarantine", "Repair", "Unquarantine")]),
    gates=st.sets(st.sampled_from(["Quarantine", "Drain", "Repair", "Unquarantine"])),
    on_timeout=st.sampled_from(["Escalate", "Abort"]),
    moves=st.lists(
        st.sampled_from(["silence", "silence", "Done", "Failed", "Unknown", "approve", "well"]), max_size=40
    ),
)
@QUIET
def test_a_plan_ends_within_the_sum_of_its_deadlines_or_stands_with_somebody_until_a_date(
    fault, steps, gates, on_timeout, moves
):
    gate = {"by": "People", "timeout": "2h", "onTimeout": on_timeout}
    story = Story(fault, rule=made.rule(made.procedure(*steps, **{step: gate for step in gates if step in steps})))
    moves = iter([*moves, *["silence"] * 60])
    while not story.repair.ended and story.phase not in ("NeedsHuman", "Parked"):
        move, deadline = next(moves), story.repair.status.current.deadline
        assert deadline, f"{story.phase} waits without an end"
        if move == "silence":
            story.now = max(story.now, (parse_time(deadline) - made.START).total_seconds()) + SLACK
            story.look()
        elif move in ("Done", "Failed", "Unknown") and story.step and story.state(story.step) == "Running":
            story.now += 30
            story.report(move)
        elif move == "approve" and story.phase == "WaitingApproval":
            story.approve(story.step)
        elif move == "well":
            story.fault(fault, "False")
    assert story.now <= longest(story)
    if not story.repair.ended:
        assert story.repair.status.current.deadline


@pytest.mark.parametrize("state", ["Failed", "Unknown"])
def test_a_ladder_that_always_fails_ends_with_people(state):
    story = Story("test.reboot").run("Quarantine", "Drain")
    for _ in range(8):
        if story.phase == "NeedsHuman":
            break
        story.now += 60
        story.report(state if story.step == "Repair" else "Failed")
    assert story.phase == "NeedsHuman"
