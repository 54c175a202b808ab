"""What a record says about its current attempt: has it a report, and is that the last word?"""

from __future__ import annotations

from sickbay.api.actions import domain_wide
from sickbay.api.node_repair import NodeRepair
from sickbay.api.objectnames import act_key
from sickbay.api.words import ReportState

FINAL = (ReportState.DONE, ReportState.FAILED, ReportState.UNKNOWN)


def key_of(repair: NodeRepair, step: str, attempt: int, action: str) -> str:
    """Idempotency key of an attempt. An act on a whole domain is the group's, whichever member leads."""
    shared = repair.spec.group.id if domain_wide(action) else ""
    return act_key(shared or repair.metadata.uid, step, attempt)


def is_current(repair: NodeRepair) -> bool:
    """True when the current attempt is claimed. A report without a state only says why it is not."""
    report, current = repair.status.step(repair.status.current.step).report, repair.status.current
    return (
        report.state != ""
        and report.attempt == current.attempt
        and report.plan_generation == repair.spec.plan.generation
    )


def is_final(repair: NodeRepair) -> bool:
    return is_current(repair) and repair.status.step(repair.status.current.step).report.state in FINAL
