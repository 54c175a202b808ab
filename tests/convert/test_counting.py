"""How often something happened, and from when on it is a fault."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api import names
from sickbay.api.core import Event, Node
from sickbay.api.node_repair import NodeRepair
from sickbay.convert.asked import Asked, EventTest, asked
from sickbay.convert.counting import concerns, evidence, matches, occurrences, reached
from sickbay.convert.promoted import Judged, Memory, judge
from tests.convert.made import at, node, stamp


def told(last: float, count: int = 1, first: float | None = None, **more: Any) -> Event:
    """An Event of node n-1 whose last occurrence was at that second of its writer's clock."""
    raw: dict[str, Any] = {
        "metadata": {"name": f"e-{last}", "creationTimestamp": stamp(last if first is None else first)},
        "involvedObject": {"kind": "Node", "name": "n-1", "uid": "n-1"},
        "type": "Warning", "reason": "BadDisk", "source": {"component": "disks"}, "count": count,
        "firstTimestamp": stamp(last if first is None else first), "lastTimestamp": stamp(last),
    }  # fmt: skip
    return msgspec.convert(raw | more, Event)


THREE = EventTest("disks", "BadDisk", "", 3, 600.0)


@pytest.mark.parametrize(
    ("more", "test", "same"),
    [
        ({}, THREE, True),
        ({"reason": "Other"}, THREE, False),
        ({"source": {"component": "someone"}}, THREE, False),
        ({"source": {}, "reportingComponent": "disks"}, THREE, True),
        ({"source": {"component": "someone"}}, EventTest("", "BadDisk", "", 1, 600), True),
        ({"type": "Normal"}, EventTest("", "BadDisk", "Warning", 1, 600), False),
        ({"source": {"component": "sickbay-convert"}}, EventTest("", "BadDisk", "", 1, 600), False),
    ],
)
def test_which_events_are_meant(more: dict[str, Any], test: EventTest, same: bool) -> None:
    """Never those that convert writes itself about its own conditions."""
    assert matches(told(0, **more), test) is same


@pytest.mark.parametrize(
    ("about", "mine"),
    [
        ({"name": "n-1", "uid": "n-1"}, True),
        ({"name": "n-1", "uid": "u-1"}, True),
        ({"name": "n-1"}, True),
        ({"name": "n-1", "uid": "u-0"}, False),
        ({"name": "n-2", "uid": "n-2"}, False),
    ],
)
def test_which_node_is_meant(about: dict[str, str], mine: bool) -> None:
    """node-problem-detector and kubelet write the name in place of the UID."""
    assert concerns(told(0, involvedObject={"kind": "Node", **about}), node()) is mine


def test_an_event_from_before_the_node_was_made_is_about_an_earlier_one() -> None:
    born = msgspec.structs.replace(node().metadata, creation_timestamp=stamp(100))
    young = msgspec.structs.replace(node(), metadata=born)
    assert not concerns(told(50), young)
    assert concerns(told(150), young)


@pytest.mark.parametrize(
    ("event", "seconds"),
    [
        pytest.param(told(90), [90], id="one"),
        pytest.param(told(90, 4, 0), [0, 30, 60, 90], id="a counted one is spread evenly"),
        pytest.param(told(90, 2, 200), [90, 90], id="first after last"),
        pytest.param(
            told(0, series={"count": 3, "lastObservedTime": stamp(60)}, lastTimestamp=None), [0, 30, 60], id="a series"
        ),
        pytest.param(told(0, lastTimestamp="yesterday"), [], id="no readable time"),
        pytest.param(told(0, firstTimestamp=None, lastTimestamp=None, eventTime=stamp(7)), [7], id="event time only"),
    ],
)
def test_when_it_happened(event: Event, seconds: list[float]) -> None:
    assert occurrences(event) == [at(s) for s in seconds]


@pytest.mark.parametrize(
    ("seconds", "enough"),
    [([0, 300, 600], True), ([0, 300, 601], False), ([0, 1], False), ([0, 500, 900, 1000, 1001], True), ([], False)],
)
def test_so_many_within_one_window(seconds: list[float], enough: bool) -> None:
    assert reached([at(s) for s in seconds], THREE) is enough


@pytest.mark.parametrize(("count", "asked_for", "enough"), [(2000, 1000, True), (2000, 512, True), (999, 1000, False)])
def test_one_event_that_stands_for_more_than_are_usually_looked_at(count: int, asked_for: int, enough: bool) -> None:
    many = EventTest("disks", "BadDisk", "", asked_for, 600.0)
    assert reached(evidence([told(500, count, 0)], many, node(), None, None), many) is enough


EVENTS = st.lists(
    st.builds(lambda last, count, span: told(last, count, last - span),
              st.integers(0, 5000), st.integers(1, 6), st.integers(0, 900)), max_size=6,
)  # fmt: skip


@given(EVENTS, st.randoms(use_true_random=False), st.integers(-600, 600))
def test_neither_order_nor_the_writers_clock_changes_the_count(events: list[Event], random: Any, skew: int) -> None:
    plain = evidence(events, THREE, node(), None, None)
    shuffled = list(events)
    random.shuffle(shuffled)
    assert evidence(shuffled, THREE, node(), None, None) == plain
    moved = [told(_second(e.last_timestamp) + skew, e.count or 1, _second(e.first_timestamp) + skew) for e in events]
    assert reached(evidence(moved, THREE, node(), None, None), THREE) == reached(plain, THREE)


def _second(text: str | None) -> float:
    from sickbay.clock import parse_time

    return (parse_time(text or "") - at(0)).total_seconds()


def test_what_was_told_before_the_fault_type_was_made_is_nobodys_fault() -> None:
    growing = told(100, 5, 0)
    assert evidence([growing], THREE, node(), stamp(60), None) == [at(75), at(100)]
    assert len(evidence([told(70, 3, 70)], THREE, node(), stamp(60), None)) == 3


# --- from the first to the last


def fault(clears_by: str, **more: Any) -> Asked:
    spec = {
        "class": "Node", "severity": "Error", "scope": "Node", "remedy": [], "clearsBy": clears_by,
        "match": [{"event": {"source": "disks", "reason": "BadDisk", "count": 3}}], **more,
    }  # fmt: skip
    return asked([{"metadata": {"name": "acme.disk"}, "spec": spec}])["AcmeDisk"]


class Story:
    """One node and what is told of it, as convert sees it minute by minute."""

    def __init__(self, clears_by: str, **more: Any) -> None:
        self.one, self.memory, self.node, self.events = fault(clears_by, **more), Memory(), node(), list[Event]()
        self.repairs: list[NodeRepair] = []
        self.written = 0

    def look(self, second: float) -> Judged:
        judged = judge(self.one, self.node, self.events, self.repairs, self.memory, second)
        if judged.wanted is not None:
            self.keep(second, judged.wanted)
        return judged

    def keep(self, second: float, wanted: Any) -> None:
        old = self.node.condition(wanted.type)
        if old is not None and (old.status, old.message) == (wanted.status, wanted.message):
            return
        self.written += 1
        since = old.last_transition_time if old is not None and old.status == wanted.status else stamp(second)
        made = {"type": wanted.type, "status": wanted.status, "reason": wanted.reason, "message": wanted.message,
                "lastTransitionTime": since}  # fmt: skip
        others = [c for c in msgspec.to_builtins(self.node.conditions) if c["type"] != wanted.type]
        raw = msgspec.to_builtins(self.node) | {}
        raw["status"]["conditions"] = [*others, made]
        self.node = msgspec.convert(raw, Node)

    def boot(self, boot: str) -> None:
        raw = msgspec.to_builtins(self.node)
        raw["status"]["nodeInfo"]["bootID"] = boot
        self.node = msgspec.convert(raw, Node)

    @property
    def status(self) -> str:
        condition = self.node.condition("AcmeDisk")
        return f"{condition.status} {condition.reason}" if condition is not None else ""


def begun(clears_by: str, **more: Any) -> Story:
    story = Story(clears_by, **more)
    for second in (0, 60, 120):
        story.events.append(told(second))
        story.look(second + 1)
        assert story.status == ("True BadDisk" if second == 120 else "")
    return story


@pytest.mark.case("R45")
def test_the_third_event_begins_it_and_the_fourth_begins_nothing() -> None:
    story = begun("reboot")
    for second in (130, 140):
        story.events.append(told(second))
        story.look(second)
    assert (story.status, story.written) == ("True BadDisk", 1)


@pytest.mark.parametrize(("clears_by", "seconds"), [("silence", 480), ("condition", 600)])
def test_silence_ends_it_after_the_soak_and_no_longer_matching_after_the_window(clears_by: str, seconds: int) -> None:
    story = begun(clears_by, validation={"soak": "8m"})
    assert story.look(121 + seconds - 1).again == pytest.approx(1)
    assert story.status == "True BadDisk"
    story.look(121 + seconds)
    assert story.status == "False Silence"


def test_another_event_begins_the_silence_anew_and_so_does_our_restart() -> None:
    story = begun("silence")
    story.events.append(told(300))
    story.look(300)
    story.look(599)
    assert story.status == "True BadDisk"
    story.memory = Memory()
    story.look(700)
    story.look(999)
    assert story.status == "True BadDisk"
    story.look(1000)
    assert story.status == "False Silence"


@pytest.mark.parametrize("clears_by", ["reboot", "reset", "probe"])
def test_a_boot_after_the_last_event_ends_it_and_what_was_judged_is_over(clears_by: str) -> None:
    story = begun(clears_by)
    story.look(10_000)
    assert story.status == "True BadDisk"
    story.boot("b-2")
    story.look(10_100)
    assert story.status == "False Rebooted"
    story.memory = Memory()
    story.look(10_200)
    assert story.status == "False Rebooted"
    story.events += [told(10_300), told(10_310)]
    story.look(10_320)
    assert story.status == "False Rebooted"
    story.events.append(told(10_330))
    story.look(10_340)
    assert story.status == "True BadDisk"


def test_an_event_after_the_boot_keeps_it_until_the_next_boot() -> None:
    story = begun("reboot")
    story.boot("b-2")
    story.events.append(told(200))
    story.look(210)  # both are seen at once: nobody can say which was first
    assert story.status == "True BadDisk"
    story.events.append(told(500))
    story.look(510)
    assert story.status == "True BadDisk"
    story.boot("b-3")
    story.look(600)
    assert story.status == "False Rebooted"


def test_a_restart_of_ours_between_boot_and_look_loses_neither() -> None:
    story = begun("reboot")
    story.boot("b-2")
    story.memory = Memory()
    story.look(600)
    assert story.status == "False Rebooted"


@pytest.mark.parametrize(("clears_by", "ends"), [("probe", True), ("reset", True), ("reboot", False)])
def test_an_act_of_ours_ends_what_a_reset_or_a_probe_ends(clears_by: str, ends: bool) -> None:
    story = begun(clears_by)
    attempt = {"n": 1, "action": "ResetGPU", "state": "Done", "started": stamp(300), "ended": stamp(400)}
    raw = {"spec": {"node": {"name": "n-1", "uid": "u-1"}}, "status": {"steps": {"Repair": {"attempts": [attempt]}}}}
    story.repairs = [msgspec.convert(raw, NodeRepair)]
    story.look(460)
    assert story.status == ("False ActedOn" if ends else "True BadDisk")


def test_types_that_ask_for_nothing_or_are_no_types_are_left_out() -> None:
    broken = {"class": "Node", "match": [{"event": {"reason": "X", "window": "soon"}}]}
    plain = {"class": "Node", "match": [{"condition": {"type": "X"}}]}
    types = [{"metadata": {"name": f"acme.{k}"}, "spec": spec} for k, spec in enumerate((broken, plain))]
    assert not {"Acme0", "Acme1"} & asked(types).keys()


@pytest.mark.case("P053")
def test_what_the_agent_tells_again_and_again_is_counted_from_its_events() -> None:
    """The built-in entries that ask for repetition; a metric that keeps the last code could not tell two from one."""
    built_in = asked([])
    assert {"KernelHungTaskRepeated", "DiskIoErrorRepeated"} <= built_in.keys()
    assert all(one.clears_by == "reboot" and one.created is None for one in built_in.values())
    again = told(600, 3, 0, reason="KernelHungTask", source={"component": "sickbay-agent"})
    judged = judge(built_in["KernelHungTaskRepeated"], node(), [again], [], Memory(), 0.0)
    assert judged.wanted is not None and judged.wanted.status == "True"


@pytest.mark.case("P051")
@pytest.mark.parametrize("reason", ["NvidiaXID31Error", "XID31"])
def test_a_condition_from_events_never_looks_like_the_agents_own(reason: str) -> None:
    """The agent would adopt it, end it by its own rules, and the Events would begin it anew."""
    spec = {"match": [{"event": {"reason": reason}}], "remedy": [{"action": "RebootNode"}], "clearsBy": "reboot"}
    one = asked([{"metadata": {"name": "gpu.xid.31"}, "spec": spec}])["NvidiaXID31Error"]
    judged = judge(one, node(), [told(0, reason=reason)], [], Memory(), 0.0)
    assert judged.wanted is not None and judged.wanted.status == "True"
    assert not names.agents_own(judged.wanted.type, judged.wanted.reason)


@pytest.mark.parametrize(
    ("name", "spec", "heard"),
    [
        pytest.param("gpu.xid.94", {"remedy": [{"action": "RebootNode"}]}, True, id="mild-for-us-and-grave-for-them"),
        pytest.param("gpu.xid.94", {"severity": "Critical"}, False, id="still-nothing-to-do-on-the-node"),
        pytest.param("gpu.xid.79", {"remedy": [{"action": "PowerCycle"}]}, False, id="the-agent-writes-its-condition"),
        pytest.param("acme.own", {"remedy": [{"action": "RebootNode"}]}, False, id="no-built-in-entry"),
        pytest.param(
            "gpu.xid.94",
            {"remedy": [{"action": "RebootNode"}], "match": [{"alert": {"name": "Hot", "node": "node"}}]},
            False,
            id="they-say-by-what-it-is-known",
        ),
    ],
)
def test_a_fault_that_is_only_told_is_taken_up_once_people_want_it_repaired(name, spec, heard) -> None:
    found = asked([{"metadata": {"name": name, "creationTimestamp": "2027-03-01T08:00:00Z"}, "spec": spec}])
    tests = [test for one in found.values() if one.name == name for test in one.events]
    assert [(t.source, t.reason) for t in tests] == ([("sickbay-agent", "NvidiaXID94Error")] if heard else [])


@pytest.mark.case("P014")
@pytest.mark.parametrize(
    ("devices", "counts"),
    [(["0", "0", "0"], True), (["0", "1", "2"], False), (["", "", ""], True), (["0", "0", ""], False)],
    ids=["one device", "three devices", "none named", "one of them not named"],
)
def test_events_that_name_a_device_are_counted_for_each(devices: list[str], counts: bool) -> None:
    story = Story("reboot")
    for k, device in enumerate(devices):
        related = {"related": {"kind": "Device", "name": device}} if device else {}
        story.events.append(told(60 * k, **related))
    story.look(200)
    assert (story.status == "True BadDisk") == counts


@pytest.mark.parametrize("ahead", [300, 86400], ids=["minutes", "a-day"])
def test_a_clock_that_was_ahead_does_not_hide_what_comes_after_it_is_set_right(ahead: int) -> None:
    story = begun("reboot")
    story.events.append(told(ahead + 130, metadata={"name": "ahead", "creationTimestamp": stamp(130)}))
    story.look(131)
    story.boot("boot-2")
    story.look(140)
    assert story.status == "False Rebooted"
    story.look(150)
    assert story.status == "False Rebooted", "what was judged stays judged"
    for second in (160, 170, 180):
        story.events.append(told(second))
        story.look(second + 1)
    assert story.status == "True BadDisk"
