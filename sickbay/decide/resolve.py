"""A person's word on how an incident came out (`sickbay resolve`).

It stands in an annotation of the NodeRepair and names its moment, so that each word is followed once, whatever is
applied again later. What a person says is gone is still validated before the node returns.
"""

from __future__ import annotations

from sickbay.api import names
from sickbay.api.node_repair import NodeRepair
from sickbay.api.resolution import read
from sickbay.api.words import Needs, Outcome, Step, StepState
from sickbay.decide import gate, stages
from sickbay.decide.endings import cancel, end, unvalidated
from sickbay.decide.hand import holds_node
from sickbay.decide.work import Work

GO_ON = "GoOn"
"""No outcome, but a word beside them: the step goes on although a hook of it has failed."""


def follow(work: Work) -> bool:
    """Follow a word that has not been followed yet. True when it changed the repair."""
    word = read(work.repair)
    if word is None or word.at == work.status.resolved:
        return False
    message = f"resolved by {word.by or 'a person'} as {word.outcome}" + (f": {word.reason}" if word.reason else "")
    work.status.resolved = word.at
    if word.outcome == Outcome.CANCELLED_BY_PERSON:
        if holds_node(work.repair):
            message += unvalidated(work)
            work.note(names.RETURNED_BY_HAND, message, warning=True)
        cancel(work, Outcome.CANCELLED_BY_PERSON, message)
    elif word.outcome == Outcome.LEFT_QUARANTINED and holds_node(work.repair):
        end(work, Outcome.LEFT_QUARANTINED, message)
    elif word.outcome == GO_ON and work.status.needs == Needs.HOOK_FAILED:
        stages.waive(work)
    elif word.outcome == Outcome.REPAIRED:
        _repaired(work, message)
    else:
        return False
    work.note("RepairResolved", message)
    return True


def _repaired(work: Work, message: str) -> None:
    if not holds_node(work.repair):
        end(work, Outcome.REPAIRED, message)
        return
    repair = work.state(Step.REPAIR)
    if repair.state == StepState.RUNNING:
        work.close_attempt(StepState.DONE)
        repair.state = StepState.DONE
    work.status.needs, work.status.outcome = "", ""
    work.current.attempt += 1
    gate.go_to(work, Step.VALIDATE, message)


def forgotten(repair: NodeRepair) -> bool:
    """True when a person's later word takes back what is remembered of a cancel or a denial."""
    word = read(repair)
    return word is not None and repair.status.ended_at is not None and word.at >= repair.status.ended_at
