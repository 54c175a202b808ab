"""Cards taken out of service alone: the grant, `plan.isolate`.

A fault type that says `isolateDevice`, in a pool that opts in for it, has its card taken away from the scheduler as
soon as the repair is open; the plan goes its own way beside that. The grant is the union over the incident's faults:
each brings its own cards, and takes only them away when it is proven gone. It is given within caps
(`maxDevicesPerNode`, `maxNodes`), by a slot like every other start; with more cards than that the node goes out.
"""

from __future__ import annotations

import msgspec

from sickbay.api.node_repair import NodeRepair, RepairFault
from sickbay.api.words import Phase
from sickbay.clock import rfc3339
from sickbay.decide import slots
from sickbay.decide.plan import quarantined_first
from sickbay.decide.replan import first_undone
from sickbay.decide.work import Work


def follow(work: Work) -> None:
    """Bring the grant in line with the faults that are there; ask for the slot of a first one."""
    wanted = _wanted(work)
    kept = [device for device in work.plan.isolate if device in wanted]
    if kept != work.plan.isolate:
        gone = [device for device in work.plan.isolate if device not in wanted]
        work.note("IsolationEnded", f"{', '.join(gone)} need not be isolated any more")
        _grant(work, kept)
    fresh = sorted(wanted - set(kept))
    if not fresh or not _may_start(work):
        return
    pool = work.view.pool
    most = pool.spec.device_isolation.max_devices_per_node if pool is not None else 0
    if len(kept) + len(fresh) > most:
        _whole_node(work, len(kept) + len(fresh), most)
    elif slots.ISOLATE in work.view.slots or kept:
        work.note("IsolationGranted", f"{', '.join(fresh)} may be isolated")
        _grant(work, sorted([*kept, *fresh]))
    else:
        work.wants_isolation = True


def _grant(work: Work, devices: list[str]) -> None:
    work.repair.spec.plan = msgspec.structs.replace(work.plan, isolate=devices)


def _wanted(work: Work) -> set[str]:
    """Cards of faults that are not proven gone, whose types ask for it and whose pool allows it.

    Where the pool is gone, what stands stays: a sick card returns by proof, not because an object was deleted.
    """
    if work.status.phase == Phase.CANCELLING or work.repair.ended:
        return set()
    wanted = {device for fault in work.repair.spec.faults if _isolates(work, fault) for device in fault.devices}
    types = work.view.types
    unknown = {d for f in work.repair.spec.faults if f.type not in types and not f.cleared_at for d in f.devices}
    return wanted | (unknown & set(work.plan.isolate))  # a type that was deleted gives no card back


def _isolates(work: Work, fault: RepairFault) -> bool:
    known, pool = work.view.types.get(fault.type), work.view.pool
    if fault.cleared_at is not None or known is None:
        return False
    return bool(known.spec.isolate_device) and (pool is None or fault.type in pool.spec.device_isolation.faults)


def _may_start(work: Work) -> bool:
    """Nothing new under a Hold, on a node that is somebody else's, without the pool, or once people were called."""
    view = work.view
    return not (view.hold or view.hands_off or view.withdrawn) and work.status.phase != Phase.NEEDS_HUMAN


def _whole_node(work: Work, count: int, most: int) -> None:
    """Too many cards: the node is taken out instead, by People where its rule does not do that anyway."""
    plan = quarantined_first(work.plan)
    step = work.current.step
    if plan is work.plan or (step and work.state(step).started and work.state(step).finished is None):
        return
    reason = f"{count} cards are sick, more than maxDevicesPerNode ({most}): the node is taken out instead"
    work.follow(msgspec.structs.replace(plan, reason=reason))
    work.note("RepairReplanned", reason)
    if step:
        work.current.attempt += 1
        work.current.step, work.current.action, work.current.args = first_undone(work), "", {}
        work.current.since, work.current.waits_for = rfc3339(work.now), ""


def holds_cards(repair: NodeRepair) -> bool:
    """The repair has granted an isolation that it has not taken back."""
    return bool(repair.spec.plan.isolate) and not repair.ended
