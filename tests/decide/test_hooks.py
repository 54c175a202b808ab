"""Hooks around a step, as decide follows them: they gate it, they end it, and a failed one calls people or is noted."""

from __future__ import annotations

import json

import msgspec
import pytest

from sickbay.api.repair_step import HookReport
from sickbay.clock import rfc3339
from tests.decide.made import hours, minutes, rule
from tests.decide.story import Story

ORDER = ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")


def hook(name: str = "h", **more) -> dict:
    return {"name": name, "call": {"endpoint": "e"}, "timeout": "10m", **more}


def hooked(step: str, stage: str, *hooks: dict, approval: dict | None = None) -> Story:
    """A repair that stands at this stage of this step."""
    extra = {stage.lower(): list(hooks) or [hook()]} | ({"approval": approval} if approval else {})
    story = Story("test.reboot", rule=rule([{"step": s, **(extra if s == step else {})} for s in ORDER]))
    story.run(*ORDER[: ORDER.index(step)])
    if stage == "After":
        story.at(step, "Running")
        story.report("Done")
    return story


def says(story: Story, state: str, name: str = "h", message: str = "") -> None:
    """execute reports on a hook of the present stage."""
    current = story.repair.status.current
    report = HookReport(
        name=name,
        stage=current.stage,
        attempt=current.attempt,
        plan_generation=story.repair.spec.plan.generation,
        state=state,
        message=message,
    )
    story.repair.status.steps[current.step].hooks.append(report)
    story.look()


def word(story: Story, outcome: str) -> None:
    value = json.dumps({"outcome": outcome, "reason": "", "at": rfc3339(story.moment)})
    meta = msgspec.structs.replace(story.repair.metadata, annotations={"sickbay.dev/resolve": value})
    story.repair.metadata = meta
    story.look()


def stage(story: Story) -> str:
    return story.repair.status.current.stage


@pytest.mark.parametrize("step", ORDER)
def test_a_hook_before_gates_the_step(step):
    story = hooked(step, "Before")
    assert (stage(story), story.repair.status.current.waits_for) == ("Before", "Hook")
    story.after(minutes(5))
    assert stage(story) == "Before"
    says(story, "Done")
    assert stage(story) == ""
    story.run(*ORDER[ORDER.index(step) :])
    story.ended("Succeeded", "Repaired")


@pytest.mark.parametrize("step", ORDER)
def test_a_step_counts_as_done_only_after_its_hooks(step):
    story = hooked(step, "After")
    assert (stage(story), story.state(step)) == ("After", "Running")
    says(story, "Done")
    assert story.state(step) == "Done"


def test_hooks_wait_for_gate_and_slot():
    story = hooked("Drain", "Before", approval={"by": "People", "timeout": "24h"})
    assert (story.phase, stage(story)) == ("WaitingApproval", "")
    story.grants = False
    story.approve("Drain")
    assert (story.phase, stage(story)) == ("WaitingSlot", "")
    story.grants = True
    story.look()
    assert (story.phase, stage(story)) == ("Running", "Before")


def test_all_hooks_have_to_end_and_their_time_is_not_the_steps():
    story = hooked("Drain", "Before", hook("one"), hook("two"))
    story.after(minutes(9))
    says(story, "Done", "one")
    assert stage(story) == "Before"
    story.after(minutes(9))
    says(story, "Done", "two")
    story.after(minutes(29))
    story.at("Drain", "Running")
    assert story.phase == "Running", "the drain has its 30 minutes from now on"


@pytest.mark.parametrize("when", ["Before", "After"])
@pytest.mark.parametrize("how", ["fails", "is late"])
def test_a_hook_that_fails_calls_people_and_their_word_lets_the_step_go_on(when, how):
    story = hooked("Drain", when)
    if how == "fails":
        says(story, "Failed", message="disk full")
        assert "disk full" in story.repair.status.message
    else:
        story.after(minutes(12))
    assert (story.phase, story.needs) == ("NeedsHuman", "HookFailed")
    story.after(hours(1))
    assert story.needs == "HookFailed"
    word(story, "GoOn")
    if when == "Before":
        story.run("Drain")
    story.run("Repair", "Validate", "Unquarantine")
    story.ended("Succeeded", "Repaired")
    assert story.clean()


@pytest.mark.parametrize("when", ["Before", "After"])
@pytest.mark.parametrize("how", ["fails", "is late"])
def test_a_hook_that_may_fail_is_noted_and_the_step_goes_on(when, how):
    story = hooked("Drain", when, hook(onFailure="Continue"))
    says(story, "Failed") if how == "fails" else story.after(minutes(12))
    assert stage(story) == ""
    if when == "Before":
        story.run("Drain")
    assert story.state("Drain") == "Done"
    assert "DrainHook" in story.reasons()


def test_a_fault_that_goes_while_a_hook_runs_needs_no_step():
    story = hooked("Drain", "Before")
    story.reboot()
    story.look()
    assert (story.step, stage(story)) == ("Validate", "")
    assert story.state("Drain") == "Cancelled"


def test_before_quarantine_a_fault_that_goes_leaves_nothing_to_take_back():
    story = hooked("Quarantine", "Before")
    story.reboot()
    story.look()
    story.ended("Cancelled", "SelfRecovered")
    assert story.clean()


def test_a_persons_uncordon_cancels_and_the_rollback_runs_no_hook():
    story = hooked("Unquarantine", "Before")
    story.uncordon()
    assert (story.phase, stage(story)) == ("Cancelling", "")
    story.report("Done")
    story.ended("Cancelled", "CancelledByPerson")


def test_a_hold_stops_the_hooks_of_a_step_that_has_not_begun():
    story = hooked("Drain", "Before")
    story.hold = "NextStep"
    story.look()
    assert (stage(story), story.repair.status.current.waits_for) == ("", "Hold")
    story.hold = ""
    story.look()
    assert stage(story) == "Before"
