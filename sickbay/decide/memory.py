"""What people decided about a fault, remembered on the ended record.

A repair that a person cancelled or denied keeps the same fault (same device, same boot) from another repair until the
fault has cleared, a person takes the word back, or the pool's `cancelHold` is over. That the fault has cleared is
written on the ended record when we see it: a detector that was silent for a while, and then reports the same fault
with a new time, is no new fault.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.duration import parse_duration
from sickbay.api.meta import Condition, ObjectMeta
from sickbay.api.node_repair import NodeRepair, NodeRepairSpec, RepairFault
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import Origin, Outcome, StepState
from sickbay.clock import parse_time, rfc3339
from sickbay.decide import faultstate, resolve
from sickbay.decide.faults import Active
from sickbay.decide.hand import holds_node
from sickbay.decide.work import View, Work

TOLD_BEFORE = timedelta(hours=1)
"""How long before the end of a hold people are told (api.md, cancelHold)."""
BOOTS = ("RebootNode", "PowerCycle", "ReprovisionNode", "RedeployNode")
"""Acts that bring another boot. One that was under way when a person cancelled may still bring it."""


def kept_back(repair: NodeRepair, active: Active, node: Node, pool: RepairPool) -> datetime | None:
    """Until when this record keeps the fault from another repair; None when it does not."""
    since = _decided(repair)
    known = next((f for f in repair.spec.faults if f.type == active.name), None)
    if since is None or known is None or known.cleared_at is not None or not _same(repair, known, active, node):
        return None
    return since + parse_duration(pool.spec.cancel_hold)


def _decided(repair: NodeRepair) -> datetime | None:
    """When a person said that nothing more is to be done; None when nobody did."""
    if not repair.ended or not repair.status.ended_at or resolve.forgotten(repair):
        return None
    if repair.status.outcome in (Outcome.CANCELLED_BY_PERSON, Outcome.DENIED):
        return parse_time(repair.status.ended_at)
    if repair.status.outcome == Outcome.LEFT_QUARANTINED and not holds_node(repair):
        return parse_time(repair.status.step("Unquarantine").finished or repair.status.ended_at)
    return None


def _same(repair: NodeRepair, known: RepairFault, active: Active, node: Node) -> bool:
    """The same devices, and the same boot, or the one that our own interrupted act has brought."""
    if known.devices and set(active.devices) - set(known.devices):
        return False
    boot = known.boot_id or repair.spec.node.boot_id
    return _interrupted_boot(repair) or not boot or boot == node.boot_id


def _interrupted_boot(repair: NodeRepair) -> bool:
    """A boot of ours was under way: the node may come back in another boot that no person brought about."""
    last = repair.status.step("Repair").attempts[-1:]
    return bool(last) and last[0].action in BOOTS and last[0].state == StepState.CANCELLED


def refreshed(repair: NodeRepair, view: View) -> NodeRepair | None:
    """The ended record with what has cleared since marked so; None when there is nothing to write."""
    if _decided(repair) is None or all(f.cleared_at is not None for f in repair.spec.faults):
        return None
    copy = msgspec.convert(msgspec.to_builtins(repair), NodeRepair)
    work, present = Work(copy, view), {active.name: active for active in view.active}
    for before, fault in zip(repair.spec.faults, copy.spec.faults, strict=True):
        if before.cleared_at is None:
            faultstate.judge(work, fault, present.get(fault.type), view.types.get(fault.type))
    found = [
        msgspec.structs.replace(before, gone_since=after.gone_since, cleared_at=before.cleared_at or after.cleared_at)
        for before, after in zip(repair.spec.faults, copy.spec.faults, strict=True)
    ]
    if found == repair.spec.faults:
        return None
    copy.spec.faults = found
    return copy


def announced(repair: NodeRepair, view: View, pool: RepairPool) -> NodeRepair | None:
    """The ended record with the word that its hold is over in an hour; None when it is not time, or was said."""
    if view.node is None or repair.status.condition(names.CANCEL_HOLD_ENDS) is not None:
        return None
    ends = [until for a in view.active if (until := kept_back(repair, a, view.node, pool)) is not None]
    until = max(ends, default=None)
    if until is None or not until - TOLD_BEFORE <= view.now < until:
        return None
    copy = msgspec.convert(msgspec.to_builtins(repair), NodeRepair)
    text = (
        f"what a person decided about {repair.spec.faults[0].type} holds until {rfc3339(until)}, and the fault is "
        "still there: after that a new repair opens, and asks people before Quarantine"
    )
    said = Condition(
        type=names.CANCEL_HOLD_ENDS,
        status="True",
        reason="FaultStillThere",
        message=text,
        last_transition_time=rfc3339(view.now),
    )
    copy.status.conditions = [*copy.status.conditions, said]
    return copy


def tombstone(repair: NodeRepair, name: str) -> NodeRepair:
    """A record in the place of one that a person has deleted, which ends at once as cancelled by that person."""
    spec: NodeRepairSpec = msgspec.convert(msgspec.to_builtins(repair.spec), NodeRepairSpec)
    spec.plan.steps, spec.plan.reason = [], tombstone_reason(repair)
    spec.origin = Origin.FAULT.value  # a repair that is opened by hand has to say what to do, and this one does nothing
    if _interrupted_boot(repair):  # no attempt of the old record tells of it any more: any boot will do
        spec.node.boot_id = ""
        for fault in spec.faults:
            fault.boot_id = ""
    return NodeRepair(metadata=ObjectMeta(name=name), spec=spec)


def tombstone_reason(repair: NodeRepair) -> str:
    return f"the record {repair.metadata.name} ({repair.metadata.uid}) was deleted by a person"
