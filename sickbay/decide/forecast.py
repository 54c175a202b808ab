"""Observed repairs replayed as if the pools had acted: who starts when, what keeps them waiting, how long they are out.

A small simulation on the moments of the records. Each repair runs through its own recorded plan: a gate takes as long
as a person's answer, a step as long as is typical, and before each start `limits.refusal` is asked, the same function
that grants slots in earnest, with the breaker and the storms as they would have stood then. What really was under
repair at the time (other faults may have been in Act) takes up room as well.

Left out, because no record has it: drains that budgets block, remedies that do not help, cordons by others.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

import msgspec

from sickbay.api.actions import ACTIONS
from sickbay.api.core import Node
from sickbay.api.duration import parse_duration
from sickbay.api.node_repair import NodeRepair, NodeRepairStatus
from sickbay.api.repair_plan import PlanStep
from sickbay.api.repair_pool import RepairPool, RepairPoolStatus, Slot
from sickbay.api.repair_step import StepStatus
from sickbay.api.words import ApprovalBy, BudgetThen, Phase, Step, StepState, WaitsFor
from sickbay.clock import parse_time, rfc3339
from sickbay.decide import breaker, limits, slots, storm, windows
from sickbay.decide.plan import gate_of, validation_times
from sickbay.decide.typicaltimes import Times

TICK = timedelta(minutes=10)
"""How often those that wait look again when nothing else is known to change."""
BUDGET = "budgets.perNode"
STARTS = (Step.QUARANTINE, Step.DRAIN, Step.REPAIR)
"""Steps that are not begun any more once the fault is gone."""
REPAIRED, RECOVERED, LEFT = "Repaired", "SelfRecovered", "LeftQuarantined"
WAITING, RUNNING = "Waiting", "Running"


@dataclass
class Course:
    """What would have become of one observed repair."""

    repair: NodeRepair
    start: datetime
    gone: datetime
    """When the fault was gone by itself, or the end of the replay."""
    action: str
    gates: list[str] = field(default_factory=list)
    """Steps before which somebody would have been asked."""
    waited: dict[str, timedelta] = field(default_factory=dict)
    """Time spent waiting, by the limit that was in the way."""
    out: datetime | None = None
    """When the node would have left service; None when it would have stayed."""
    back: datetime | None = None
    end: str = WAITING
    """Repaired, SelfRecovered, LeftQuarantined; or where it would stand at the end of the replay."""

    @property
    def name(self) -> str:
        return self.repair.metadata.name

    @property
    def node(self) -> str:
        return self.repair.spec.node.name

    @property
    def pool(self) -> str:
        return self.repair.spec.pool.name

    @property
    def fault(self) -> str:
        return self.repair.spec.faults[0].type if self.repair.spec.faults else "-"


@dataclass(frozen=True, slots=True)
class _Pause:
    """The course goes on after this time."""

    span: timedelta


@dataclass(frozen=True, slots=True)
class _Need:
    """The course goes on with a slot of this kind, and with no other; "" = with none."""

    kind: str


@dataclass
class _Running:
    """A course on its way."""

    course: Course
    steps: Iterator[_Pause | _Need]
    record: NodeRepair
    """What the limits look at: which steps have begun."""
    kind: str = ""
    why: str = ""
    since: datetime | None = None


class Replay:
    """One replay, up to `until`. Settings are those that the pools have now."""

    def __init__(self, pools: Iterable[RepairPool], nodes: Mapping[str, Node], times: Times, until: datetime) -> None:
        self._pools = {p.metadata.name: msgspec.structs.replace(p, status=RepairPoolStatus()) for p in pools}
        self._nodes = nodes
        self._members = {name: frozenset(n for n in nodes if _selects(p, nodes[n])) for name, p in self._pools.items()}
        self._times = times
        self._until = self._now = until
        self._heap: list[tuple[datetime, int, _Running | None]] = []
        self._order = count()
        self._ticking = False
        self._waiting: list[_Running] = []
        self._really_out: list[tuple[str, datetime, datetime]] = []
        self._out: dict[str, str] = {}
        """Nodes out of service by the repair that keeps them out."""
        self._sick: dict[str, Course] = {}
        self._records: dict[str, NodeRepair] = {}
        self._open: dict[str, dict[str, NodeRepair]] = {}
        """Records of each pool that have not ended, and the one that started last."""
        self._acts: dict[str, list[datetime]] = {}

    def run(self, observed: Iterable[NodeRepair], acted: Iterable[NodeRepair] = ()) -> list[Course]:
        """Replay them; the courses in the order of their starts."""
        courses = sorted((_course(r, self._until) for r in observed), key=lambda c: (c.start, c.name))
        self._really_out = [each for r in acted if (each := _time_out(r, self._until)) is not None]
        for course in courses:
            record = msgspec.structs.replace(course.repair, status=NodeRepairStatus(phase=Phase.PENDING.value))
            self._at(course.start, _Running(course, self._steps(course), record))
        while self._heap:
            self._now, _, running = heapq.heappop(self._heap)
            if self._now >= self._until:
                break
            if running is None:
                self._ticking = False
            else:
                self._go_on(running)
            self._retry()
        self._now = self._until
        self._close(courses)
        return courses

    # What one repair does.

    def _steps(self, course: Course) -> Iterator[_Pause | _Need]:
        """The course, a wait at a time. Its code runs as the replay gets there."""
        acted = False
        for step in course.repair.spec.plan.steps:
            if step.step == Step.REPAIR and not course.action:
                continue
            if step.step in STARTS and self._over(course):
                break
            yield from self._gate(course, step)
            yield _Need(_slot_of(step, course.action))
            if step.step in STARTS and self._over(course):
                break
            self._enter(course, step)
            acted = acted or step.step == Step.REPAIR
            yield _Pause(self._duration(course, step))
            if step.step == Step.UNQUARANTINE:
                course.back = self._now
        if not acted and course.out is not None and course.back is None and self._over(course):
            yield _Need("")
            yield _Pause(self._duration(course, PlanStep(step=Step.VALIDATE)))
            course.back = self._now
        self._leave(course, acted)

    def _gate(self, course: Course, step: PlanStep) -> Iterator[_Pause | _Need]:
        gate = gate_of(step, course.action if step.step == Step.REPAIR else "")
        if gate is None or gate.by == ApprovalBy.JOBS:
            return
        course.gates.append(step.step)
        yield _Need("")
        still_there = course.gone - self._now if step.step in STARTS else self._times.answer
        yield _Pause(max(timedelta(0), min(self._times.answer, still_there)))

    def _over(self, course: Course) -> bool:
        """The fault is gone by itself by now: nothing further begins."""
        return self._now >= course.gone

    def _enter(self, course: Course, step: PlanStep) -> None:
        if step.step == Step.QUARANTINE:
            course.out = self._now
            self._out[course.name] = course.node
        if step.step == Step.REPAIR:
            self._spend(course)
        begun = StepStatus(state=StepState.RUNNING.value, started=rfc3339(self._now))
        self._records[course.name].status.steps[step.step] = begun

    def _spend(self, course: Course) -> None:
        """Count the act in the node's budget; a repeat offender goes where its pool says."""
        pool, done = self._pools.get(course.pool), self._acts.setdefault(course.node, [])
        if pool is not None:
            budget = pool.spec.budgets.per_node
            since = self._now - parse_duration(budget.window)
            if sum(1 for at in done if at >= since) >= budget.repairs:
                course.waited.setdefault(BUDGET, timedelta(0))
                hardware = pool.spec.budgets.then == BudgetThen.REPAIR_HARDWARE
                course.action = "RepairHardware" if hardware else "None"
        done.append(self._now)

    def _duration(self, course: Course, step: PlanStep) -> timedelta:
        if step.step == Step.REPAIR:
            return self._times.act(course.action)
        if step.step == Step.VALIDATE:
            return self._times.validate(parse_duration(validation_times(course.repair.spec.plan, course.action)[1]))
        return self._times.steps.get(step.step, timedelta(0))

    def _leave(self, course: Course, acted: bool) -> None:
        """The repair is over: what it held is free again."""
        left = course.out is not None and course.back is None
        course.end = LEFT if left else REPAIRED if acted else RECOVERED
        if self._sick.get(course.node) is course:
            del self._sick[course.node]
        if not left:
            self._out.pop(course.name, None)
        self._records[course.name].status.phase = (Phase.SUCCEEDED if acted else Phase.CANCELLED).value
        self._hold(course.name, "")

    # How the replay goes on.

    def _go_on(self, running: _Running) -> None:
        """Let a course run until it has to wait. What begins at one moment is all sick before any of it starts."""
        course = running.course
        if course.name not in self._records:
            self._records[course.name] = self._open.setdefault(course.pool, {})[course.name] = running.record
            self._sick[course.node] = course
            self._at(self._settled(course, running.record), running)
            return
        for wait in running.steps:
            if isinstance(wait, _Pause):
                self._at(self._now + wait.span, running)
                return
            running.kind = wait.kind
            self._hold(course.name, wait.kind)
            if not self._granted(running):
                running.since = self._now
                self._waiting.append(running)
                return

    def _settled(self, course: Course, record: NodeRepair) -> datetime:
        pool = self._pools.get(course.pool)
        until = storm.settled(pool, len(self._members[course.pool]), record, self._now) if pool is not None else None
        return until or self._now

    def _hold(self, repair: str, kind: str) -> None:
        """Give back the repair's slots of every other kind."""
        for pool in self._pools.values():
            if any(s.repair == repair and s.kind != kind for s in pool.status.slots):
                pool.status.slots = [s for s in pool.status.slots if s.repair != repair or s.kind == kind]

    def _has(self, pool: str, repair: str, kind: str) -> bool:
        return any((slot.repair, slot.kind) == (repair, kind) for slot in self._pools[pool].status.slots)

    def _granted(self, running: _Running) -> bool:
        course, kind = running.course, running.kind
        running.why = ""
        if not kind:
            return True
        bound = self._bound(course)
        missing = [n for n in bound if not self._has(n, course.name, kind)]
        node = self._nodes.get(course.node) or _named(course.node)
        for name in missing:
            refused = limits.refusal(self._moment(name), running.record, [node], kind)
            if refused is not None:
                running.why = _word(refused, kind)
                return False
        for name in missing:
            pool = self._pools[name]
            slot = Slot(repair=course.name, node=course.node, kind=kind, since=rfc3339(self._now))
            pool.status.slots = [*pool.status.slots, slot]
            pool.status.breaker = breaker.with_trial(pool.status.breaker, course.name)
        return True

    def _moment(self, name: str) -> limits.Moment:
        """The pool as it would have stood now, with its breaker and storms brought up to date."""
        pool, members = self._pools[name], self._members[name]
        sick = [c for c in self._sick.values() if c.pool == name or c.node in members]
        out = {node for repair, node in self._out.items() if node in members or repair in self._open.get(name, {})}
        out |= {n for n, since, until in self._really_out if n in members and since <= self._now < until}
        trial = self._records.get(pool.status.breaker.trial)
        pool.status.breaker = breaker.judge(pool, len(members), len(sick), trial, self._now)
        pool.status.storms = storm.judge(pool, [self._onset(c) for c in sick], self._now)
        view = slots.PoolView(pool, len(members), frozenset(out))
        return limits.Moment(view, pool.status.breaker, pool.status.storms, self._recent(name), self._now)

    def _recent(self, pool: str) -> list[NodeRepair]:
        """The records that a limit may look at: what is open, and what started last."""
        records = self._open.get(pool, {})
        last = max((r for r in records.values() if limits.first_start(r)), key=_started, default=None)
        for name in [n for n, r in records.items() if r.ended and r is not last]:
            del records[name]
        return list(records.values())

    def _onset(self, course: Course) -> storm.Onset:
        node = self._nodes.get(course.node)
        return storm.Onset(course.node, course.fault, course.start, node.labels if node is not None else {})

    def _bound(self, course: Course) -> list[str]:
        """The repair's own pool, and the envelopes of its node."""
        own = [course.pool] if course.pool in self._pools else []
        envelopes = [n for n, p in self._pools.items() if not p.spec.rule and course.node in self._members[n]]
        return [*own, *(n for n in envelopes if n != course.pool)]

    def _retry(self) -> None:
        """Those that wait ask again, in the order in which they began, until nobody gets any further."""
        moved = True
        while moved:
            waiting, self._waiting, moved = self._waiting, [], False
            for running in waiting:
                why = running.why
                if self._over(running.course) or self._granted(running):
                    self._waited(running, why)
                    self._go_on(running)
                    moved = True
                    continue
                if running.why != why:
                    self._waited(running, why)
                    running.since = self._now
                self._waiting.append(running)
        if self._waiting and not self._ticking:
            self._ticking = True
            heapq.heappush(self._heap, (self._next_change(), next(self._order), None))

    def _waited(self, running: _Running, why: str) -> None:
        waited, since = running.course.waited, running.since or self._now
        waited[why] = waited.get(why, timedelta(0)) + (self._now - since)

    def _next_change(self) -> datetime:
        """The next moment at which time alone may let somebody start."""
        moments = [self._now + TICK]
        moments += [r.course.gone for r in self._waiting if r.course.gone > self._now]
        for name in {each for running in self._waiting for each in self._bound(running.course)}:
            pool = self._pools[name]
            change = windows.next_change(pool.spec.windows, self._now)
            moments += [change] if change is not None else []
            cooled = breaker.cooled(pool.status.breaker, pool, self._now)
            moments += [self._now + cooled] if cooled else []
        return max(min(moments), self._now + timedelta(seconds=1))

    def _at(self, moment: datetime, running: _Running) -> None:
        heapq.heappush(self._heap, (moment, next(self._order), running))

    def _close(self, courses: list[Course]) -> None:
        """The replay ends at the present: what waits has waited until then, and what is out is out until then."""
        for running in self._waiting:
            self._waited(running, running.why)
        held = {running.course.name for running in self._waiting}
        for course in courses:
            if course.end == WAITING and course.name not in held and course.out is not None:
                course.end = RUNNING
            if course.out is not None and (course.back is None or course.back > self._until):
                course.back = self._until


def _course(repair: NodeRepair, until: datetime) -> Course:
    started = repair.status.started_at or repair.metadata.creation_timestamp or rfc3339(until)
    ended = parse_time(repair.status.ended_at) if repair.status.ended_at else until
    step = repair.spec.plan.step(Step.REPAIR)
    return Course(repair, parse_time(started), ended, (step.action or "") if step is not None else "")


def _time_out(repair: NodeRepair, until: datetime) -> tuple[str, datetime, datetime] | None:
    """From when to when a repair that was carried out kept its node out of service."""
    started = repair.status.step(Step.QUARANTINE).started
    ended = repair.status.ended_at
    return (repair.spec.node.name, parse_time(started), parse_time(ended) if ended else until) if started else None


def _selects(pool: RepairPool, node: Node) -> bool:
    return not pool.spec.node_selector.empty and pool.spec.node_selector.matches(node.labels)


def _started(repair: NodeRepair) -> str:
    return limits.first_start(repair) or ""


def _named(name: str) -> Node:
    """A node that is gone: its name is all that the limits ask for."""
    return msgspec.convert({"metadata": {"name": name}}, Node)


def _slot_of(step: PlanStep, action: str) -> str:
    """The kind of slot a step needs, as in `wants`. Validations are not modelled: their own cap is wide."""
    if step.step == Step.REPAIR:
        known = ACTIONS.get(action)
        return slots.REPAIR if known is None or known.disruptive or action.startswith("Restart") else ""
    if step.step == Step.QUARANTINE:
        return slots.UNAVAILABLE
    return slots.REPAIR if step.step == Step.DRAIN else ""


def _word(refused: limits.Refusal, kind: str) -> str:
    """The limit that refuses: the setting's name, or the word of `waitsFor`."""
    if refused.waits_for != WaitsFor.SLOT:
        return str(refused.waits_for)
    for setting in ("minInterval", "freezeOnFailure", "LimitsFit"):
        if setting in refused.why:
            return setting
    return "maxUnavailable" if kind == slots.UNAVAILABLE else "maxParallelRepairs"
