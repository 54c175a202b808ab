"""When an agent counts as silent, and what is then unknown."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.convert import agents
from sickbay.convert.silence import SILENT, Gatherer, Silence
from tests.convert.made import node, stamp


def test_an_agent_is_silent_after_three_minutes_without_a_change_that_we_saw() -> None:
    watch = Silence()
    watch.see("n-1", "1", 1000.0)
    watch.see("n-1", "1", 1100.0)  # a look, but no sign
    assert watch.silent(1179.9) == []
    assert watch.silent(1180.0) == ["n-1"]
    watch.see("n-1", "2", 1181.0)
    assert watch.silent(1182.0) == []


def test_time_in_which_we_saw_nothing_is_nobodys_silence() -> None:
    watch = Silence()
    watch.see("n-1", "1", 0.0)
    watch.after_gap(900.0)
    assert watch.silent(900.0 + SILENT - 1) == []
    assert watch.silent(900.0 + SILENT) == ["n-1"]


def test_an_expected_agent_has_as_long_as_any_other_and_a_node_that_is_gone_has_none() -> None:
    watch = Silence()
    watch.expect("n-1", 0.0)
    watch.expect("n-1", 100.0)
    assert watch.silent(SILENT) == ["n-1"]
    watch.forget("n-1")
    assert watch.silent(10 * SILENT) == []


@pytest.mark.parametrize(
    ("fell_silent", "told"),
    [
        pytest.param([(0, 1)], [["n-0"]], id="one alone"),
        pytest.param([(0, 4)], [["n-0"], ["n-1"], ["n-2"], ["n-3"]], id="few are told of one by one"),
        pytest.param([(0, 2), (30, 8)], [[f"n-{k}" for k in range(8)]], id="many within a minute are one suspicion"),
    ],
)
def test_who_is_told_of(fell_silent: list[tuple[int, int]], told: list[list[str]]) -> None:
    gatherer, found = Gatherer(), []
    for second in range(0, 300, 15):
        count = max((n for since, n in fell_silent if since <= second), default=0)
        found += gatherer.take([f"n-{k}" for k in range(count)], float(second))
    assert found == told


def test_a_silence_that_ends_before_it_is_told_is_not_told_and_a_second_one_is() -> None:
    gatherer = Gatherer()
    assert gatherer.take(["n-0"], 0.0) == []
    assert gatherer.take([], 30.0) == []
    assert gatherer.take(["n-0"], 60.0) == []
    assert gatherer.take(["n-0"], 120.0) == [["n-0"]]
    assert gatherer.take(["n-0"], 180.0) == []
    assert gatherer.take([], 200.0) == []
    gatherer.take(["n-0"], 300.0)
    assert gatherer.take(["n-0"], 360.0) == [["n-0"]]


STANDING = {
    "DetectionBlind": ("False", "Sees"),
    "NvidiaXID79Error": ("True", "XID79"),
    "GpuEccUncorrectable": ("False", "Recovered"),
    "NvidiaXID48Error": ("True", "NodeHasXid48"),
    "KernelDeadlock": ("False", "KernelHasNoDeadlock"),
    "AcmeFanFailed": ("True", "Fan3"),
    "InfraReboot": ("True", "Scheduled"),
    "KernelHungTaskRepeated": ("False", "Rebooted"),
}


def unknown(seen: Any, raw: dict[str, Any]) -> set[str]:
    changed = agents.to_unknown(seen, raw, stamp(0))
    assert all((c.status, c.reason) == ("Unknown", "AgentSilent") for c in changed)
    return {c.type for c in changed}


def test_only_what_the_agent_can_have_written_turns_unknown() -> None:
    """Others' conditions of the same type carry reasons of their own; what providers say has nothing to do with it."""
    assert unknown(node(conditions=STANDING), {}) == {"DetectionBlind", "NvidiaXID79Error", "GpuEccUncorrectable"}


def test_the_api_servers_own_record_of_who_wrote_what_goes_before() -> None:
    fields = {'k:{"type":"AcmeFanFailed"}': {}, 'k:{"type":"DetectionBlind"}': {}, "f:x": {}}
    managed = [
        {"manager": "sickbay-agent", "fieldsV1": {"f:status": {"f:conditions": fields}}},
        {"manager": "kubelet", "fieldsV1": {"f:status": {"f:conditions": {'k:{"type":"Ready"}': {}}}}},
    ]
    raw = {"metadata": {"managedFields": managed}}
    assert unknown(node(conditions=STANDING), raw) == {"DetectionBlind", "AcmeFanFailed"}


def test_a_node_that_says_so_already_is_not_written_again() -> None:
    first = {
        c.type: (c.status, c.reason, c.message) for c in agents.to_unknown(node(conditions=STANDING), {}, stamp(0))
    }
    assert agents.to_unknown(node(conditions={**STANDING, **first}), {}, stamp(60)) == []


def test_the_condition_that_says_blind_is_made_where_an_agent_never_wrote_it() -> None:
    assert unknown(node(), {}) == {"DetectionBlind"}
    assert agents.marked_silent(node(conditions={"DetectionBlind": ("Unknown", "AgentSilent")}))
    assert not agents.marked_silent(node(conditions={"DetectionBlind": ("Unknown", "SourceBroken")}))


def test_what_convert_itself_made_of_events_is_not_the_silent_agents() -> None:
    told = ("False", "Rebooted", "over (last -, boot b1)")
    changed = agents.to_unknown(node(conditions={"NvidiaXID94Error": told, "NvidiaXID95Error": "False"}), {}, stamp(0))
    assert [condition.type for condition in changed] == ["NvidiaXID95Error", "DetectionBlind"]
