"""What is looked at afresh just before an act.

Between the decision and the act lies time: a person may have cancelled, a Hold may have been set, the node may be
another one by now. So the record and the Holds are read from the server, not from a cache, before every act; when they
cannot be read nothing is done.
"""

from __future__ import annotations

from datetime import datetime

from sickbay.api import holds, kinds
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import HoldLevel, Phase, Step, StepState
from sickbay.execute.marks import marked_by
from sickbay.kube import errors
from sickbay.kube.client import Client

RELEASES = (Step.VALIDATE, Step.UNQUARANTINE)
"""Steps on the way back into service: only a Hold of level EveryAct stops them."""


class Stopped(Exception):
    """The act must not happen; the text says why. Looked at again later."""


class Superseded(Exception):
    """The record has moved on: this attempt is not the current one any more."""


def in_work(repair: NodeRepair) -> bool:
    """True when the record asks for something to be done."""
    current = repair.status.current
    return bool(current.step) and repair.status.step(current.step).state == StepState.RUNNING


async def fresh_record(client: Client, known: NodeRepair) -> NodeRepair:
    """The record as it is now. Raises Superseded when it does not ask for this attempt any more."""
    try:
        repair = await client.get(kinds.NODE_REPAIR, known.metadata.name)
    except errors.NotFound:
        raise Superseded("the record is gone") from None
    now, then = repair.status.current, known.status.current
    same = repair.metadata.uid == known.metadata.uid and (now.step, now.attempt) == (then.step, then.attempt)
    if not same or not in_work(repair) or repair.spec.plan.generation != known.spec.plan.generation:
        raise Superseded("the record has moved on")
    return repair


async def check_holds(client: Client, repair: NodeRepair, node: Node, pools: list[str], now: datetime) -> None:
    """Raise Stopped when a Hold forbids to go on with the current step, or when that cannot be known."""
    try:
        listing = await client.list(kinds.HOLD)
    except errors.ApiError as error:
        raise Stopped(f"the Holds cannot be read: {error}") from error
    if listing.malformed:
        raise Stopped(f"a Hold cannot be read: {listing.malformed[0]}")
    faults = [fault.type for fault in repair.spec.faults]
    hold = holds.strictest(listing.items, node, pools, faults, now)
    if hold is not None and _stops(holds.known_level(hold), repair):
        raise Stopped(f"Hold {hold.metadata.name}: {hold.spec.reason}")


def _stops(level: str, repair: NodeRepair) -> bool:
    """NewRepairs and NextStep stop what has not been claimed yet; EveryAct stops everything."""
    if level == HoldLevel.EVERY_ACT:
        return True
    current = repair.status.current
    if current.step in RELEASES or repair.status.phase == Phase.CANCELLING:
        return False
    report = repair.status.step(current.step).report
    claimed = report.state != "" and report.attempt == current.attempt
    return not claimed and (level == HoldLevel.NEXT_STEP or current.step == Step.QUARANTINE)


def check_node(repair: NodeRepair, node: Node | None) -> Node:
    """The node of the incident. Raises Superseded when it is gone or another one has its name."""
    if node is None or node.uid != repair.spec.node.uid:
        raise Superseded("the node is gone")
    return node


def still_ours(repair: NodeRepair, node: Node) -> bool:
    """True unless the node should carry our mark and does not: somebody took it back, and decide will cancel."""
    if repair.status.step(Step.QUARANTINE).state != StepState.DONE:
        return True
    return node.unschedulable and marked_by(node, repair.metadata.uid)
