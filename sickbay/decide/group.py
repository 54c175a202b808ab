"""What one member of a group can tell from the records of the others. Questions only; `together` acts on the answers.

A group is nothing but its members' records, which carry the same `spec.group`. There is no state beside them: who
leads, whether the act has begun, whether the group is over, all follows from the records as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sickbay.api.actions import domain_wide
from sickbay.api.names import GROUP_ATTEMPT
from sickbay.api.node_repair import NodeRepair, RepairFault
from sickbay.api.repair_step import MOST_ATTEMPTS, Attempt
from sickbay.api.words import Outcome, Phase, Step, StepState
from sickbay.decide.work import Work

BY_GROUP = "Group"
"""Kind of source of a fault on a member that does not show it itself."""
DONE = (StepState.DONE, StepState.SKIPPED)
STOPPED = (Outcome.CANCELLED_BY_PERSON, Outcome.DENIED, Outcome.GAVE_UP)
"""Ends of one member that end the whole group, as long as nothing was done to the domain."""


@dataclass(frozen=True)
class GroupView:
    """The group of one member, as it is now."""

    others: tuple[NodeRepair, ...] = ()
    """The latest record of each other member, ended ones too."""
    missing: tuple[str, ...] = ()
    """Members without a record of this group."""
    busy: Mapping[str, str] = field(default_factory=dict)
    """Of those: the open repair that the node is under instead."""
    misfit: str = ""
    """Why the group can never start under the limits as they are."""
    strangers: tuple[str, ...] = ()
    """Nodes that carry the domain's label by now and are no members: an act on the domain would take them down."""
    min_usable: int | None = None
    """So many members are enough; None = all are needed."""


def of(work: Work) -> GroupView | None:
    """The group that this repair belongs to; None when it stands alone."""
    return work.view.group if work.repair.spec.group.id else None


def records(work: Work) -> list[NodeRepair]:
    """Of all members, this one first."""
    view = of(work)
    return [work.repair, *(view.others if view is not None else ())]


def open_others(work: Work) -> list[NodeRepair]:
    """Members that are still in it; one that is being rolled back is not."""
    return [r for r in records(work)[1:] if not r.ended and r.status.phase != Phase.CANCELLING]


def leader(work: Work) -> NodeRepair:
    """The member on which approval is asked and the act on the domain is claimed."""
    standing = [work.repair, *open_others(work)]
    named = next((r for r in standing if r.metadata.name == work.repair.spec.group.leader), None)
    return named or min(standing, key=lambda r: (r.metadata.creation_timestamp or "9", r.metadata.name))


def leads(work: Work) -> bool:
    return of(work) is not None and leader(work) is work.repair


def begun(work: Work) -> bool:
    """Something has been done to a member, or is being done: what becomes of one does not stop the others any more."""
    steps = [r.status.step(Step.REPAIR) for r in records(work)]
    return any(step.attempts or step.state == StepState.RUNNING for step in steps)


def dissolved(work: Work) -> bool:
    """Members have returned: the rest go on as repairs of their own."""
    if of(work) is None:
        return False
    return any(_returned(r) for r in records(work)[1:])


def _returned(repair: NodeRepair) -> bool:
    if repair.status.phase == Phase.CANCELLING:
        return False
    back = repair.status.step(Step.UNQUARANTINE).state in (StepState.RUNNING, StepState.DONE)
    return repair.status.phase == Phase.SUCCEEDED or (back and not repair.ended)


def stopped(work: Work) -> NodeRepair | None:
    """A member that a person (or its drain) has taken out before anything was done; None when there is none."""
    if of(work) is None or begun(work):
        return None
    for repair in records(work)[1:]:
        over = repair.status.phase in (Phase.CANCELLING, Phase.CANCELLED, Phase.FAILED)
        if over and repair.status.outcome in STOPPED:
            return repair
    return None


def emptied(repair: NodeRepair) -> bool:
    """Out of service and drained, as far as the plan asks for it."""
    steps = [s.step for s in repair.spec.plan.steps if s.step in (Step.QUARANTINE, Step.DRAIN)]
    return all(repair.status.step(step).state in DONE for step in steps)


def taken_out(repair: NodeRepair) -> bool:
    quarantine = repair.spec.plan.step(Step.QUARANTINE)
    return quarantine is None or repair.status.step(Step.QUARANTINE).state in DONE


def validated(repair: NodeRepair) -> bool:
    return repair.status.step(Step.VALIDATE).state == StepState.DONE


# --- faults


def _own(repair: NodeRepair) -> list[RepairFault]:
    """Faults that the member shows itself."""
    return [fault for fault in repair.spec.faults if fault.source.kind != BY_GROUP]


def _concerned(work: Work) -> list[NodeRepair]:
    """Other members whose faults are the group's; of a node that has gone, nobody has seen its fault end."""
    left = [r for r in records(work)[1:] if not r.ended or r.status.outcome == Outcome.NODE_GONE]
    return [] if dissolved(work) else left


def others_clear(work: Work) -> bool:
    """No other member has a fault that is not proven gone."""
    return all(fault.cleared_at is not None for r in _concerned(work) for fault in _own(r))


def others_sick(work: Work) -> bool:
    """Another member still shows a fault."""
    faults = [fault for r in _concerned(work) for fault in _own(r)]
    return any(fault.gone_since is None and fault.cleared_at is None for fault in faults)


# --- the act on the domain


def originals(work: Work) -> list[Attempt]:
    """Acts on the whole domain that have ended, in their order."""
    found = [
        attempt
        for r in records(work)
        for attempt in r.status.step(Step.REPAIR).attempts
        if domain_wide(attempt.action) and GROUP_ATTEMPT not in attempt.proof
    ]
    return sorted(found, key=lambda attempt: attempt.n)


def uncopied(work: Work) -> Attempt | None:
    """The next of them that this member's record does not have; None when it has all."""
    if of(work) is None or work.current.step != Step.REPAIR:
        return None
    mine = work.repair.status.step(Step.REPAIR).attempts
    if len(mine) >= MOST_ATTEMPTS:
        return None  # there is no room for it, and nothing more is done
    known = {int(a.proof.get(GROUP_ATTEMPT, a.n)) for a in mine if domain_wide(a.action)}
    return next((attempt for attempt in originals(work) if attempt.n not in known), None)


def acting(work: Work) -> NodeRepair | None:
    """The other member whose act on the domain runs."""
    for repair in records(work)[1:]:
        running = repair.status.step(Step.REPAIR).state == StepState.RUNNING
        if running and not repair.ended and domain_wide(repair.status.current.action):
            return repair
    return None


# --- approval


def asker(work: Work) -> NodeRepair | None:
    """The other member that asks about this step for all; None when this one does."""
    if of(work) is None or dissolved(work):
        return None
    step = work.current.step
    lead = leader(work)
    if lead is not work.repair and (_asks(lead, step, work) or approved(lead, step, work)):
        return lead
    asking = [r for r in [work.repair, *open_others(work)] if r is work.repair or approved(r, step, work)]
    others = [r for r in asking if r is not work.repair]
    return others[0] if others else _oldest_asking(work, step)


def _oldest_asking(work: Work, step: str) -> NodeRepair | None:
    if leader(work) is work.repair:
        return None
    standing = [work.repair, *(r for r in open_others(work) if _asks(r, step, work))]
    first = min(standing, key=lambda r: (r.metadata.creation_timestamp or "9", r.metadata.name))
    return None if first is work.repair else first


def _asks(repair: NodeRepair, step: str, work: Work) -> bool:
    """It stands before the same step, in the same round."""
    status = repair.status
    before = status.current.step == step and status.step(step).state not in (StepState.RUNNING, StepState.DONE)
    return before and _round(repair, step) == _round(work.repair, step)


def approved(repair: NodeRepair, step: str, work: Work) -> bool:
    """Its gate before this step was opened, in the round that this member is in."""
    status, state = repair.status, repair.status.step(step)
    if not state.approved_attempt:
        return False
    mine = _round(work.repair, step)
    if status.current.step == step and status.current.attempt == state.approved_attempt:
        return _round(repair, step) == mine
    if step != Step.REPAIR:
        return state.state in DONE
    done = state.attempts[mine : mine + 1]
    return bool(done) and done[0].n == state.approved_attempt


def _round(repair: NodeRepair, step: str) -> int:
    return len(repair.status.step(step).attempts) if step == Step.REPAIR else 0
