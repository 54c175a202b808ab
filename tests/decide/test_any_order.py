"""A repair under whatever may happen in whatever order.

Hypothesis plays execute, people, detectors, machines and time against one repair. Beside what `story.check` asks after
every look, no order of events may lead to a step that was left out, to an act after a cancel, to a return that nobody
validated, or to a repair that hangs: helped by a friendly world it ends, or stands with people or a third party.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sickbay.api.actions import ACTIONS
from sickbay.clock import parse_time
from tests.decide import made
from tests.decide.story import Story

RARELY = st.sampled_from(["uncordon", "unmark", "delete", "gone", *[""] * 16])
"""What ends a story is drawn seldom, so that most of them get somewhere."""
PEOPLE = {"by": "People", "timeout": "1h"}
STEPS = ("Quarantine", "Drain", "Repair", "Unquarantine")
FAULTS = ("test.reboot", "test.reset", "test.service", "test.hardware", "test.support", "test.suspect", "test.climbs")
TYPES = (made.fault_type("test.climbs", remedy=["RestartService", "RebootNode"], clears_by="condition"),)
PROCEDURES = (
    made.FULL,
    ("Repair",),
    ("Quarantine", "Drain"),
    ("Quarantine", "Repair", "Unquarantine"),
    ("Quarantine", "Drain", "Repair"),
)


class AnyOrder(RuleBasedStateMachine):
    story: Story

    @initialize(
        fault=st.sampled_from(FAULTS),
        steps=st.sampled_from(PROCEDURES),
        gates=st.sets(st.sampled_from(STEPS)),
        on_timeout=st.sampled_from(["Escalate", "Skip", "Abort"]),
        drain=st.sampled_from(["Escalate", "Continue", "RollBack"]),
        scope=st.sampled_from(["All", "GPUPods"]),
    )
    def begin(self, fault, steps, gates, on_timeout, drain, scope):
        listed = made.procedure(*steps, **{step: {**PEOPLE, "onTimeout": on_timeout} for step in gates})
        for step in listed:
            if step["step"] == "Drain":
                step |= {"onTimeout": drain, "options": {"scope": scope}}
        self.story = Story(fault, rule=made.rule(listed), types=TYPES)
        self.acts_at_end: list[str] | None = None
        self.end: tuple[str, str] | None = None

    # --- all goes well for a while

    @rule(times=st.integers(1, 4))
    def it_goes_on(self, times):
        for _ in range(times):
            self._friendly()

    @rule(times=st.integers(1, 3), state=st.sampled_from(["Failed", "Failed", "Unknown", "Done"]))
    def it_goes_on_and_then_a_step_ends(self, times, state):
        self.it_goes_on(times)
        self.execute_reports(state)

    def _friendly(self):
        story = self.story
        if story.step and story.state(story.step) == "Running":
            story.now += 60
            story.report("Done")
        elif story.phase == "WaitingApproval":
            story.approve(story.step)
        elif not story.repair.ended:
            story.grants, story.hold, story.hands_off = True, "", ""
            story.look()

    # --- execute

    @rule(state=st.sampled_from(["Claimed", "InProgress", "Done", "Done", "Done", "Failed", "Unknown"]))
    def execute_reports(self, state):
        step = self.story.step
        if step and self.story.state(step) == "Running":
            self.story.report(state, "as it went")

    @rule(what=st.sampled_from(["", "Hold", "OtherOwner", "Job"]))
    def execute_is_kept_from_acting(self, what):
        step = self.story.step
        if step and self.story.state(step) == "Running":
            self.story.report("", "kept back", waits_for=what)

    # --- people

    @rule(word=st.sampled_from(["approved", "approved", "approved", "approved", "maybe", "denied"]))
    def somebody_answers(self, word):
        if self.story.step in STEPS:
            self.story.answer(self.story.step, word)

    @rule(step=st.sampled_from(STEPS), word=st.sampled_from(["approved", "denied"]))
    def somebody_answers_what_was_not_asked(self, step, word):
        if step != self.story.step:
            self.story.answer(step, word)

    @precondition(lambda self: self.story.facts.get("unschedulable"))
    @rule(how=RARELY)
    def somebody_takes_the_node_back(self, how):
        if how == "uncordon":
            self.story.uncordon()
        elif how == "unmark":
            self.story.unmark()

    @rule(level=st.sampled_from(["", "", "NewRepairs", "NextStep", "EveryAct"]))
    def somebody_holds(self, level):
        self.story.hold = level
        self.story.look()

    @rule(reason=st.sampled_from(["", "", "opted out"]))
    def the_node_is_off_limits(self, reason):
        self.story.hands_off = reason
        self.story.look()

    @rule(how=RARELY)
    def somebody_deletes_the_record(self, how):
        if how == "delete" and self.story.repair.metadata.deletion_timestamp is None:
            self.story.delete()

    # --- the node

    @rule(name=st.sampled_from(FAULTS), status=st.sampled_from(["True", "False", "False", "Unknown"]))
    def a_condition_changes(self, name, status):
        self.story.fault(name, status)

    @rule(clears=st.booleans())
    def the_machine_boots(self, clears):
        self.story.reboot(f"{self.story.facts['boot']}+", clears)
        self.story.look()

    @rule(agent=st.sampled_from([True, True, "Unknown", None]))
    def the_agent_sees_or_not(self, agent):
        self.story.facts["agent"] = agent
        self.story.look()

    @rule(how=RARELY)
    def the_node_is_deleted(self, how):
        if how == "gone":
            self.story.node_there = False
            self.story.look()

    # --- us

    @rule(seconds=st.sampled_from([1, 60, 600, 1900, 3700, 90000]))
    def time_passes(self, seconds):
        self.story.after(seconds)

    @rule(granted=st.booleans())
    def slots_are_granted_or_not(self, granted):
        self.story.grants = granted
        self.story.look()

    # --- what never happens

    @invariant()
    def an_end_is_an_end(self):
        if self.end is not None:
            assert (self.story.phase, self.story.outcome) == self.end
        elif self.story.repair.ended:
            self.end = (self.story.phase, self.story.outcome)

    @invariant()
    def after_a_cancel_nothing_is_done(self):
        over = self.story.phase == "Cancelling" or self.story.repair.ended
        if self.acts_at_end is not None:
            assert over
            assert self.story.acts() == self.acts_at_end
        elif over:
            self.acts_at_end = self.story.acts()

    @invariant()
    def no_act_on_the_whole_node_without_a_full_quarantine_and_drain(self):
        status, plan = self.story.repair.status, self.story.repair.spec.plan
        act = ACTIONS.get(status.current.action)
        if self.story.state("Repair") != "Running" or act is None or not (act.node_wide and act.disruptive):
            return
        for step in plan.steps:
            if step.step in ("Quarantine", "Drain"):
                assert self.story.state(step.step) in ("Done", "Skipped"), f"{act.name} before {step.step}"
        drain = plan.step("Drain")
        assert drain is None or drain.options is None or drain.options.scope == "All"
        if len(status.step("Repair").attempts) > 0:
            assert drain is not None, "a ladder that climbs empties the node first"

    @invariant()
    def no_return_without_a_validation_after_the_last_act(self):
        if self.story.phase == "Cancelling":
            assert self.story.outcome == "CancelledByPerson" or not self.story.acts()
        if self.story.state("Unquarantine") != "Running" or self.story.phase != "Running":
            return
        steps = self.story.repair.status.steps
        assert self.story.state("Validate") == "Done"
        acts = steps["Repair"].attempts if "Repair" in steps else []
        if acts:
            assert parse_time(steps["Validate"].started) >= parse_time(acts[-1].ended)

    @invariant()
    def the_ladder_is_climbed_once_per_plan(self):
        attempts = self.story.repair.status.step("Repair").attempts
        per_plan: dict[int, int] = {}
        for attempt in attempts:
            if attempt.state != "Cancelled":
                per_plan[attempt.plan_generation] = per_plan.get(attempt.plan_generation, 0) + 1
        assert all(count <= 2 for count in per_plan.values()), attempts

    def teardown(self):
        """With a friendly world it comes to an end, or stands with somebody."""
        if not hasattr(self, "story"):
            return
        story = self.story
        story.hold, story.hands_off, story.grants = "", "", True
        story.facts |= {"agent": True, "provider_id": "fake:///n1/new"}
        story.reboot(f"{story.facts['boot']}+")
        story.look()
        for _ in range(40):
            if story.repair.ended or story.phase in ("NeedsHuman", "Parked"):
                return
            self._friendly()
            story.after(1900)
        pytest.fail(f"it hangs: {story.phase} {story.repair.status.current} {story.repair.status.message}")


AnyOrder.TestCase.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TestAnyOrder = AnyOrder.TestCase
