"""Faults that may wait for the job: until its end or its next stop, and no longer than the ceiling."""

from __future__ import annotations

import msgspec
import pytest

from sickbay.api.core import Pod
from sickbay.clock import rfc3339
from sickbay.decide.gangs import MOST, is_job_pod
from tests.decide.made import at, fault_type, hours, minutes, procedure, rule
from tests.decide.story import Story


def pod(
    name: str = "llm-0", *, node: str = "n1", job: str = "llm", restarts: int = 0, made: float = -60, **more
) -> Pod:
    """A rank of a job."""
    meta = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}-{made}",
        "labels": {"batch.kubernetes.io/job-name": job} if job else {},
        "creationTimestamp": rfc3339(at(made)),
        **more.pop("metadata", {}),
    }
    status = {"phase": more.pop("phase", "Running"), "containerStatuses": [{"name": "main", "restartCount": restarts}]}
    spec = {"nodeName": node, "restartPolicy": more.pop("restart", "Never")}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Pod)


GANG = [pod("llm-0"), pod("llm-1", node="n2")]


def waiting(urgency: str, pods: list[Pod] | None = None, gates=None, **spec) -> Story:
    """A repair of a fault with this urgency, on a node where a rank of a gang runs."""
    known = fault_type("test.later", urgency=urgency, **spec)
    story = Story("test.later", types=(known,), rule=rule(procedure(**(gates or {}))), opened=False)
    story.pods = list(GANG) if pods is None else pods
    story.repair = story._opened()
    story.look()
    if urgency == "AtJobEnd":
        story.run("Quarantine")
    return story


@pytest.mark.parametrize(
    ("urgency", "step"), [("AtNextInterruption", "Quarantine"), ("AtJobEnd", "Drain")], ids=["interruption", "end"]
)
def test_the_repair_waits_for_the_job_and_says_for_which(urgency, step):
    story = waiting(urgency)
    story.at(step, "Waiting")
    assert (story.phase, story.repair.status.current.waits_for) == ("WaitingJob", "Job")
    assert "Job default/llm" in story.repair.status.message
    assert "Repair" not in story.slots, "what waits for a job keeps nobody else from a slot"


def test_at_job_end_nothing_new_comes_but_nothing_leaves():
    story = waiting("AtJobEnd")
    assert story.node.unschedulable
    story.after(hours(23))
    story.at("Drain", "Waiting")


def test_until_the_next_interruption_the_node_stays_in_service_and_out_of_new_placements():
    story = waiting("AtNextInterruption")
    assert not story.node.unschedulable
    condition = story.repair.status.condition("WouldQuarantine")
    assert (condition.status, condition.reason) == ("True", "NextInterruption")


STOPS = {
    "a rank on another node is gone": [pod("llm-0")],
    "a rank on another node terminates": [
        pod("llm-0"),
        pod("llm-1", node="n2", metadata={"deletionTimestamp": rfc3339(at(0))}),
    ],
    "a rank has failed": [pod("llm-0"), pod("llm-1", node="n2", phase="Failed")],
    "a rank has been made anew": [pod("llm-0"), pod("llm-1", node="n3", made=100)],
    "a container has been restarted in place": [pod("llm-0", restarts=1), pod("llm-1", node="n2")],
    "the whole gang is gone": [],
}


@pytest.mark.parametrize("pods", STOPS.values(), ids=STOPS)
def test_at_the_next_interruption_the_node_leaves(pods):
    story = waiting("AtNextInterruption")
    story.pods = pods
    story.look()
    story.at("Quarantine", "Running")
    story.run("Quarantine")
    story.at("Drain", "Running")
    assert story.repair.status.condition("WouldQuarantine").status == "False"


GOES_ON = {
    "nothing has changed": GANG,
    "the gang has grown": [*GANG, pod("llm-2", node="n3", made=100)],
    "a service on the node has moved": [
        *GANG,
        pod(
            "api-1",
            job="",
            restart="Always",
            metadata={"ownerReferences": [{"kind": "ReplicaSet", "name": "api", "controller": True}]},
        ),
    ],
}


@pytest.mark.parametrize("pods", GOES_ON.values(), ids=GOES_ON)
def test_what_interrupts_no_job_moves_no_node(pods):
    story = waiting("AtNextInterruption")
    story.pods = pods
    story.after(minutes(5))
    story.at("Quarantine", "Waiting")


def test_of_two_jobs_each_has_to_stop_once():
    story = waiting("AtNextInterruption", [*GANG, pod("eval-0", job="eval")])
    story.pods = [pod("llm-0"), pod("eval-0", job="eval")]
    story.look()
    story.at("Quarantine", "Waiting")
    story.pods = [pod("eval-0", job="eval", restarts=1)]
    story.look()
    story.at("Quarantine", "Running")


def test_jobs_that_have_come_and_gone_take_no_room_from_one_that_runs():
    """More of them than a record holds: the last one to come is waited for as the first was."""
    story = waiting("AtNextInterruption")
    for n in range(MOST + 1):
        story.pods = [*GANG, pod(f"short-{n}", job=f"short-{n}", made=100 * n)]
        story.after(100)
    story.pods = [pod("llm-0"), story.pods[-1]]
    story.look()
    story.at("Quarantine", "Waiting")
    assert f"short-{MOST}" in story.repair.status.message
    story.pods = []
    story.look()
    story.at("Quarantine", "Running")


@pytest.mark.parametrize("urgency", ["AtNextInterruption", "AtJobEnd"])
def test_an_idle_node_has_nothing_to_wait_for(urgency):
    story = waiting(urgency, pods=[])
    assert story.phase == "Running"


@pytest.mark.parametrize("urgency", ["AtNextInterruption", "AtJobEnd"])
def test_unknown_pods_are_no_idle_node(urgency):
    story = waiting(urgency)
    story.pods = None
    story.after(60)
    assert story.phase == "WaitingJob"


def test_the_end_of_the_job_lets_the_drain_begin():
    story = waiting("AtJobEnd")
    story.pods = [pod("llm-0", phase="Succeeded")]
    story.look()
    story.at("Drain", "Running")


def test_at_the_ceiling_people_are_asked_and_their_yes_is_needed():
    story = waiting("AtNextInterruption", ceiling="2h")
    story.after(hours(2) - 61)
    assert story.phase == "WaitingJob"
    story.after(120)
    assert (story.phase, story.label("Quarantine")) == ("WaitingApproval", "inquiring")
    story.approve("Quarantine")
    story.at("Quarantine", "Running")


def test_the_next_stronger_urgency_has_its_own_ceiling_and_question():
    story = waiting("AtJobEnd", ceiling="2h")
    story.after(hours(3))
    story.approve("Drain")
    assert (story.phase, story.repair.status.urgency.level) == ("WaitingJob", "AtNextInterruption")
    story.after(hours(3))
    assert (story.phase, story.label("Drain")) == ("WaitingApproval", "inquiring"), "the old yes is not taken for it"
    story.approve("Drain")
    story.at("Drain", "Running")


def test_a_job_that_stops_while_people_are_asked_needs_no_answer_any_more():
    story = waiting("AtNextInterruption", ceiling="2h")
    story.after(hours(3))
    story.pods = []
    story.look()
    story.at("Quarantine", "Running")
    assert story.label("Quarantine") == "", "the question has gone with its reason"


def test_a_gate_of_the_rule_still_asks_after_the_job_has_stopped():
    story = waiting("AtNextInterruption", gates={"Quarantine": {"by": "People", "timeout": "24h"}})
    assert story.label("Quarantine") == "", "nobody is asked before it is time"
    story.pods = []
    story.look()
    assert story.phase == "WaitingApproval"
    story.approve("Quarantine")
    story.at("Quarantine", "Running")


def test_a_no_at_the_ceiling_ends_the_repair():
    story = waiting("AtJobEnd", ceiling="2h")
    story.after(hours(3))
    story.deny("Drain")
    story.run("Unquarantine")
    story.ended("Cancelled", "Denied")
    assert story.clean()


def test_the_providers_own_date_is_the_latest_ceiling_and_one_yes_is_enough():
    story = waiting("AtJobEnd")
    story.provider_date = at(hours(1))
    story.after(minutes(57))
    assert story.phase == "WaitingJob"
    story.after(minutes(5))
    assert story.phase == "WaitingApproval"
    story.approve("Drain")
    story.at("Drain", "Running")


def test_a_date_that_the_provider_puts_off_takes_the_question_back():
    story = waiting("AtJobEnd")
    story.provider_date = at(hours(1))
    story.after(hours(2))
    story.provider_date = at(hours(12))
    story.look()
    assert (story.phase, story.label("Drain")) == ("WaitingJob", "")


def test_a_fault_that_cannot_wait_takes_the_others_with_it():
    story = waiting("AtJobEnd", severity="Critical")
    story.fault("test.reset")
    assert story.repair.spec.faults[0].type == "test.later", "the graver one still leads"
    assert story.repair.spec.plan.urgency == "Now"
    story.at("Drain", "Running")


def test_a_fault_that_goes_while_it_waits_leaves_no_trace():
    story = waiting("AtNextInterruption", clears_by="condition")
    story.fault("test.later", "False")
    story.ended("Cancelled", "SelfRecovered")
    assert story.clean()


def test_in_front_of_a_service_restart_it_waits_too():
    story = waiting("AtJobEnd", remedy=["RestartService"], class_="System")
    story.at("Drain", "Waiting")


@pytest.mark.parametrize(("act", "waits"), [("RestartService", True), ("RestartDevicePlugin", False)])
def test_a_device_plug_in_is_restarted_beside_the_job(act, waits):
    known = fault_type("test.later", urgency="AtJobEnd", remedy=[act], class_="System")
    story = Story("test.later", types=(known,), rule=rule([{"step": "Repair"}]), opened=False)
    story.pods = list(GANG)
    story.repair = story._opened()
    story.look()
    story.at("Repair", "Waiting" if waits else "Running")


@pytest.mark.parametrize(
    ("made", "job"),
    [
        pytest.param(pod(), True, id="a rank"),
        pytest.param(pod(job="", restart="OnFailure"), True, id="a pod that ends by itself"),
        pytest.param(pod(job="", restart="Always"), False, id="a bare pod that is always restarted"),
        pytest.param(pod(phase="Succeeded"), False, id="a rank that has ended"),
        pytest.param(
            pod(
                job="",
                restart="Always",
                metadata={"ownerReferences": [{"kind": "RayCluster", "name": "r", "controller": True}]},
            ),
            True,
            id="a worker of a framework",
        ),
        pytest.param(
            pod(job="", metadata={"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}),
            False,
            id="a DaemonSet pod",
        ),
    ],
)
def test_what_counts_as_a_job(made, job):
    assert is_job_pod(made) is job
