"""NeedsHuman: what brings a repair out of it without a person's uncordon.

a late approval opens the gate that timed out
all faults are proven gone: Validate, or the end where nothing was done
a fault whose proof was missing is there again: its plan goes on
the fault that needed people is gone, another one is left: that one's plan
the pool that had gone, or only observed, acts on the node again: its plan goes on
"""

from __future__ import annotations

from sickbay.api.node_repair import RepairFault
from sickbay.api.words import Needs, Phase, Step
from sickbay.decide import entering, faultstate, gate, group, mandate, urgency
from sickbay.decide.hand import holds_node
from sickbay.decide.replan import take_over, worn_out
from sickbay.decide.work import Work


def stand(work: Work) -> None:
    """Look for a way on; else stay, and remind people when it is time."""
    status = work.status
    if status.needs == Needs.APPROVAL_TIMEOUT:
        moved = _at_gate(work)
    elif status.needs == Needs.GROUP_CANNOT_FIT:
        moved = _fits_now(work)
    elif status.needs == Needs.POOL_WITHDRAWN:
        moved = _left(work) or mandate.back(work)
        if not moved:
            mandate.still_missing(work)
    else:
        moved = _cleared(work) or _back_again(work) or _another_leads(work)
    if not moved:
        gate.needs_people(work, status.needs, status.message)


def _at_gate(work: Work) -> bool:
    """A fault that is gone needs no approval; an approval that comes late is one all the same."""
    status, current = work.status, work.current
    if current.step in (Step.QUARANTINE, Step.DRAIN, Step.REPAIR) and faultstate.recovered(work):
        entering.leave(work)
        return True
    if current.step in mandate.STARTS and mandate.missing(work):
        return True
    urgency.refresh(work)
    if gate.passed(work):
        status.phase, current.waits_for, current.deadline = Phase.PENDING, "", None
        return True
    return status.phase != Phase.NEEDS_HUMAN


def _left(work: Work) -> bool:
    """The faults are gone, and the way back needs no pool."""
    if not entering.needless(work):
        return False
    entering.leave(work)
    return True


def _cleared(work: Work) -> bool:
    """All faults are proven gone since people were called. Of what was gone before, Validate has already judged."""
    repair = work.repair
    if not faultstate.recovered(work):
        return False
    touched = holds_node(repair) or bool(repair.status.step(Step.REPAIR).attempts)
    if not touched:
        entering.leave(work)
        return True
    since = work.moment(work.current.since)
    if not any(work.moment(fault.cleared_at) > since for fault in repair.spec.faults):
        return False
    work.status.needs = ""
    work.current.attempt += 1
    gate.go_to(work, Step.VALIDATE, "the faults are gone; the node is validated before it returns")
    return True


def _fits_now(work: Work) -> bool:
    """A limit was raised, or the group is smaller now. What has cleared by itself ends as before any first step."""
    view = group.of(work)
    if view is not None and view.misfit and not faultstate.recovered(work):
        work.status.message = f"the group can never start: {view.misfit}; raise the limit or repair the domain by hand"
        return False
    work.status.needs = ""
    work.status.phase, work.current.waits_for, work.current.deadline = Phase.PENDING, "", None
    return True


def _back_again(work: Work) -> bool:
    """The plan was paused because a fault was no longer seen, without proof. Now it is seen again."""
    repair = work.repair
    if work.status.needs != Needs.CLEAR_PROOF_MISSING or faultstate.all_clear(repair):
        return False
    if faultstate.unproven(repair) or faultstate.out_of_sight(work):
        return False
    work.status.needs = ""
    work.status.phase, work.current.waits_for, work.current.deadline = Phase.PENDING, "", None
    return True


def _before_this_boot(work: Work, fault: RepairFault) -> bool:
    acted = bool(work.repair.status.step(Step.REPAIR).attempts)
    return acted and "" not in (fault.boot_id, work.node.boot_id) and fault.boot_id != work.node.boot_id


def _looked_at(work: Work) -> bool:
    """Validate has judged the node since the last act."""
    acts, looks = (work.repair.status.step(step).attempts for step in (Step.REPAIR, Step.VALIDATE))
    return bool(acts and looks) and work.moment(looks[-1].ended) >= work.moment(acts[-1].ended)


def _another_leads(work: Work) -> bool:
    """The leading fault is gone and others are left: the state is always derived from what is still there."""
    faults = work.repair.spec.faults
    if work.status.needs == Needs.BUDGET_SPENT or not faults or faults[0].cleared_at is None or worn_out(work):
        return False
    standing = [fault for fault in faults if fault.cleared_at is None]
    if standing and not _looked_at(work) and all(_before_this_boot(work, fault) for fault in standing):
        # What is left was last seen before the node came up anew, and nobody has looked since: no act before a look.
        work.status.needs = ""
        work.current.attempt += 1
        gate.go_to(work, Step.VALIDATE, f"{faults[0].type} is gone and the node has booted anew; it is looked at first")
        return True
    left = {fault.type for fault in standing}
    for active in work.view.active:
        plan = work.view.replan(active) if active.name in left else None
        if plan is not None:
            take_over(work, plan, active.name, f"{faults[0].type} is gone")
            return True
    return False
