"""The hooks of a step, in the order in which they run, and what is reported of them, for decide and execute alike."""

from __future__ import annotations

from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_plan import PlanStep
from sickbay.api.repair_rule import Hook
from sickbay.api.repair_step import HookReport
from sickbay.api.words import ReportState, Stage

FINAL = (ReportState.DONE, ReportState.FAILED)


def of_stage(step: PlanStep, stage: str) -> list[Hook]:
    return step.before if stage == Stage.BEFORE else step.after if stage == Stage.AFTER else []


def report_of(repair: NodeRepair, stage: str, hook: str) -> HookReport | None:
    """The report on a hook of the current attempt; None when it has not begun."""
    current, generation = repair.status.current, repair.spec.plan.generation
    wanted = stage, hook, current.attempt, generation
    for report in repair.status.step(current.step).hooks:
        if (report.stage, report.name, report.attempt, report.plan_generation) == wanted:
            return report
    return None


def settled(repair: NodeRepair, stage: str, hook: Hook) -> bool:
    """It has ended, well or not."""
    report = report_of(repair, stage, hook.name)
    return report is not None and report.state in FINAL
