"""Caps: how percentages round, who is admitted, which slots are kept, and that no order of events exceeds a cap."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sickbay.clock import rfc3339
from sickbay.decide import slots
from sickbay.decide.slots import REPAIR, UNAVAILABLE, VALIDATE, PoolView
from sickbay.decide.wants import wanted_slot
from tests.decide.made import at, node, pool, record


def view(size=10, out=(), **spec) -> PoolView:
    return PoolView(pool(**spec), size, frozenset(out))


def slot(repair="r1", node_="n1", kind=UNAVAILABLE, since=0.0):
    return {"repair": repair, "node": node_, "kind": kind, "since": rfc3339(at(since))}


@pytest.mark.parametrize(
    ("kind", "spec", "size", "cap"),
    [
        pytest.param(UNAVAILABLE, {}, 100, 5, id="5%-of-100"),
        pytest.param(UNAVAILABLE, {}, 30, 1, id="5%-of-30-is-rounded-down"),
        pytest.param(UNAVAILABLE, {}, 10, 1, id="5%-of-10-is-at-least-1"),
        pytest.param(UNAVAILABLE, {"maxUnavailable": "50%"}, 5, 2, id="half-of-5"),
        pytest.param(UNAVAILABLE, {"maxUnavailable": 3}, 2, 3, id="a-count-stands"),
        pytest.param(UNAVAILABLE, {"maxUnavailable": 0}, 100, 0, id="nought-is-nought"),
        pytest.param(REPAIR, {}, 1000, 1, id="one-repair-by-default"),
        pytest.param(REPAIR, {"maxParallelRepairs": "1%"}, 50, 1, id="1%-of-50-is-at-least-1"),
        pytest.param(REPAIR, {"maxParallelRepairs": "10%"}, 59, 5, id="10%-of-59"),
        pytest.param(VALIDATE, {}, 10, 4, id="10%-of-10-is-at-least-4"),
        pytest.param(VALIDATE, {}, 100, 10, id="10%-of-100"),
        pytest.param(VALIDATE, {"maxParallelValidations": 2}, 100, 2, id="a-count-has-no-least"),
    ],
)
def test_limits_in_whole_nodes(kind, spec, size, cap):
    assert slots.limit_of(view(size, **spec), kind) == cap


@pytest.mark.parametrize(
    ("the_node", "out"),
    [
        pytest.param(node(), False, id="in-service"),
        pytest.param(node(unschedulable=True), True, id="cordoned-by-anybody"),
        pytest.param(node(ready=False), True, id="not-ready"),
        pytest.param(node(ready="Unknown"), True, id="not-heard-of"),
        pytest.param(node(allocatable=0), True, id="no-gpu-is-offered"),
        pytest.param(node(allocatable=1), False, id="one-gpu-is-offered"),
        pytest.param(node(gpus=0), False, id="a-node-that-never-had-gpus"),
        pytest.param(node(annotations={"sickbay.dev/quarantine": "{}"}), True, id="marked-by-us"),
    ],
)
def test_a_node_is_out_of_service_for_any_reason(the_node, out):
    assert slots.out_of_service(the_node) is out


@pytest.mark.parametrize(
    ("out", "slotted", "admitted"),
    [
        pytest.param([], [], True, id="room"),
        pytest.param(["n2"], [], True, id="room-for-one-more"),
        pytest.param(["n2", "n3"], [], False, id="full"),
        pytest.param(["n2"], ["n3"], False, id="full-with-one-on-its-way"),
        pytest.param(["n2"], ["n2"], True, id="a-node-is-counted-once"),
        pytest.param(["n1", "n2"], [], True, id="a-node-that-is-out-anyway-costs-nothing"),
        pytest.param(["n1", "n2", "n3", "n4"], [], True, id="even-beyond-the-cap"),
    ],
)
def test_who_may_be_taken_out(out, slotted, admitted):
    taken = [slot(f"r-{n}", n) for n in slotted]
    assert (slots.refusal(view(10, out, maxUnavailable=2, slots=taken), [node("n1")], UNAVAILABLE) == "") is admitted


@pytest.mark.case("P092")
def test_a_node_is_not_taken_out_while_others_are_down():
    """4 of 5 are ready, 90 % have to be: nothing more may go."""
    assert slots.refusal(view(5, ["n2"], maxUnavailable="10%"), [node("n3")], UNAVAILABLE) != ""


@pytest.mark.parametrize("kind", [REPAIR, VALIDATE])
def test_work_is_limited_by_its_own_kind_alone(kind):
    setting = {REPAIR: "maxParallelRepairs", VALIDATE: "maxParallelValidations"}[kind]
    other = VALIDATE if kind == REPAIR else REPAIR
    full = view(slots=[slot(kind=kind)], **{setting: 1})
    assert setting in slots.refusal(full, [node("n9")], kind)
    assert slots.refusal(view(slots=[slot(kind=other)], **{setting: 1}), [node("n9")], kind) == ""


def test_the_list_of_slots_of_a_pool_ends_where_its_schema_does():
    many = [slot(f"r{n}", f"n{n}", VALIDATE) for n in range(256)]
    full = view(10_000, slots=many, maxParallelValidations=5000, maxUnavailable=5000)
    assert "256" in slots.refusal(full, [node("n9")], UNAVAILABLE)


# --- what a repair wants


def repair(name="r1", step="Quarantine", phase="WaitingSlot", action="", uid="u1", node_="n1"):
    return record(
        metadata={"name": name, "uid": uid},
        spec={"node": {"name": node_}},
        status={"phase": phase, "current": {"step": step, "action": action}},
    )


@pytest.mark.parametrize(
    ("step", "phase", "action", "kind"),
    [
        pytest.param("Quarantine", "WaitingSlot", "", UNAVAILABLE, id="before-quarantine"),
        pytest.param("Quarantine", "Running", "", UNAVAILABLE, id="while-the-cordon-is-written"),
        pytest.param("Drain", "Running", "", REPAIR, id="drain"),
        *(pytest.param("Repair", "Running", a, REPAIR, id=a) for a in ("RestartService", "ResetGPU", "RebootNode")),
        pytest.param("Repair", "Running", "Later", REPAIR, id="an-act-of-a-later-version"),
        pytest.param("Repair", "Parked", "RepairHardware", "", id="a-third-party-holds-no-slot"),
        pytest.param("Validate", "Running", "", VALIDATE, id="validate"),
        pytest.param("Unquarantine", "Running", "", "", id="the-return-is-free"),
        pytest.param("Drain", "WaitingApproval", "", "", id="whoever-waits-for-a-person-holds-none"),
        pytest.param("Drain", "NeedsHuman", "", "", id="nor-who-needs-one"),
        pytest.param("Drain", "Pending", "", "", id="nor-who-is-under-a-hold"),
        pytest.param("Unquarantine", "Cancelling", "", "", id="a-roll-back-is-free"),
    ],
)
def test_which_slot_a_repair_needs(step, phase, action, kind):
    assert wanted_slot(repair(step=step, phase=phase, action=action)) == kind


# --- what is kept

CORDONED = node("n1", unschedulable=True, annotations={"sickbay.dev/quarantine": '{"uid":"u1"}'})


@pytest.mark.parametrize(
    ("kind", "the_repair", "the_node", "now", "kept"),
    [
        pytest.param(UNAVAILABLE, repair(phase="Running"), node("n1"), 1000, True, id="on-its-way"),
        pytest.param(UNAVAILABLE, repair(phase="Running"), CORDONED, 1, False, id="the-cordon-stands"),
        pytest.param(
            UNAVAILABLE, repair(phase="Running", uid="u2"), CORDONED, 1000, True, id="the-cordon-of-another-incident"
        ),
        pytest.param(UNAVAILABLE, repair(phase="Running"), None, 1000, True, id="a-node-we-do-not-see"),
        pytest.param(REPAIR, repair(step="Drain", phase="Running"), CORDONED, 1000, True, id="draining"),
        pytest.param(REPAIR, repair(step="Validate", phase="Running"), CORDONED, 1000, False, id="validating-by-now"),
        pytest.param(REPAIR, repair(step="Drain", phase="NeedsHuman"), CORDONED, 1000, False, id="with-people-by-now"),
        pytest.param(REPAIR, repair(step="Quarantine", phase="Running"), CORDONED, 14, True, id="too-new-to-be-judged"),
        pytest.param(REPAIR, repair(step="Quarantine", phase="Running"), CORDONED, 15, False, id="old-enough"),
        pytest.param(REPAIR, None, CORDONED, 14, True, id="a-record-we-do-not-see-yet"),
        pytest.param(REPAIR, None, CORDONED, 15, False, id="a-record-that-is-gone"),
        pytest.param(REPAIR, repair(step="Drain", phase="Cancelled"), CORDONED, 1, False, id="over"),
    ],
)
def test_which_slots_are_kept(kind, the_repair, the_node, now, kept):
    held = pool(slots=[slot(kind=kind)])
    repairs = {"r1": [the_repair]} if the_repair is not None else {}
    nodes = {"n1": the_node} if the_node is not None else {}
    assert bool(slots.kept(held, repairs, nodes, at(now))) is kept


# --- pools


def test_a_node_belongs_to_the_oldest_pool_with_a_rule_and_is_bound_by_every_envelope():
    def made(name, age, rule="standard", labels=None):
        spec = {"nodeSelector": {"matchLabels": labels or {"pool": "train"}}}
        found = pool(name, rule=rule, **spec)
        found.metadata = _created(found.metadata, f"2027-03-0{age}T00:00:00Z")
        return found

    young, old = made("young", 5), made("old", 2)
    envelopes = [made("site", 1, None), made("driver", 9, None)]
    other = made("other", 1, labels={"pool": "else"})
    owner, binding = slots.owner_and_envelopes([young, other, envelopes[1], old, envelopes[0]], node())
    assert owner is old
    assert [p.metadata.name for p in binding] == ["site", "driver"]
    assert slots.owner_and_envelopes([envelopes[0]], node())[0] is None


def _created(meta, when):
    return msgspec.structs.replace(meta, creation_timestamp=when)


def test_a_pool_that_selects_nothing_in_particular_selects_nothing():
    assert slots.owner_and_envelopes([pool(nodeSelector={})], node()) == (None, [])


# --- no order of events exceeds a cap


@dataclass
class Fleet:
    """Nodes as they are, as we see them (later), and the pool's slots. Nobody else cordons."""

    size: int
    cap: int
    slots: list = field(default_factory=list)
    real: set[str] = field(default_factory=set)
    """Nodes whose cordon stands."""
    seen: set[str] = field(default_factory=set)
    """Those of which we know."""
    counted: set[str] = field(default_factory=set)
    """Those that the tally has counted."""
    quarantining: set[str] = field(default_factory=set)
    now: float = 0.0

    def pool_view(self) -> PoolView:
        return view(self.size, self.counted, maxUnavailable=self.cap, slots=self.slots)

    def start(self, name: str) -> None:
        if name in self.quarantining | self.real:
            return
        if slots.refusal(self.pool_view(), [node(name)], UNAVAILABLE) == "":
            self.slots.append(slot(f"r-{name}", name, since=self.now))
            self.quarantining.add(name)

    def cordon(self, name: str) -> None:
        if name in self.quarantining:
            self.real.add(name)

    def see(self, name: str) -> None:
        if name in self.real:
            self.seen.add(name)
        else:
            self.seen.discard(name)

    def count(self, name: str) -> None:
        if name in self.seen:
            self.counted.add(name)
        else:
            self.counted.discard(name)

    def give_back(self, name: str) -> None:
        """The repair is over and the node uncordoned."""
        if name in self.real & self.counted:
            self.real.discard(name)
            self.quarantining.discard(name)

    def prune(self) -> None:
        names = [f"n{i}" for i in range(self.size)]
        open_ = [n for n in names if n in self.quarantining]
        repairs = {f"r-{n}": [repair(f"r-{n}", phase="Running", uid=f"u-{n}", node_=n)] for n in open_}
        mark = '{{"uid":"u-{}"}}'
        nodes = {
            n: node(n, unschedulable=True, annotations={"sickbay.dev/quarantine": mark.format(n)})
            for n in self.seen & self.counted
        }
        held = pool(slots=self.slots)
        self.slots = [
            {"repair": s.repair, "node": s.node, "kind": s.kind, "since": s.since}
            for s in slots.kept(held, repairs, nodes, at(self.now))
        ]


MOVES = st.tuples(
    st.sampled_from(["start", "start", "cordon", "see", "count", "give_back", "prune", "wait"]), st.integers(0, 5)
)


@given(st.integers(1, 4), st.lists(MOVES, max_size=60))
@settings(deadline=None, max_examples=150, derandomize=True)
def test_no_order_of_events_takes_more_nodes_out_than_the_cap(cap, moves):
    fleet = Fleet(6, cap)
    for what, number in moves:
        if what == "wait":
            fleet.now += number * 10
        elif what == "prune":
            fleet.prune()
        else:
            getattr(fleet, what)(f"n{number}")
        assert len(fleet.real) <= cap, "more nodes are out of service than the cap"
        assert len(fleet.real | fleet.quarantining) <= cap, "more may go out than the cap"
