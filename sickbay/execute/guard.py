"""What must hold at the moment of an act, as pure judgements over what was read just before it.

Between the decision and the act lies time: a person may have cancelled, a Hold may have been set, the node may be
another one by now. `permit` reads all of that from the server; here is what it judges by.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sickbay.api import holds, names, resolution
from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.markers import leaving_by
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import denied, taken_back
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import HoldLevel, Mode, Phase, Step, StepState, WaitsFor
from sickbay.execute.attempt import is_current

RELEASES = (Step.VALIDATE, Step.UNQUARANTINE)
"""Steps on the way back into service: only a Hold of level EveryAct stops them."""

HOLD_AGAIN = 60.0
"""Seconds until a held act is considered again; the end of a Hold is noticed at once through its watch."""


class Stopped(Exception):
    """The act must not happen now; the text says why, `waits_for` is the word for it. Considered again later."""

    def __init__(self, why: str, waits_for: str = "", again: float = 30.0, lost_to: str = "") -> None:
        super().__init__(why)
        self.lost_to = lost_to
        """Who has the node's shared Lease, where that is what stops it."""
        self.waits_for = waits_for
        self.again = again


class Superseded(Exception):
    """The record has moved on: this attempt is not the current one any more."""


def in_work(repair: NodeRepair) -> bool:
    """True when the record asks for something to be done."""
    current = repair.status.current
    running = bool(current.step) and repair.status.step(current.step).state == StepState.RUNNING
    return running and repair.follows_plan


def to_restore(repair: NodeRepair) -> bool:
    """True when decide asks for our mark to be put back."""
    known = repair.status.restored
    return known is not None and not known.done and not repair.ended and repair.status.phase != Phase.CANCELLING


def releasing(repair: NodeRepair) -> bool:
    """On the way back into service, or being rolled back."""
    return repair.status.current.step in RELEASES or repair.status.phase == Phase.CANCELLING


def same_attempt(known: NodeRepair, fresh: NodeRepair) -> None:
    """Raise Superseded unless the fresh record still asks for the attempt that is known."""
    if not asks_for_the_same(known, fresh):
        raise Superseded("the record has moved on")
    if fresh.metadata.deletion_timestamp is not None and not releasing(fresh):
        raise Superseded("the record is being deleted, which cancels the repair")
    if resolution.cancelled(fresh) and not releasing(fresh):
        raise Superseded("a person has said that the repair is cancelled")


def asks_for_the_same(known: NodeRepair, fresh: NodeRepair) -> bool:
    """True when the fresh record asks for the attempt that is known."""
    now, then = fresh.status.current, known.status.current
    same = fresh.metadata.uid == known.metadata.uid and (now.step, now.stage, now.attempt) == (
        then.step,
        then.stage,
        then.attempt,
    )
    return same and in_work(fresh) and fresh.spec.plan.generation == known.spec.plan.generation


def check_node(repair: NodeRepair, node: Node | None) -> Node:
    """The node of the incident. Raises Superseded when it is gone or another one has its name."""
    if node is None or node.uid != repair.spec.node.uid:
        raise Superseded("the node is gone")
    return node


def check_hands(repair: NodeRepair, node: Node) -> None:
    """Raise when the node has slipped from under the repair or is somebody else's to handle."""
    if not still_ours(repair, node):
        raise Superseded("a person has taken the node back")
    if not is_current(repair) and denied(node, repair):
        raise Superseded(f"{repair.status.current.step} was denied before it began")
    if node.labels.get(names.EXCLUDE_FROM_REMEDIATION) == "true":
        raise Stopped(f"the node is opted out by label {names.EXCLUDE_FROM_REMEDIATION}=true", WaitsFor.OTHER_OWNER)
    leaving = leaving_by(node)
    if leaving:
        raise Stopped(f"not touched: {leaving}", WaitsFor.OTHER_OWNER)


def still_ours(repair: NodeRepair, node: Node) -> bool:
    """True unless the node should carry our mark and does not: somebody took it back, and decide will cancel."""
    if repair.status.step(Step.QUARANTINE).state != StepState.DONE:
        return True
    planned = repair.spec.plan.step(Step.QUARANTINE)
    return not taken_back(node, repair.metadata.uid, planned is not None and bool(planned.taint))


def needs_consent(repair: NodeRepair) -> bool:
    """True for a step that its pool must still want: one that nobody has claimed, and not on the way back."""
    return bool(repair.spec.pool.name) and not releasing(repair) and not is_current(repair)


def check_pool(pool: RepairPool | None, repair: NodeRepair, node: Node) -> None:
    """Raise Stopped where the pool has no say over the node any more, or only observes.

    decide withdraws such a step; this is for the time in which decide does not run. A mode for single faults is
    decide's to judge, so a pool with an override that acts passes here.
    """
    name = repair.spec.pool.name
    if pool is None:
        raise _withdrawn(f"pool {name} is gone")
    if not pool.spec.rule:
        raise _withdrawn(f"pool {name} has no rule any more, so it repairs nothing")
    if not pool.spec.node_selector.matches(node.labels):
        raise _withdrawn(f"the node has left pool {name}")
    if Mode.ACT not in (pool.spec.mode, *(override.mode for override in pool.spec.overrides)):
        raise _withdrawn(f"pool {name} only observes")


def _withdrawn(why: str) -> Stopped:
    return Stopped(f"not begun: {why}", WaitsFor.PEOPLE)


def check_holds(found: Iterable[Hold], repair: NodeRepair, node: Node, pools: list[str], now: datetime) -> None:
    """Raise Stopped when one of these Holds forbids to go on with the current step."""
    faults = [fault.type for fault in repair.spec.faults]
    hold = holds.strictest(found, node, pools, faults, now)
    if hold is not None and _stops(holds.known_level(hold), repair):
        raise Stopped(f"Hold {hold.metadata.name}: {hold.spec.reason}", WaitsFor.HOLD, HOLD_AGAIN)


def check_frozen(found: Iterable[Hold], repair: NodeRepair, node: Node, pools: list[str], now: datetime) -> None:
    """Raise Stopped when a Hold of level EveryAct keeps everything as it is."""
    faults = [fault.type for fault in repair.spec.faults]
    hold = holds.strictest(found, node, pools, faults, now)
    if hold is not None and holds.known_level(hold) == HoldLevel.EVERY_ACT:
        raise Stopped(f"Hold {hold.metadata.name}: {hold.spec.reason}", WaitsFor.HOLD, HOLD_AGAIN)


def _stops(level: str, repair: NodeRepair) -> bool:
    """NewRepairs and NextStep stop what has not been claimed yet; EveryAct stops everything."""
    if level == HoldLevel.EVERY_ACT:
        return True
    if releasing(repair) or is_current(repair):
        return False
    return level == HoldLevel.NEXT_STEP or _first(repair)


def _first(repair: NodeRepair) -> bool:
    """Nothing has been done for this incident yet."""
    return not any(status.state == StepState.DONE or status.attempts for status in repair.status.steps.values())
