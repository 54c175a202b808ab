"""Whether a pool lets a repair start now, and what it waits for if not.

Asked in this order, because the first answer is the one that people should read: is the pool's configuration in order,
is there a storm, is the breaker open, is it frozen, outside its windows, too soon after the last start, full?
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sickbay.api.core import Node
from sickbay.api.duration import parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import BreakerStatus, StormStatus
from sickbay.api.words import Phase, StepState, WaitsFor
from sickbay.clock import parse_time
from sickbay.decide import breaker, pacing, slots, storm, windows


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no start, in words, and the word for what is waited for."""

    why: str
    waits_for: WaitsFor = WaitsFor.SLOT
    until: datetime | None = None
    """When to ask again, where that is known."""


@dataclass(frozen=True)
class Moment:
    """A pool as it is at this moment."""

    view: slots.PoolView
    breaker: BreakerStatus
    storms: list[StormStatus]
    repairs: Iterable[NodeRepair]
    """Open and recent repairs of this pool."""
    now: datetime


def begun(repair: NodeRepair) -> bool:
    """True once a step of the repair has started: what follows is no start of a new repair."""
    return any(step.state in (StepState.RUNNING, StepState.DONE) for step in repair.status.steps.values())


def refusal(moment: Moment, repair: NodeRepair, nodes: Sequence[Node], kind: str) -> Refusal | None:
    """Why the pool grants no slot of this kind now; None when it does. Validation waits for its own cap only.

    nodes  the repair's node, or those of all members of its group
    """
    if kind != slots.VALIDATE:
        found = _start(moment, repair)
        if found is not None:
            return found
    why = slots.refusal(moment.view, nodes, kind)
    if not why and kind == slots.UNAVAILABLE:
        why = pacing.refusal(moment.view, nodes)
    return Refusal(why) if why else None


def _start(moment: Moment, repair: NodeRepair) -> Refusal | None:
    pool = moment.view.pool
    if not fits(moment.view):
        return Refusal("maxParallelRepairs is above what the breaker bears (condition LimitsFit): nothing starts")
    why = storm.refusal(moment.storms)
    if why:
        return Refusal(why, WaitsFor.STORM)
    why = breaker.refusal(moment.breaker, slots.owner(repair))
    if why:
        return Refusal(why, WaitsFor.BREAKER)
    why = windows.refusal(pool.spec.windows, moment.now)
    if why:
        return Refusal(why, WaitsFor.WINDOW)
    return None if begun(repair) else _new(moment, repair)


def _new(moment: Moment, repair: NodeRepair) -> Refusal | None:
    """What keeps only new repairs from starting."""
    spec = moment.view.pool.spec
    alone = storm.settled(moment.view.pool, moment.view.size, repair, moment.now)
    if alone is not None:
        return Refusal("whether other nodes show the same at this moment", WaitsFor.STORM, alone)
    others = [r for r in moment.repairs if slots.owner(r) != slots.owner(repair)]
    stuck = next((r for r in others if not r.ended and r.status.phase == Phase.NEEDS_HUMAN), None)
    if spec.freeze_on_failure and stuck is not None:
        return Refusal(f"frozen: {stuck.metadata.name} needs people (freezeOnFailure)")
    gap = parse_duration(spec.min_interval)
    starts = [parse_time(start) for r in others if (start := first_start(r)) is not None]
    if gap and starts and moment.now < max(starts) + gap:
        return Refusal(f"the last repair of the pool started less than {spec.min_interval} ago (minInterval)")
    return None


def first_start(repair: NodeRepair) -> str | None:
    """When the repair's first step started."""
    return min((step.started for step in repair.status.steps.values() if step.started), default=None)


def fits(view: slots.PoolView) -> bool:
    """The interlock: a breaker that opens below what may be repaired at once could never let repairs go on.

    The API server judges count against count and percent against percent; here mixed units are judged too.
    """
    if view.size == 0:
        return True
    return breaker.limit(view.pool, view.size) >= min(slots.limit_of(view, slots.REPAIR), view.size) or _shares(view)


def _shares(view: slots.PoolView) -> bool:
    """Percent against percent was judged as written; rounding in a small pool does not make it wrong."""
    spec = view.pool.spec
    return isinstance(spec.max_parallel_repairs, str) and isinstance(spec.breaker.threshold, str)
