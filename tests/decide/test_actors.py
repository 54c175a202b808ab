"""Who acts, what is next and when: `sickbay explain` says it of every wait."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import WaitsFor
from sickbay.cli.ops.look import explanation_lines
from sickbay.decide.explain import explain

POOL = msgspec.convert({"metadata": {"name": "train"}, "spec": {"mode": "Act", "rule": "r"}}, RepairPool)
STEPS = [{"step": "Quarantine"}, {"step": "Drain"}, {"step": "Repair", "action": "RebootNode"}, {"step": "Validate"}]


def node(labels: dict[str, str] | None = None, conditions: list[dict[str, Any]] | None = None, **status: Any) -> Node:
    meta = {"name": "node-97", "uid": "u", "labels": labels or {}}
    return msgspec.convert({"metadata": meta, "status": {"conditions": conditions or [], **status}}, Node)


def repair(waits_for: str, step: str = "Drain", state: str = "Waiting", gate: Any = None, **status: Any) -> NodeRepair:
    current = {"step": step, "waitsFor": waits_for, "since": "2027-03-01T08:00:00Z",
               "deadline": "2027-03-01T09:00:00Z", "onDeadline": "Remind"}  # fmt: skip
    steps = [s | ({"approval": gate} if gate and s["step"] == step else {}) for s in STEPS]
    spec = {"node": {"name": "node-97", "uid": "u"}, "pool": {"name": "train"}, "plan": {"steps": steps}}
    told = {"phase": "Running", "current": current, "steps": {step: {"state": state}}, **status}
    return msgspec.convert({"metadata": {"name": "node-97-1"}, "spec": spec, "status": told}, NodeRepair)


def told(on: Node, *repairs: NodeRepair) -> str:
    return "\n".join(explanation_lines(explain(on, [], POOL, None, repairs, [])))


UPGRADE = {"type": "MaintenanceInProgress", "status": "True", "reason": "upgrade-controller"}


@pytest.mark.case("P208")
@pytest.mark.parametrize(
    ("there", "actor"),
    [
        pytest.param(node(conditions=[UPGRADE]), "upgrade-controller", id="a condition of KEP-5683"),
        pytest.param(
            node({"nvidia.com/gpu-driver-upgrade-state": "drain-required"}),
            "the GPU operator's driver upgrade",
            id="label",
        ),
    ],
)
@pytest.mark.parametrize("open_", [True, False], ids=["under repair", "not under repair"])
def test_what_another_system_does_is_said_with_who_it_is_and_what_comes_next(
    there: Node, actor: str, open_: bool
) -> None:
    text = told(there, *([repair(WaitsFor.OTHER_OWNER)] if open_ else []))
    (line,) = (line for line in text.splitlines() if line.startswith("Actor: "))
    assert actor in line
    assert "Next step: " + ("Drain, as soon as that is over" if open_ else "none by Sickbay; when that is over") in text
    if open_:
        assert "until 2027-03-01T09:00:00Z\nThen: people are reminded" in text


@pytest.mark.case("P208")
@pytest.mark.parametrize("waits_for", list(WaitsFor))
def test_every_wait_names_who_acts_what_is_next_and_when(waits_for: WaitsFor) -> None:
    lines = told(node(), repair(waits_for, message="somebody has it")).splitlines()
    for start in ("Actor: ", "Next step: ", "Then: ", f"Waits for: {waits_for}   since 2027-03-01T08:00:00Z   until "):
        assert [len(line) > len(start) for line in lines if line.startswith(start)] == [True], start


@pytest.mark.parametrize(
    ("found", "actor", "following"),
    [
        pytest.param(repair("Approval", gate={"groups": ["oncall"]}), "people of oncall", "Drain", id="a group"),
        pytest.param(repair("Approval", gate={"by": "Jobs"}), "the jobs on the node", "Drain", id="jobs"),
        pytest.param(repair("Approval", gate={"by": "PeopleAndJobs"}), "people, and the jobs", "Drain", id="both"),
        pytest.param(repair("Approval", gate={"by": "Robots"}), "people", "Drain", id="a word not known"),
        pytest.param(repair("Provider", "Repair", "Running"), "the agent on the node", "Validate", id="an act"),
        pytest.param(
            repair("Pods", "Drain", "Running"), "the pods, which are being evicted", "Repair, when Drain", id="pods"
        ),
        pytest.param(
            repair("People", "Repair", phase="NeedsHuman", needs="RepairFailed"), "people", "Validate", id="people"
        ),
        pytest.param(
            repair("Provider", "Repair", "Running", phase="Parked", case={"id": "4711"}), "(case 4711)", "Validate,",
            id="a vendor",
        ),
        pytest.param(repair("Checks", "Validate", "Running"), "Sickbay", "none: with Validate", id="the last step"),
    ],
)  # fmt: skip
def test_the_actor_is_named_as_far_as_the_record_knows(found: NodeRepair, actor: str, following: str) -> None:
    lines = told(node(), found).splitlines()
    assert [actor in line for line in lines if line.startswith("Actor: ")] == [True]
    assert [line.startswith(f"Next step: {following}") for line in lines if line.startswith("Next step: ")] == [True]


@pytest.mark.case("P205")
@pytest.mark.parametrize(
    ("labels", "offered", "capacity", "shown"),
    [
        pytest.param({}, "6", "8", "6 of 8 nvidia.com/gpu", id="fewer are offered than there are"),
        pytest.param({"gpu.count.expected": "8"}, "6", "6", "6 of 8 nvidia.com/gpu", id="fewer than there should be"),
        pytest.param({}, "8", "8", "8 of 8 nvidia.com/gpu", id="all"),
        pytest.param({}, None, "8", "0 of 8 nvidia.com/gpu", id="none"),
    ],
)
def test_gpus_are_shown_as_they_are_now_with_both_numbers(
    labels: dict[str, str], offered: str | None, capacity: str, shown: str
) -> None:
    allocatable = {} if offered is None else {"nvidia.com/gpu": offered}
    found = told(node(labels, allocatable=allocatable, capacity={"nvidia.com/gpu": capacity}))
    assert f"GPUs offered: {shown}" in found.splitlines()
