"""One look at one open repair: what is known (`View`), and the copy of the record that the look changes (`Work`).

The functions of `progress` and its siblings read the View, change the Work, and return. Nothing here talks to anybody:
the controller writes the difference between the record before and after, and does what `Work` asks for beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.fault_type import FaultType
from sickbay.api.meta import Condition
from sickbay.api.node_repair import NodeRepair, NodeRepairStatus
from sickbay.api.repair_plan import Plan, PlanStep
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_step import MOST_ATTEMPTS, Attempt, Current, Report, StepStatus
from sickbay.api.words import Phase, Step, StepState
from sickbay.clock import parse_time, rfc3339
from sickbay.decide.faults import Active
from sickbay.decide.gangs import Tenants
from sickbay.decide.jobgate import JobsWait

if TYPE_CHECKING:
    from sickbay.decide.group import GroupView

REMIND = "Remind"
"""What happens at the deadline of a wait that only an outsider can end."""
TOLD_AGAIN = timedelta(hours=24)
"""How often people are told again of a wait whose end nobody can foresee (a slot, a Hold): at least this often."""


@dataclass(frozen=True)
class View:
    """Everything a decision about one repair may depend on, as it is at `now`."""

    now: datetime
    node: Node | None
    """The Node of that name, whoever it is; None when there is none."""
    active: list[Active] = field(default_factory=list)
    """Its active faults, the leading one first."""
    types: Mapping[str, FaultType] = field(default_factory=dict)
    pool: RepairPool | None = None
    slots: frozenset[str] = frozenset()
    """Kinds of slots that the repair holds in its pool and in every envelope."""
    hold: str = ""
    """Level of the strictest Hold on the node, "" for none."""
    hold_reason: str = ""
    observe: bool = False
    """Its pool only observes the leading fault."""
    unowned: str = ""
    """Why its pool has no say over the node any more; "" while it has. In a group that has begun: over any member's."""
    acting: str = ""
    """A fault of the node that would be acted on now, though this repair only observes; "" when there is none."""
    hands_off: str = ""
    """Why nothing may be started on the node, whatever is wrong with it (opt-out, another system takes it away)."""
    joins: frozenset[str] | None = None
    """Active faults that may join the repair: a rule matches them, in the repair's own mode, and neither their `for`
    nor what a person decided keeps them back. None = all."""
    seen: Mapping[str, datetime] = field(default_factory=dict)
    """Since when each active fault has been seen without a break, by our own clock."""
    pause: Callable[[], timedelta] = lambda: timedelta(minutes=30)
    """How long the node waits for its next repair when this one is rolled back."""
    history: Callable[[], str] = lambda: ""
    """Earlier incidents of the node, in words."""
    replan: Callable[[Active], Plan | None] = lambda _: None
    """The plan for another leading fault under the rules of now; None when no rule matches it."""
    automation: tuple[str, ...] = names.AUTOMATION
    """User names, as patterns, whose hand on our mark is no person's."""
    tenants: Tenants | None = None
    """The jobs on the node, for an urgency that waits for them; None while they are not known."""
    provider_date: datetime | None = None
    """The earliest moment at which a provider acts on the machine by itself."""
    jobs: Callable[[str, int, datetime], JobsWait | None] = lambda _step, _attempt, _asked: None
    """The jobs' part of a gate of this step and attempt that was asked then; None when it is answered."""
    group: GroupView | None = None
    """The other members of its group; None where it has none."""
    claimed_by: NodeRepair | None = None
    """The leader of another group that names this node as a member and may take the repair over."""

    @property
    def withdrawn(self) -> str:
        """Why no step may begin any more under the pool; "" when steps may."""
        if self.unowned or not self.observe:
            return self.unowned
        return f"pool {self.pool.metadata.name if self.pool is not None else ''} only observes this fault now"


@dataclass(frozen=True, slots=True)
class Note:
    """An Event to publish on the node."""

    reason: str
    message: str
    warning: bool = False


@dataclass
class Work:
    """The record as it will be, and what has to be done beside writing it."""

    repair: NodeRepair
    view: View
    node_ops: list[dict[str, Any]] = field(default_factory=list)
    """JSON patch for the Node: decide writes nothing there but the approval label and its binding."""
    notes: list[Note] = field(default_factory=list)
    wants: str = ""
    """Kind of slot it needs before it can go on."""
    wants_isolation: bool = False
    """A card of it should be isolated, which needs a slot; the plan goes on without it."""
    requeue_at: datetime | None = None

    @property
    def now(self) -> datetime:
        return self.view.now

    @property
    def status(self) -> NodeRepairStatus:
        return self.repair.status

    @property
    def plan(self) -> Plan:
        return self.repair.spec.plan

    @property
    def node(self) -> Node:
        """The node of the incident; callers have made sure that it is there (`hand.node_lost`)."""
        assert self.view.node is not None
        return self.view.node

    @property
    def current(self) -> Current:
        return self.repair.status.current

    @property
    def acted(self) -> bool:
        """Repair has begun once: the node returns only when it is validated, or by a person's hand."""
        return bool(self.repair.status.step(Step.REPAIR).attempts)

    def step(self, name: str) -> PlanStep:
        """The plan's settings for a step; the defaults for a step that is only implied (Validate)."""
        return next((s for s in self.plan.steps if s.step == name), PlanStep(step=name))

    def state(self, name: str) -> StepStatus:
        return self.repair.status.steps.setdefault(name, StepStatus())

    def is_state(self, name: str, *states: StepState) -> bool:
        found = self.repair.status.steps.get(name)
        return found is not None and found.state in states

    def report(self) -> Report | None:
        """What execute says about the current step, attempt and plan; None for anything older.

        An attempt of Repair is the same one under every generation of the plan (its key is used once).
        """
        report = self.state(self.current.step).report
        if not report.state or report.attempt != self.current.attempt:
            return None
        same_plan = self.current.step == Step.REPAIR or report.plan_generation == self.ordered_under
        return report if same_plan else None

    @property
    def ordered_under(self) -> int:
        """Generation of the plan that the step at hand belongs to."""
        return self.current.plan_generation or self.plan.generation

    def follow(self, plan: Plan) -> None:
        """Let this plan take the place of the one at hand, under the next generation; what comes next belongs to it."""
        generation = self.plan.generation + 1
        self.repair.spec.plan = msgspec.structs.replace(plan, generation=generation)
        self.current.plan_generation = generation

    def moment(self, text: str | None) -> datetime:
        """A time of the record; `now` where it is missing."""
        return parse_time(text) if text else self.now

    def wait(self, phase: Phase, waits_for: str, message: str, on_deadline: str, deadline: datetime) -> None:
        """Stand here until something changes, or the deadline, whichever comes first."""
        self.status.phase = phase
        self.status.message = message
        current = self.current
        current.waits_for = waits_for
        current.on_deadline = on_deadline
        current.deadline = rfc3339(deadline)
        self.wake(deadline)

    def wait_on(self, phase: Phase, waits_for: str, message: str, going_on: bool) -> None:
        """Stand here for as long as it takes; people are told again each time the deadline passes.

        going_on  this very wait has begun before, so its deadline stands
        """
        current = self.current
        known = parse_time(current.deadline) if current.deadline and going_on else None
        if known is not None and known <= self.now:
            self.note(f"{current.step}{StepState.WAITING}", message)
        deadline = known if known is not None and known > self.now else self.now + TOLD_AGAIN
        self.wait(phase, waits_for, message, REMIND, deadline)

    def wake(self, at: datetime) -> None:
        """Look again at this moment at the latest."""
        at = max(at, self.now + timedelta(seconds=1))
        self.requeue_at = at if self.requeue_at is None else min(self.requeue_at, at)

    def set_condition(self, kind: str, status: str, reason: str, message: str = "") -> str:
        """Put a condition on the record. Returns since when it stands so."""
        found = self.status.condition(kind)
        since = found.last_transition_time if found is not None and found.status == status else None
        made = Condition(
            type=kind, status=status, reason=reason, message=message, last_transition_time=since or rfc3339(self.now)
        )
        self.status.conditions = [*(c for c in self.status.conditions if c.type != kind), made]
        return made.last_transition_time or ""

    def note(self, reason: str, message: str, warning: bool = False) -> None:
        self.notes.append(Note(reason, message, warning))

    def close_attempt(self, state: str) -> None:
        """Move the current step's attempt into its history (the last ones are kept)."""
        current, step = self.current, self.state(self.current.step)
        report = self.report()
        step.attempts.append(
            Attempt(
                n=current.attempt,
                plan_generation=report.plan_generation if report is not None else self.ordered_under,
                action=current.action,
                started=step.started,
                ended=rfc3339(self.now),
                state=state,
                proof=dict(report.proof) if report is not None else {},
            )
        )
        del step.attempts[:-MOST_ATTEMPTS]
