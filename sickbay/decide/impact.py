"""What Act would have done: the records of Observe, replayed (`forecast`) and counted.

The answer to the question that stands before `mode: Act`: how many nodes would have been taken, by which fault and
remedy, whom would that have asked, which limits would have stood in the way, and what would it have cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sickbay.api.core import Node
from sickbay.api.duration import format_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import Phase, Step
from sickbay.clock import parse_time, rfc3339
from sickbay.decide import slots
from sickbay.decide.forecast import WAITING, Course, Replay
from sickbay.decide.typicaltimes import Times, typical


@dataclass
class Line:
    """One fault with one remedy."""

    fault: str
    remedy: str
    repairs: int = 0
    nodes: int = 0
    """Different nodes."""
    taken: int = 0
    """Repairs in which the node would have left service."""
    recovered: int = 0
    """Repairs in which the fault would have gone before anything was repaired."""
    waiting: int = 0
    """Repairs that would wait for a limit to this moment."""
    out_seconds: int = 0
    gpu_hours: float = 0.0


@dataclass
class Limit:
    """A limit that would have been in the way."""

    limit: str
    repairs: int
    longest_seconds: int
    """The longest wait that it would have caused."""
    waiting: int
    """Repairs that would wait for it to this moment."""


@dataclass
class Gate:
    """A question that would have been asked."""

    step: str
    by: str
    times: int


@dataclass
class Impact:
    since: str
    until: str
    pools: list[str]
    repairs: int = 0
    nodes: int = 0
    taken: int = 0
    gpu_hours: float = 0.0
    most_out: int = 0
    """The most nodes out of service at one moment."""
    faults: list[Line] = field(default_factory=list)
    gates: list[Gate] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    assumed: dict[str, str] = field(default_factory=dict)
    """Durations that the answer rests on."""
    measured: list[str] = field(default_factory=list)
    """Those of them that are medians of this cluster's own repairs."""


@dataclass(frozen=True)
class Assumptions:
    """What the user says about durations."""

    answer: timedelta
    acts: Mapping[str, timedelta] = field(default_factory=dict)


def impact(
    repairs: Iterable[NodeRepair],
    pools: Iterable[RepairPool],
    nodes: Iterable[Node],
    since: datetime,
    now: datetime,
    assumptions: Assumptions,
) -> Impact:
    """Judge all repairs that were observed since then, in these pools. `pools` are those asked about and envelopes."""
    records, by_name, chosen = list(repairs), {n.name: n for n in nodes}, list(pools)
    asked = {p.metadata.name for p in chosen if p.spec.rule}
    observed = [r for r in records if _observed(r, since) and r.spec.pool.name in asked]
    acted = [r for r in records if r.status.phase != Phase.WOULD_ACT]
    times = typical(acted, assumptions.answer, assumptions.acts)
    courses = Replay(chosen, by_name, times, now).run(observed, acted)
    found = Impact(rfc3339(since), rfc3339(now), sorted(asked))
    found.repairs, found.nodes = len(courses), len({c.node for c in courses})
    found.taken = sum(c.out is not None for c in courses)
    found.faults = _lines(courses, by_name)
    found.gpu_hours = round(sum(line.gpu_hours for line in found.faults), 1)
    found.most_out = _most_out(courses)
    found.gates, found.limits = _gates(courses), _limits(courses)
    found.assumed = _assumed(courses, times)
    found.measured = sorted(found.assumed.keys() & times.measured)
    return found


def _observed(repair: NodeRepair, since: datetime) -> bool:
    begun = repair.status.started_at or repair.metadata.creation_timestamp
    return repair.status.phase == Phase.WOULD_ACT and begun is not None and parse_time(begun) >= since


def gpus(node: Node | None) -> int:
    """GPUs a node has; 0 for a node that is gone."""
    if node is None:
        return 0
    amounts = (node.status.capacity.get(key, "0") for key in slots.GPU_RESOURCES)
    return sum(int(amount) for amount in map(str, amounts) if amount.isdigit())


def _lines(courses: Iterable[Course], nodes: Mapping[str, Node]) -> list[Line]:
    """By fault and remedy, the costliest first."""
    lines: dict[tuple[str, str], Line] = {}
    seen: dict[tuple[str, str], set[str]] = {}
    for course in courses:
        key = course.fault, course.action or "-"
        line = lines.setdefault(key, Line(*key))
        seen.setdefault(key, set()).add(course.node)
        line.repairs, line.nodes = line.repairs + 1, len(seen[key])
        line.taken += course.out is not None
        line.recovered += course.end == "SelfRecovered"
        line.waiting += course.end == WAITING
        spent = _spent(course).total_seconds()
        line.out_seconds += int(spent)
        line.gpu_hours = round(line.gpu_hours + gpus(nodes.get(course.node)) * spent / 3600, 2)
    return sorted(lines.values(), key=lambda line: (-line.gpu_hours, -line.repairs, line.fault, line.remedy))


def _spent(course: Course) -> timedelta:
    return course.back - course.out if course.out is not None and course.back is not None else timedelta(0)


def _most_out(courses: Iterable[Course]) -> int:
    """Nodes out of service at once; one that returns makes room for one that leaves at the same moment."""
    moments = [(c.out, 1) for c in courses if c.out is not None] + [(c.back, -1) for c in courses if c.back is not None]
    most = count = 0
    for _, change in sorted(moments):
        count += change
        most = max(most, count)
    return most


def _gates(courses: Iterable[Course]) -> list[Gate]:
    asked: dict[tuple[str, str], int] = {}
    for course in courses:
        for name in course.gates:
            step = course.repair.spec.plan.step(name)
            by = step.approval.by if step is not None and step.approval is not None else "People"
            asked[name, by] = asked.get((name, by), 0) + 1
    order = {str(step): i for i, step in enumerate(Step)}
    return [Gate(*key, times) for key, times in sorted(asked.items(), key=lambda item: order.get(item[0][0], 9))]


def _limits(courses: Iterable[Course]) -> list[Limit]:
    """By limit, the one that was in most repairs' way first."""
    found: dict[str, Limit] = {}
    for course in courses:
        for name, span in course.waited.items():
            limit = found.setdefault(name, Limit(name, 0, 0, 0))
            limit.repairs += 1
            limit.longest_seconds = max(limit.longest_seconds, int(span.total_seconds()))
        if course.end == WAITING and course.waited:
            found[next(reversed(course.waited))].waiting += 1
    return sorted(found.values(), key=lambda limit: (-limit.repairs, limit.limit))


def _assumed(courses: list[Course], times: Times) -> dict[str, str]:
    """The durations that were used: of the acts and steps of these repairs, and of an answer if one was asked for."""
    used = {c.action: times.act(c.action) for c in courses if c.action}
    for name in {step.step for c in courses for step in c.repair.spec.plan.steps} & times.steps.keys():
        used[name] = times.steps[name]
    if any(course.gates for course in courses):
        used["an answer"] = times.answer
    return {name: format_duration(span) for name, span in sorted(used.items())}
