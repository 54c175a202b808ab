"""Hooks around a step: what of the owner's runs before and after it (`before`, `after` of a rule's step).

    Running, stage Before   the gate is open and the slot is held; execute runs the hooks, one after the other
    Running, no stage       the step itself, with its own time
    Running, stage After    the step is done; its hooks run before it counts as done

execute reports each hook, decide judges: one that failed with Escalate calls people, one with Continue is noted. Hooks
belong to planned steps: a rollback runs none, so that nothing of the owner's can keep a node from being given back.
"""

from __future__ import annotations

from datetime import timedelta

from sickbay.api import hooks, names
from sickbay.api.duration import parse_duration
from sickbay.api.repair_rule import Hook
from sickbay.api.words import HookFailure, Needs, Phase, ReportState, Stage, Step, StepState, WaitsFor
from sickbay.clock import rfc3339
from sickbay.decide import faultstate, gate
from sickbay.decide.hand import holds_node
from sickbay.decide.work import REMIND, Work

SLACK = timedelta(minutes=1)
"""Beyond the hooks' own times: for the order to arrive, and the report."""


def begins(work: Work, stage: Stage) -> bool:
    """Enter a stage of the current step. False when it has no hooks that still have to run."""
    if not _open(work, stage):
        return False
    current = work.current
    current.stage = stage.value
    time = sum((parse_duration(hook.timeout) for hook in _open(work, stage)), SLACK)
    named = ", ".join(hook.name for hook in _open(work, stage))
    when = "before" if stage == Stage.BEFORE else "after"
    work.wait(Phase.RUNNING, WaitsFor.HOOK, f"{named} runs {when} {current.step}", "Escalate", work.now + time)
    return True


def watch(work: Work) -> bool:
    """Follow the stage. True when all its hooks are over and the step goes on."""
    stage = Stage(work.current.stage)
    late = work.current.on_deadline != REMIND and work.now >= work.moment(work.current.deadline)
    failed = [hook for hook in hooks.of_stage(work.step(work.current.step), stage) if _failed(work, stage, hook, late)]
    stopping = [hook for hook in failed if hook.on_failure != HookFailure.CONTINUE and not _waived(work)]
    if stopping:
        _call_people(work, stage, stopping)
        return False
    if late or not _open(work, stage):
        _over(work, stage, failed)
        return True
    _kept(work)
    work.wake(work.moment(work.current.deadline))
    return False


def left(work: Work) -> None:
    """Something else has become of the step: its stage is over."""
    work.current.stage = ""


def back(work: Work) -> None:
    """Stand before the step again: only its hooks have run so far."""
    left(work)
    state = work.state(work.current.step)
    state.state, state.started = StepState.WAITING, None


def waive(work: Work) -> None:
    """A person lets the step go on despite a hook that failed."""
    state, step = work.state(work.current.step), work.current.step
    state.hooks_waived = work.current.attempt
    work.status.needs = ""
    if state.state == StepState.DONE:
        work.status.phase, work.current.waits_for, work.current.deadline = Phase.PENDING, "", None
    else:
        gate.go_to(work, step)


def _open(work: Work, stage: Stage) -> list[Hook]:
    if _waived(work):
        return []
    given = hooks.of_stage(work.step(work.current.step), stage)
    return [hook for hook in given if not hooks.settled(work.repair, stage, hook)]


def _waived(work: Work) -> bool:
    return work.state(work.current.step).hooks_waived == work.current.attempt


def _failed(work: Work, stage: Stage, hook: Hook, late: bool) -> bool:
    report = hooks.report_of(work.repair, stage, hook.name)
    if report is None or report.state not in hooks.FINAL:
        return late
    return report.state == ReportState.FAILED


def _call_people(work: Work, stage: Stage, failed: list[Hook]) -> None:
    """Before the step it has failed without having begun; after it, it is done and the repair stands behind it."""
    step, state = work.current.step, work.state(work.current.step)
    why = "; ".join(f"{hook.name}: {_message(work, stage, hook)}" for hook in failed)
    when = "before" if stage == Stage.BEFORE else "after"
    left(work)
    if stage == Stage.BEFORE:
        untouched = step == Step.QUARANTINE
        state.state = StepState.WAITING if untouched else StepState.FAILED
        state.started = None if untouched else state.started
    else:
        work.close_attempt(StepState.DONE)
        state.state = StepState.DONE
    state.finished = rfc3339(work.now)
    work.note(names.step_reason(step, StepState.FAILED), f"hook {when} {step}: {why}", warning=True)
    go_on = f"sickbay resolve {work.node.name} --outcome GoOn"
    gate.needs_people(work, Needs.HOOK_FAILED, f"hook {when} {step} failed: {why}. To go on without it: {go_on}")


def _message(work: Work, stage: Stage, hook: Hook) -> str:
    report = hooks.report_of(work.repair, stage, hook.name)
    return report.message if report is not None and report.message else "it did not end in time"


def _over(work: Work, stage: Stage, failed: list[Hook]) -> None:
    left(work)
    for hook in failed:
        text = f"hook {hook.name} failed, going on as the rule says: {_message(work, stage, hook)}"
        work.note(f"{work.current.step}Hook", text, warning=True)


def _kept(work: Work) -> None:
    """What keeps execute from running the hooks is said, and uses up none of their time."""
    current, report = work.current, work.state(work.current.step).report
    same = (report.attempt, report.plan_generation) == (current.attempt, work.plan.generation)
    if report.waits_for and same:
        going_on = current.waits_for == report.waits_for
        work.wait_on(Phase.RUNNING, report.waits_for, report.message or "stopped", going_on)
    elif current.on_deadline == REMIND:
        begins(work, Stage(current.stage))


def needless(work: Work) -> bool:
    """The fault is proven gone while hooks run before the step: it need not be done any more."""
    before = work.current.stage == Stage.BEFORE and work.current.step in (Step.QUARANTINE, Step.DRAIN, Step.REPAIR)
    if not before or not faultstate.all_clear(work.repair):
        return False
    if work.current.step == Step.QUARANTINE:
        back(work)
        return not holds_node(work.repair)
    left(work)
    return True
