"""What one look at a running step needs and yields."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair, Prior
from sickbay.api.repair_plan import PlanStep
from sickbay.api.repair_step import BlockingPod, Current, Offer, Report
from sickbay.api.words import FINAL_REPORTS, ReportState
from sickbay.clock import parse_time
from sickbay.execute.attempt import key_of
from sickbay.execute.permit import Permit


class Asked(Protocol):
    """Asks for a permit; `fresh` takes none that was given a moment ago."""

    def __call__(self, fresh: bool = False) -> Awaitable[Permit]: ...


@dataclass(frozen=True)
class Look:
    """One look at one running step."""

    repair: NodeRepair
    """Claimed for us; never older than our last write to it."""
    node: Node
    """The node of the incident, as the cache has it (never older than our last write to it)."""
    now: datetime
    resumed: bool
    """The claim is not of this term: what became of the act has to be looked up before anything is sent."""
    check: Callable[[], None]
    """Raises when we do not lead any more. Asked right before every write and every call."""
    permit: Asked
    """To be asked before each act: the record and the node as they are now. Raises when the act must not happen."""

    @property
    def current(self) -> Current:
        return self.repair.status.current

    @property
    def step(self) -> PlanStep:
        found = self.repair.spec.plan.step(self.current.step)
        return found if found is not None else PlanStep(step=self.current.step)

    @property
    def report(self) -> Report:
        return self.repair.status.step(self.current.step).report

    @property
    def key(self) -> str:
        """Idempotency key of this attempt."""
        return key_of(self.repair, self.current.step, self.current.attempt, self.current.action)

    @property
    def deadline(self) -> datetime:
        return (
            parse_time(self.current.deadline) if self.current.deadline else datetime.max.replace(tzinfo=self.now.tzinfo)
        )

    @property
    def late(self) -> bool:
        return self.now >= self.deadline


@dataclass(frozen=True, slots=True)
class Told:
    """An Event to publish on the node."""

    reason: str
    message: str
    warning: bool = True


@dataclass(frozen=True)
class Progress:
    """What a look found: the report to write, and when to look again."""

    state: ReportState
    message: str = ""
    proof: dict[str, str] = field(default_factory=dict)
    pods: list[BlockingPod] = field(default_factory=list)
    offers: list[Offer] = field(default_factory=list)
    """Gangs that the job loop is asked to move."""
    prior: Prior | None = None
    again: float = 10.0
    """Seconds until the next look, as long as the state is not an end."""
    events: tuple[Told, ...] = ()

    @property
    def ended(self) -> bool:
        return self.state in FINAL_REPORTS


def done(message: str, proof: dict[str, str] | None = None, prior: Prior | None = None) -> Progress:
    return Progress(ReportState.DONE, message, proof or {}, prior=prior)


def failed(message: str, proof: dict[str, str] | None = None) -> Progress:
    return Progress(ReportState.FAILED, message, proof or {})
