"""May this repair still begin steps? Its pool has to be there, to own the node, and to act on the leading fault.

People take that back while repairs are open: they switch the pool (or a fault type in it) to Observe, delete the pool,
take its rule away, or relabel the node. What has begun goes to the end of its step, and the way back into service stays
open. Nothing else begins:

    nothing was done     the record ends; where the pool observes it goes on as an observation
    nothing of ours is   it is given up: what was done is done, and there is nothing to give back
      on the node
    we hold the node     it stays as it is, and people are told. A sick node is never put back into service because a
                         pool went away; a person's uncordon, or the end of its faults with a passed validation, does

When the pool acts on the node again the repair goes on, and what was approved before is asked again.
"""

from __future__ import annotations

from datetime import timedelta

from sickbay.api import names
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import Needs, Outcome, Phase, Stage, Step, StepState, WaitsFor
from sickbay.decide import gate, stages
from sickbay.decide.endings import end, withdraw
from sickbay.decide.hand import holds_node
from sickbay.decide.isolation import holds_cards
from sickbay.decide.work import Work

PATIENCE = timedelta(minutes=5)
"""How long a repair stands before people are called: a pool that is applied anew, or a label that a re-registered node
gets back, is gone for less."""
STARTS = (Step.QUARANTINE, Step.DRAIN, Step.REPAIR)
"""Steps that need the pool's consent; Validate and Unquarantine are the way back."""


def unowned(repair: NodeRepair, pool: RepairPool | None, owner: RepairPool | None) -> str:
    """Why the repair's pool has no say over its node any more; "" while it has.

    pool    the pool of the name that the repair began under, as it is now
    owner   the pool that the node belongs to now
    """
    name = repair.spec.pool.name
    if pool is None:
        return f"pool {name} is gone"
    if not pool.spec.rule:
        return f"pool {name} has no rule any more, so it repairs nothing"
    if owner is not None and owner.metadata.name == name:
        return ""
    where = f" and belongs to pool {owner.metadata.name} now" if owner is not None else ""
    return f"the node has left pool {name}{where}"


def not_begun(work: Work) -> bool:
    """Nothing has been done, and nothing of ours is on the node."""
    steps = work.status.steps.values()
    begun = any(step.attempts or step.state in (StepState.RUNNING, StepState.DONE) for step in steps)
    return not begun and not _holds(work)


def put_back(work: Work) -> None:
    """A step that was about to begin, and that execute has not claimed, does not begin."""
    current = work.current
    if current.step not in STARTS or not work.is_state(current.step, StepState.RUNNING) or work.report() is not None:
        return
    if current.stage != Stage.AFTER:
        stages.back(work)
        work.status.phase = Phase.PENDING


def over(work: Work) -> bool:
    """True when a pool that has no say any more ends the record, wherever it stands: nothing has been done."""
    if not work.view.unowned or work.repair.spec.group.id or not not_begun(work):
        return False
    _give_up(work)
    return True


def _give_up(work: Work) -> None:
    step = work.current.step or "the repair"
    end(work, Outcome.GAVE_UP, f"{step} does not begin: {work.view.withdrawn}; nothing of ours is on the node")


def missing(work: Work) -> bool:
    """True while the next step may not begin; the work says what becomes of the repair instead."""
    why = work.view.withdrawn
    if not why:
        return back(work)
    withdraw(work)
    if not work.repair.spec.group.id and not _holds(work):
        _give_up(work)
        return True
    since = _mark(work, "True", why)
    due = work.moment(since) + PATIENCE
    if work.now >= due:
        gate.needs_people(work, Needs.POOL_WITHDRAWN, _message(work))
    else:
        work.status.needs = ""
        work.wait(Phase.PENDING, WaitsFor.PEOPLE, _message(work), "Escalate", due)
    return True


def back(work: Work) -> bool:
    """The pool acts on the node again: stand before the step anew. True when that has just come about."""
    if work.view.withdrawn or not _stands(work):
        return False
    _mark(work, "False", "")
    work.status.needs = ""
    work.current.attempt += 1
    gate.go_to(work, work.current.step, "the pool acts on the node again")
    return True


def still_missing(work: Work) -> None:
    """Keep what people are told true: the pool may have changed in another way."""
    _mark(work, "True", work.view.withdrawn)
    work.status.message = _message(work)


def _message(work: Work) -> str:
    node = work.repair.spec.node.name
    stays = "stays out of service as it is" if holds_node(work.repair) else "stays as it is"
    return (
        f"{work.current.step} does not begin: {work.view.withdrawn}. The node {stays}; to give it back: "
        f"kubectl uncordon {node}, or sickbay resolve {node} --outcome CancelledByPerson --reason WHY"
    )


def _holds(work: Work) -> bool:
    return holds_node(work.repair) or holds_cards(work.repair)


def _stands(work: Work) -> bool:
    found = work.status.condition(names.POOL_WITHDRAWN)
    return found is not None and found.status == "True"


def _mark(work: Work, status: str, message: str) -> str:
    """Set the condition. Returns since when it stands so."""
    reason = "NotActing" if status == "True" else "Acting"
    return work.set_condition(names.POOL_WITHDRAWN, status, reason, message)
