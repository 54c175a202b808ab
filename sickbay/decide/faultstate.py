"""Bring the faults on a repair's record up to date with the node: seen, gone, proven gone; new ones join.

All times on the record are our own: when we saw a fault, and when we saw it gone. The times in a Node's conditions come
from the clocks of others and serve only to tell one occurrence from the next.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from sickbay.api.actions import ACTIONS
from sickbay.api.core import Node
from sickbay.api.duration import parse_duration
from sickbay.api.fault_type import FaultType, Validation
from sickbay.api.names import condition_type
from sickbay.api.node_repair import FaultSource, NodeRepair, RepairFault
from sickbay.api.repair_step import Attempt
from sickbay.api.words import Step, StepState
from sickbay.clock import parse_time, rfc3339
from sickbay.decide import group, recorded, suspects
from sickbay.decide.actionable import wants_repair
from sickbay.decide.faults import Active, Evidence, Proofs, evidence, hidden
from sickbay.decide.hand import untouched
from sickbay.decide.work import Work

MAX_FAULTS = 16
MAX_EVIDENCE = 8
_PROVEN_BY = {"reset": "ResetGPU", "reboot": "RebootNode"}
"""By `clearsBy`: the mildest act after which it may be proven."""


def new_fault(active: Active, boot_id: str, since: datetime, now: datetime) -> RepairFault:
    """The record of a fault that we have seen since that moment without a break."""
    return RepairFault(
        type=active.name,
        devices=list(active.devices)[:32],
        source=_source(active),
        first_seen=rfc3339(since),
        last_seen=rfc3339(now),
        boot_id=boot_id,
        clears_by=active.type.spec.clears_by or "",
        for_=active.type.spec.for_,
        soak=active.type.spec.validation.soak if active.type.spec.validation is not None else None,
        evidence=[text[:512] for text in (active.message or active.reason,) if text],
    )


def _source(active: Active) -> FaultSource:
    return FaultSource(kind="Condition" if active.since else "Expression", id=active.identity, status=active.status)


def refresh(work: Work) -> None:
    """Judge every recorded fault against the node, and add those that are new and may be treated now."""
    faults = work.repair.spec.faults
    for fault in faults:
        judge(work, fault, _present(work, fault), _type_of(work, fault))
    known, joins = {fault.type for fault in faults}, work.view.joins
    for active in work.view.active:
        fresh = active.name not in known and wants_repair(active.type)
        if fresh and (joins is None or active.name in joins) and _has_room(work):
            since = work.view.seen.get(active.name, work.now)
            faults.append(new_fault(active, work.node.boot_id, since, work.now))


def _has_room(work: Work) -> bool:
    """Whether another fault can be recorded. One that is over makes room: a node must not return with a fault that
    stands on no record."""
    faults, there = work.repair.spec.faults, {active.name for active in work.view.active}
    if len(faults) < MAX_FAULTS:
        return True
    others = range(1, len(faults))  # the first one is what the repair is for
    over = next((n for n in others if faults[n].cleared_at is not None and faults[n].type not in there), None)
    if over is None:
        return False
    del faults[over]
    return True


def _type_of(work: Work, fault: RepairFault) -> FaultType | None:
    """Its type, or what the record kept of one that has been deleted."""
    return work.view.types.get(fault.type) or recorded.type_of(fault, work.view.node)


def _present(work: Work, fault: RepairFault) -> Active | None:
    """Its present match."""
    known = None if fault.type in work.view.types else recorded.type_of(fault, work.view.node)
    if known is not None and work.view.node is not None:
        return recorded.active(fault, known, work.view.node)
    return next((active for active in work.view.active if active.name == fault.type), None)


def judge(work: Work, fault: RepairFault, active: Active | None, known: FaultType | None) -> None:
    """Bring one recorded fault up to date. `active` is its present match, `known` its type; None when there is none."""
    if known is None:
        return  # the type is gone, and nobody can say that the fault is over
    known = _as_it_began(fault, known)
    if fault.source.kind == group.BY_GROUP and active is None:
        _of_group(work, fault)
        return
    now = rfc3339(work.now)
    if active is None and fault.gone_since is None and not hidden(known, work.node):
        fault.gone_since = now
    gone = parse_time(fault.gone_since) if fault.gone_since and active is None else None
    verdict = evidence(known, _last_seen(fault), gone, work.node, active, _proofs(work.repair, fault), work.now)
    if suspects.is_answered(work.repair, fault.type):
        verdict = Evidence.CLEAR
    if verdict is Evidence.PRESENT and active is not None:
        if fault.gone_since is not None and untouched(work.repair):
            fault.first_seen = now  # its `for` begins anew
        if fault.source.id != active.identity or fault.gone_since is not None:
            # A new occurrence. A condition that merely still stands after a reboot is none: its boot is the old one.
            fault.source, fault.last_seen = _source(active), now
            fault.boot_id = work.node.boot_id or fault.boot_id
        fault.gone_since, fault.cleared_at = None, None
        _add_evidence(fault, active)
    elif verdict is Evidence.CLEAR and fault.cleared_at is None:
        # A proof stands until the fault is seen again; that nobody looks for a while does not undo it.
        fault.cleared_at = now


def _of_group(work: Work, fault: RepairFault) -> None:
    """A member that does not show the group's fault: it is over with the others', or when this node is found well."""
    validating = work.is_state("Validate", StepState.RUNNING, StepState.DONE)
    over = validating or group.of(work) is None or group.others_clear(work)
    fault.cleared_at = (fault.cleared_at or rfc3339(work.now)) if over else None


def _as_it_began(fault: RepairFault, known: FaultType) -> FaultType:
    """The type with the proof that it asked for when the fault came in, whatever the catalogue says by now."""
    if not fault.clears_by or fault.clears_by == known.spec.clears_by:
        return known
    validation = msgspec.structs.replace(known.spec.validation or Validation(), soak=fault.soak)
    spec = msgspec.structs.replace(known.spec, clears_by=fault.clears_by, for_=fault.for_, validation=validation)
    return msgspec.structs.replace(known, spec=spec)


def _last_seen(fault: RepairFault) -> datetime | None:
    text = fault.last_seen or fault.first_seen
    return parse_time(text) if text else None


def _proofs(repair: NodeRepair, fault: RepairFault) -> Proofs:
    done = [a for a in repair.status.step("Repair").attempts if a.state == "Done" and a.ended]
    return Proofs(
        boot_id=fault.boot_id or repair.spec.node.boot_id,
        provider_id=repair.spec.node.provider_id,
        serial=repair.spec.node.serial,
        reset_since=_last_end(a for a in done if _resets(a.action)),
        acted_since=_last_end(done),
        own=fault.source.id.split("@")[0] == f"condition/{condition_type(fault.type)}",
    )


def _last_end(attempts: Iterable[Attempt]) -> datetime | None:
    return max((parse_time(a.ended) for a in attempts if a.ended), default=None)


def _resets(action: str) -> bool:
    """True for a device reset and whatever takes down more than that; the restart of a service resets no device."""
    known = ACTIONS.get(action)
    return known is not None and known.strength >= ACTIONS["ResetGPU"].strength


def _add_evidence(fault: RepairFault, active: Active) -> None:
    fault.devices = list(active.devices)[:32] or fault.devices
    text = (active.message or active.reason)[:512]
    if text and text not in fault.evidence:
        fault.evidence = [*fault.evidence[: MAX_EVIDENCE - 1], text]


def lasts(work: Work, fault: RepairFault) -> bool:
    """The fault has been seen for the `for` of its type."""
    return fault.type not in work.view.types or lasts_at(work, fault) <= work.now


def lasts_at(work: Work, fault: RepairFault) -> datetime:
    """When the fault will have been seen for the `for` of its type, which is known."""
    return work.moment(fault.first_seen) + parse_duration(work.view.types[fault.type].spec.for_ or "0s")


def since_act(work: Work, fault: RepairFault) -> bool:
    """The fault was first seen after the last act, in the boot that this act brought about, or while it was done by an
    act that can prove nothing about it: then no wait for a proof is of any use."""
    seen = work.moment(fault.first_seen)
    attempts = work.repair.status.step(Step.REPAIR).attempts
    if not attempts:
        return seen > work.moment(work.state(Step.VALIDATE).started)
    last = attempts[-1]
    in_new_boot = fault.boot_id != "" and fault.boot_id == last.proof.get("bootID")
    meanwhile = seen > work.moment(last.started)
    return seen > work.moment(last.ended) or (meanwhile and (in_new_boot or _beyond(work, fault, last.action)))


def _beyond(work: Work, fault: RepairFault, act: str) -> bool:
    """Only a stronger act proves the fault gone. What ends by itself may be the act's own doing, and is waited for."""
    known = work.view.types.get(fault.type)
    proof = _PROVEN_BY.get(fault.clears_by or (known.spec.clears_by or "" if known is not None else ""))
    return proof is not None and act in ACTIONS and ACTIONS[act].strength < ACTIONS[proof].strength


def all_clear(repair: NodeRepair) -> bool:
    """Every fault of the incident is proven gone. False for an incident without faults (one made by hand)."""
    faults = repair.spec.faults
    return bool(faults) and all(fault.cleared_at is not None for fault in faults)


def recovered(work: Work) -> bool:
    """Every fault is proven gone; in a group, those of all members."""
    return all_clear(work.repair) and (group.of(work) is None or group.others_clear(work))


def unproven(repair: NodeRepair) -> list[str]:
    """Faults that are no longer seen but not proven gone, when no fault is still there; empty otherwise."""
    faults = repair.spec.faults
    if not faults or any(f.gone_since is None and f.cleared_at is None for f in faults):
        return []
    return [f.type for f in faults if f.cleared_at is None]


def out_of_sight(work: Work) -> list[str]:
    """Faults whose detectors cannot see, when none of the others is there to be seen; empty otherwise.

    What reads Unknown is neither fault nor recovery: no step may start for it, and no stronger act may follow.
    """
    left = [fault for fault in work.repair.spec.faults if fault.cleared_at is None]
    if work.view.node is None or any(_present(work, fault) is not None for fault in left):
        return []
    return [fault.type for fault in left if _unseen(fault, _type_of(work, fault), work.view.node)]


def _unseen(fault: RepairFault, known: FaultType | None, node: Node) -> bool:
    if fault.source.kind == group.BY_GROUP:
        return known is not None and hidden(known, node)
    return known is None or hidden(known, node)
