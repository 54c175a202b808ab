"""The loop without trouble, and the smaller procedures."""

from __future__ import annotations

import pytest

from tests.decide.made import fault_type, minutes, procedure, rule
from tests.decide.story import Story


def test_a_fault_goes_all_the_way_round():
    story = Story("test.reboot").run("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")
    story.ended("Succeeded", "Repaired")
    assert story.acts() == ["RebootNode"]
    assert story.clean()
    done = [f"{step}Done" for step in ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")]
    assert story.reasons() == [*done, "RepairEnded"]


def test_each_step_is_recorded_with_its_times_and_proof():
    story = Story("test.reboot").run("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")
    steps = story.repair.status.steps
    assert [steps[s].state for s in ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")] == ["Done"] * 5
    assert (steps["Drain"].started, steps["Drain"].finished) == ("2027-03-01T08:01:00Z", "2027-03-01T08:02:00Z")
    attempt = steps["Repair"].attempts[0]
    assert (attempt.n, attempt.action, attempt.state) == (1, "RebootNode", "Done")
    assert attempt.proof == {"bootBefore": "boot-1", "bootID": "boot-1+"}


@pytest.mark.parametrize(
    ("steps", "fault", "run", "outcome"),
    [
        pytest.param(
            ("Quarantine", "Drain"), "test.reboot", ("Quarantine", "Drain"), "LeftQuarantined", id="taken-out"
        ),
        pytest.param(("Quarantine",), "test.reboot", ("Quarantine",), "LeftQuarantined", id="only-cordoned"),
        pytest.param(("Repair",), "test.service", ("Repair", "Validate"), "Repaired", id="a-service-restart"),
        pytest.param(
            ("Quarantine", "Drain", "Repair"),
            "test.reboot",
            ("Quarantine", "Drain", "Repair", "Validate"),
            "LeftQuarantined",
            id="repaired-but-not-returned",
        ),
        pytest.param(
            ("Quarantine", "Repair", "Unquarantine"),
            "test.service",
            ("Quarantine", "Repair", "Validate", "Unquarantine"),
            "Repaired",
            id="without-a-drain",
        ),
    ],
)
def test_a_procedure_may_be_any_subset_of_the_steps(steps, fault, run, outcome):
    story = Story(fault, rule=rule(procedure(*steps)))
    for step in run:
        if step == "Validate":
            story.fault(fault, "False")
        story.run(step)
    story.ended("Succeeded", outcome)


def test_a_fault_without_a_remedy_of_its_own_is_validated():
    story = Story("test.suspect").run("Quarantine", "Drain")
    story.at("Validate")
    assert story.state("Repair") == "Cancelled"
    story.fault("test.suspect", "False")
    story.run("Validate", "Unquarantine").ended("Succeeded", "Repaired")
    assert story.acts() == []


def test_validate_is_told_how_long_all_must_stay_well():
    story = Story("test.reboot").run("Quarantine", "Drain", "Repair")
    assert story.repair.status.current.args == {"soak": "5m", "level": "0"}
    validation = {"soak": "30s", "ceiling": "2h", "level": 2, "checks": ["nccl"]}
    tuned = Story("test.tuned", types=(fault_type("test.tuned", validation=validation),))
    tuned.run("Quarantine", "Drain", "Repair")
    assert tuned.repair.status.current.args == {"soak": "30s", "level": "2", "checks": "nccl"}
    assert tuned.repair.status.current.deadline == "2027-03-01T10:03:00Z"


@pytest.mark.parametrize(
    ("fault", "phase"),
    [
        pytest.param("test.hardware", "Parked", id="a-third-party-is-waited-for"),
        pytest.param("test.reboot", "Running", id="our-own-act-runs"),
    ],
)
def test_acts_of_third_parties_are_parked(fault, phase):
    story = Story(fault).run("Quarantine", "Drain")
    assert (story.step, story.phase, story.repair.status.current.waits_for) == ("Repair", phase, "Provider")


def test_a_parked_repair_goes_on_when_the_fault_is_proven_gone():
    story = Story("test.hardware").run("Quarantine", "Drain")
    story.after(minutes(60 * 24))
    story.facts["provider_id"] = "fake:///n1/2"
    story.fault("test.hardware", "False")
    story.at("Validate")
    story.run("Validate", "Unquarantine").ended("Succeeded", "Repaired")


def test_what_execute_says_is_shown():
    story = Story("test.reboot").run("Quarantine")
    story.report("InProgress", "3 pods are left")
    assert story.repair.status.message == "3 pods are left"
    assert story.repair.status.current.waits_for == "Pods"
