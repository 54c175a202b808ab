"""Which act an attempt of Repair is to be: the ladder's next rung, or people."""

from __future__ import annotations

from sickbay.api.actions import ACTIONS
from sickbay.api.fault_type import Rung
from sickbay.api.repair_plan import Plan
from sickbay.api.words import Needs, Outcome, Step, StepState
from sickbay.decide import gate, servicename
from sickbay.decide.ladder import next_rung
from sickbay.decide.plan import with_empty_node
from sickbay.decide.replan import first_undone
from sickbay.decide.work import Work


def chosen(work: Work) -> bool:
    """Decide on the act of this attempt. False when that changed the plan, or when there is none left."""
    if work.current.action:
        return True
    rung = next_rung(work.repair)
    if rung is None or _for_people(work, rung):
        _no_rung(work)
        return False
    plan = with_empty_node(work.plan, rung.action, climbed=bool(work.repair.status.step(Step.REPAIR).attempts))
    if plan is not work.plan:
        _grow(work, plan)
        return False
    lead = next(iter(work.repair.spec.faults), None)
    known = work.view.types.get(lead.type) if lead is not None else None
    work.current.action, work.current.args = rung.action, servicename.arguments(rung, known)
    return True


def _for_people(work: Work, rung: Rung) -> bool:
    return bool(work.step(Step.REPAIR).needs) or rung.action == "ContactSupport" or rung.action not in ACTIONS


def _no_rung(work: Work) -> None:
    """No act of ours is left or allowed: people, or straight to Validate when the fault never had a remedy."""
    planned, rung = work.step(Step.REPAIR), next_rung(work.repair)
    tried = work.repair.status.step(Step.REPAIR).attempts
    if planned.needs:
        gate.needs_people(work, Needs(planned.needs), work.plan.reason)
    elif rung is None and not tried and not planned.ladder:
        gate.to_validate(work, Outcome.REPAIRED, "this fault has no remedy of its own")
    elif rung is None:
        last = tried[-1].action if tried else "nothing"
        gate.needs_people(work, Needs.REPAIR_FAILED, f"all remedies are used up (last: {last})")
    elif rung.action == "ContactSupport":
        gate.needs_people(work, Needs.CONTACT_SUPPORT, "the vendor's support has to be asked")
    else:
        gate.needs_people(work, Needs.REPAIR_FAILED, f"this version knows no remedy {rung.action!r}")


def _grow(work: Work, plan: Plan) -> None:
    """Follow a plan that empties the node first. A drain that left pods on it has to be done again, in full."""
    before = work.plan.step(Step.DRAIN)
    work.follow(plan)
    if before is not None and before != plan.step(Step.DRAIN):
        work.state(Step.DRAIN).state = StepState.WAITING
    first = first_undone(work)
    work.current.attempt += 1
    gate.go_to(work, first, plan.reason)
