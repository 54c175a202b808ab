"""What Act would have done, from records of Observe: who starts and who waits, who is asked, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.clock import SystemClock, rfc3339
from sickbay.decide.impact import Assumptions, Impact, impact
from sickbay.decide.typicaltimes import ACTS
from tests.cli.conftest import Cluster

NOW = datetime(2027, 3, 10, 12, tzinfo=UTC)
START = NOW - timedelta(days=5)
LOOP = ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")
WIDE = {
    "maxUnavailable": "100%", "maxParallelRepairs": "100%", "storm": {"nodes": 0},
    "breaker": {"threshold": "100%", "maxNodes": 1000},
}  # fmt: skip


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def observed(
    node: str,
    start: float = 0,
    gone: float | None = None,
    *,
    fault: str = "gpu.xid.79",
    action: str | None = "RebootNode",
    steps: Iterable[str] = LOOP,
    gates: dict[str, dict[str, Any]] | None = None,
    pool: str = "train",
) -> NodeRepair:
    """A record of Observe; times in minutes from START, `gone` None while the fault is still there."""
    made = [{"step": s, **({"action": action} if s == "Repair" and action else {})} for s in steps]
    for step in made:
        if gates and step["step"] in gates:
            step["approval"] = gates[step["step"]]  # type: ignore[assignment]
    status = {"phase": "WouldAct", "startedAt": rfc3339(at(start))}
    if gone is not None:
        status |= {"outcome": "Observed", "endedAt": rfc3339(at(gone))}
    spec = {"node": {"name": node, "uid": f"uid-{node}"}, "pool": {"name": pool}, "faults": [{"type": fault}]}
    body = {"metadata": {"name": f"{node}-{start}"}, "spec": {**spec, "plan": {"steps": made}}, "status": status}
    return msgspec.convert(body, NodeRepair)


def acted(node: str, start: float, end: float | None, reboot: float = 6) -> NodeRepair:
    """A repair that was carried out, of which Repair took so many minutes."""
    done = {"n": 1, "action": "RebootNode", "state": "Done", "started": rfc3339(at(start)),
            "ended": rfc3339(at(start + reboot))}  # fmt: skip
    steps: dict[str, Any] = {
        "Quarantine": {"state": "Done", "started": rfc3339(at(start)), "finished": rfc3339(at(start))},
        "Repair": {"state": "Done", "attempts": [done]},
    }
    status: dict[str, Any] = {"phase": "Running" if end is None else "Succeeded", "steps": steps}
    if end is not None:
        status["endedAt"] = rfc3339(at(end))
    spec = {"node": {"name": node}, "pool": {"name": "train"}}
    return msgspec.convert({"metadata": {"name": f"{node}-a{start}"}, "spec": spec, "status": status}, NodeRepair)


def pool(name: str = "train", rule: str | None = "r", **spec: Any) -> RepairPool:
    full = {"nodeSelector": {"matchLabels": {"pool": "train"}}, **WIDE, **spec, **({"rule": rule} if rule else {})}
    return msgspec.convert({"metadata": {"name": name}, "spec": full}, RepairPool)


def fleet(count: int = 20, **labels: str) -> list[Node]:
    def node(name: str) -> Node:
        meta = {"name": name, "labels": {"pool": "train", **labels}}
        return msgspec.convert({"metadata": meta, "status": {"capacity": {"nvidia.com/gpu": "8"}}}, Node)

    return [node(f"n{i}") for i in range(count)]


def judged(
    *repairs: NodeRepair,
    pools: list[RepairPool] | None = None,
    nodes: list[Node] | None = None,
    since: datetime = START,
    answer: float = 30,
    **acts: float,
) -> Impact:
    given = Assumptions(timedelta(minutes=answer), {name: timedelta(minutes=m) for name, m in acts.items()})
    return impact(repairs, pools or [pool()], nodes if nodes is not None else fleet(), since, NOW, given)


def limits(found: Impact) -> dict[str, tuple[int, int]]:
    """Repairs and minutes of the longest wait, by limit."""
    return {limit.limit: (limit.repairs, limit.longest_seconds // 60) for limit in found.limits}


def test_one_repair_is_counted_by_fault_and_remedy_with_what_it_costs() -> None:
    found = judged(observed("n1"))
    (line,) = found.faults
    assert (line.fault, line.remedy, line.repairs, line.taken) == ("gpu.xid.79", "RebootNode", 1, 1)
    # cordon 1s, drain 5m, reboot 10m, soak 5m and a minute for the checks, uncordon 1s
    assert line.out_seconds == 21 * 60 + 2
    assert found.gpu_hours == round(8 * line.out_seconds / 3600, 1)
    assert (found.limits, found.gates, found.most_out) == ([], [], 1)


def test_nothing_observed_is_nothing() -> None:
    found = judged()
    assert (found.repairs, found.taken, found.faults, found.gpu_hours) == (0, 0, [], 0.0)


@pytest.mark.parametrize(
    ("repair", "counted"),
    [
        pytest.param(observed("n1", -1), 0, id="before the time asked about"),
        pytest.param(observed("n1", 1), 1, id="within it"),
        pytest.param(observed("n1", 1, 5), 1, id="ended"),
        pytest.param(observed("n1", 1, pool="other"), 0, id="of a pool that is not asked about"),
        pytest.param(acted("n1", 1, 9), 0, id="carried out in earnest"),
    ],
)
def test_which_records_count(repair: NodeRepair, counted: int) -> None:
    assert judged(repair).repairs == counted


@pytest.mark.parametrize(
    ("gates", "questions", "minutes"),
    [
        pytest.param({}, {}, 21, id="no gate"),
        pytest.param({"Drain": {"by": "People"}}, {("Drain", "People"): 1}, 51, id="one, with the node cordoned"),
        pytest.param({"Quarantine": {"by": "People"}}, {("Quarantine", "People"): 1}, 21, id="one before the cordon"),
        pytest.param(
            {"Drain": {"by": "PeopleAndJobs"}, "Unquarantine": {"by": "People"}},
            {("Drain", "PeopleAndJobs"): 1, ("Unquarantine", "People"): 1},
            81,
            id="two",
        ),
        pytest.param({"Drain": {"by": "Jobs"}}, {}, 21, id="jobs are no people"),
    ],
)
def test_gates_ask_and_take_as_long_as_an_answer(
    gates: dict[str, Any], questions: dict[tuple[str, str], int], minutes: int
) -> None:
    found = judged(observed("n1", gates=gates))
    assert {(g.step, g.by): g.times for g in found.gates} == questions
    assert found.faults[0].out_seconds // 60 == minutes


def test_an_act_that_cannot_be_undone_asks_people_although_the_rule_has_no_gate() -> None:
    repair = observed("n1", action="ReplaceNode")
    repair.spec.plan.steps[2].gate_irreversible = True
    assert [(g.step, g.by) for g in judged(repair).gates] == [("Repair", "People")]


@pytest.mark.parametrize(
    ("gone", "taken", "recovered"),
    [
        pytest.param(20, 0, 1, id="gone before the answer"),
        pytest.param(31, 1, 1, id="gone while it drains"),
        pytest.param(39, 1, 0, id="gone while it reboots"),
        pytest.param(None, 1, 0, id="never gone"),
    ],
)
def test_a_fault_that_goes_by_itself_in_time_is_no_repair(gone: float | None, taken: int, recovered: int) -> None:
    found = judged(observed("n1", 0, gone, gates={"Quarantine": {"by": "People"}}))
    assert (found.faults[0].taken, found.faults[0].recovered) == (taken, recovered)


CROWD = [observed(f"n{i}", i / 10) for i in range(4)]


@pytest.mark.parametrize(
    ("spec", "expected", "most"),
    [
        pytest.param({}, {}, 4, id="wide limits"),
        pytest.param({"maxParallelRepairs": 1}, {"maxParallelRepairs": (3, 44)}, 4, id="one repair at a time"),
        pytest.param({"maxUnavailable": 1}, {"maxUnavailable": (3, 62)}, 1, id="one node out at a time"),
        pytest.param({"maxUnavailable": "10%"}, {"maxUnavailable": (2, 20)}, 2, id="a share of the pool"),
        pytest.param({"minInterval": "10m"}, {"minInterval": (3, 29)}, 3, id="an interval"),
    ],
)
def test_caps_hold_at_every_instant_and_make_others_wait(
    spec: dict[str, Any], expected: dict[str, tuple[int, int]], most: int
) -> None:
    found = judged(*CROWD, pools=[pool(**spec)])
    assert limits(found) == expected
    assert (found.most_out, found.taken) == (most, 4)


def test_an_envelope_binds_beside_the_pool() -> None:
    found = judged(*CROWD, pools=[pool(), pool("ceiling", rule=None, maxUnavailable=1)])
    assert limits(found).keys() == {"maxUnavailable"}
    assert found.most_out == 1


def test_what_really_was_under_repair_takes_up_room() -> None:
    found = judged(acted("n9", -5, 60), observed("n1", 0), pools=[pool(maxUnavailable=1)])
    assert limits(found) == {"maxUnavailable": (1, 60)}


def test_the_breaker_lets_nothing_start_while_too_many_are_sick() -> None:
    many = [observed(f"n{i}", 0, 60 if i < 8 else None) for i in range(10)]
    found = judged(*many, pools=[pool(breaker={"threshold": "100%", "maxNodes": 5, "cooldown": "15m"})])
    # 8 of them are gone after an hour, and the breaker rests for its cooldown before it lets a trial through
    assert limits(found)["Breaker"] == (10, 75 + 21)
    assert (found.taken, found.faults[0].recovered) == (2, 8)


def test_a_breaker_that_waits_for_a_person_blocks_to_the_end() -> None:
    many = [observed(f"n{i}", 0) for i in range(10)]
    found = judged(*many, pools=[pool(breaker={"threshold": "100%", "maxNodes": 5, "reset": "Manual"})])
    assert [(limit.limit, limit.waiting) for limit in found.limits] == [("Breaker", 10)]
    assert (found.taken, found.faults[0].waiting, found.gpu_hours) == (0, 10, 0.0)


def test_a_storm_blocks_those_with_the_shared_cause() -> None:
    many = [observed(f"n{i}", i / 60, 30) for i in range(5)]
    found = judged(*many, pools=[pool(storm={"nodes": 5, "window": "60s"}, maxParallelRepairs=1)])
    assert limits(found)["Storm"] == (4, 29)
    # the first drains already when the fifth comes, and goes on; the others recover by themselves, cordoned or not
    assert (found.taken, found.most_out, found.faults[0].recovered) == (4, 4, 4)


def test_a_window_makes_it_wait_for_its_opening() -> None:
    window = {"cron": "0 2 * * *", "duration": "2h"}  # START is noon
    found = judged(observed("n1"), pools=[pool(windows=[window])])
    assert limits(found) == {"Window": (1, 14 * 60)}


def test_a_repeat_offender_goes_where_its_pool_says() -> None:
    again = [observed("n1", i * 600, i * 600 + 300) for i in range(3)]
    budget = {"perNode": {"repairs": 2, "window": "7d"}, "then": "RepairHardware"}
    found = judged(*again, pools=[pool(budgets=budget)])
    assert limits(found) == {"budgets.perNode": (1, 0)}
    assert sorted(line.remedy for line in found.faults) == ["RebootNode", "RepairHardware"]


def test_a_rule_that_does_not_return_nodes_keeps_them_out_to_this_day() -> None:
    found = judged(observed("n1", steps=("Quarantine", "Drain", "Repair", "Validate")))
    assert found.faults[0].out_seconds == int((NOW - START).total_seconds())


def test_a_service_restart_takes_no_node_out() -> None:
    found = judged(observed("n1", action="RestartService", steps=("Repair", "Validate")))
    assert (found.repairs, found.taken, found.gpu_hours) == (1, 0, 0.0)


def test_a_node_that_is_gone_costs_nothing_any_more() -> None:
    found = judged(observed("n99"))
    assert (found.taken, found.gpu_hours) == (1, 0.0)


@pytest.mark.parametrize(
    ("records", "given", "span", "measured"),
    [
        pytest.param([], {}, "10m", [], id="as published"),
        pytest.param([acted(f"m{i}", -99, -90) for i in range(3)], {}, "6m", ["RebootNode"], id="as measured"),
        pytest.param([acted(f"m{i}", -99, -90) for i in range(2)], {}, "10m", [], id="too few to measure"),
        pytest.param(
            [acted(f"m{i}", -99, -90) for i in range(3)], {"RebootNode": 20}, "20m", [], id="as the user says"
        ),
    ],
)
def test_durations_are_measured_where_they_can_be(
    records: list[NodeRepair], given: dict[str, float], span: str, measured: list[str]
) -> None:
    found = judged(observed("n1"), *records, **given)
    assert found.assumed["RebootNode"] == span
    assert [name for name in found.measured if name == "RebootNode"] == measured


def test_every_remedy_has_a_typical_time() -> None:
    from sickbay.api.actions import ACTIONS

    assert ACTS.keys() == ACTIONS.keys()


def test_the_order_of_the_records_decides_nothing() -> None:
    many = [observed(f"n{i}", i % 3, 40 + i) for i in range(12)]
    tight = [pool(maxUnavailable=2, maxParallelRepairs=1)]
    assert judged(*many, pools=tight) == judged(*reversed(many), pools=tight)


def stored(cluster: Cluster, node: str, started: datetime) -> None:
    steps: list[dict[str, Any]] = [{"step": "Quarantine"}, {"step": "Drain", "approval": {}}]
    steps += [{"step": "Repair", "action": "RebootNode"}, {"step": "Validate"}, {"step": "Unquarantine"}]
    spec = {"node": {"name": node}, "pool": {"name": "train"}, "faults": [{"type": "gpu.xid.79"}]}
    status = {"phase": "WouldAct", "startedAt": rfc3339(started)}
    cluster.own("NodeRepair", f"{node}-1", {**spec, "plan": {"steps": steps}}, status)


async def test_the_command_answers_from_the_cluster(cluster: Cluster) -> None:
    cluster.own("RepairPool", "train", {"nodeSelector": {"matchLabels": {"pool": "train"}}, "rule": "r"})
    now = SystemClock().now()
    for name, hours in (("n1", 50), ("n2", 49), ("n3", 24 * 8)):
        cluster.node(name)
        stored(cluster, name, now - timedelta(hours=hours))
    answer = await cluster.run("impact", "--since", "7d", "--time", "RebootNode=20m")
    assert answer.code == 0, answer.err
    assert "2 observed repairs of 2 nodes; Act would have taken out 2, at most 1 at once" in answer.out
    assert "Gate before Drain: People would have been asked 2 times" in answer.out
    assert "RebootNode 20m" in answer.out
    found = json.loads((await cluster.run("impact", "train", "--since", "30d", "-o", "json")).out)
    assert (found["repairs"], found["faults"][0]["fault"]) == (3, "gpu.xid.79")


async def test_a_cluster_that_observed_nothing_says_so(cluster: Cluster) -> None:
    answer = await cluster.run("impact")
    assert (answer.code, "nothing was observed" in answer.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param(["nope"], 1, "there is no RepairPool 'nope' with a rule; known: none", id="no such pool"),
        pytest.param(["--since", "soon"], 2, "not a duration", id="no duration"),
        pytest.param(["--time", "Pray=1h"], 2, "no action 'Pray'", id="no action"),
    ],
)
async def test_what_is_wrong_is_one_line(cluster: Cluster, arguments: list[str], code: int, says: str) -> None:
    answer = await cluster.run("impact", *arguments)
    assert (answer.code, says in answer.err, "Traceback" in answer.err) == (code, True, False), answer.err
