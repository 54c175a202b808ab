"""What a record says about its current attempt: has it a report, and is that the last word?"""

from __future__ import annotations

from sickbay.api.actions import domain_wide
from sickbay.api.node_repair import NodeRepair
from sickbay.api.objectnames import act_key
from sickbay.api.words import FINAL_REPORTS, Step


def key_of(repair: NodeRepair, step: str, attempt: int, action: str) -> str:
    """Idempotency key of an attempt. An act on a whole domain is the group's, whichever member leads."""
    shared = repair.spec.group.id if domain_wide(action) else ""
    return act_key(shared or repair.metadata.uid, step, attempt)


def is_current(repair: NodeRepair) -> bool:
    """True when the current attempt is claimed. A report without a state only says why it is not.

    An attempt of Repair is the same one under every generation of the plan: its key is used once. Decide writes a new
    plan before it writes what follows from it, and may die in between.
    """
    current = repair.status.current
    report = repair.status.step(current.step).report
    same_plan = current.step == Step.REPAIR or report.plan_generation == repair.spec.plan.generation
    return report.state != "" and report.attempt == current.attempt and same_plan


def is_final(repair: NodeRepair) -> bool:
    return is_current(repair) and repair.status.step(repair.status.current.step).report.state in FINAL_REPORTS
