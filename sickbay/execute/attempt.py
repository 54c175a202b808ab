"""What a record says about its current attempt: has it a report, and is that the last word?"""

from __future__ import annotations

from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import ReportState

FINAL = (ReportState.DONE, ReportState.FAILED, ReportState.UNKNOWN)


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
