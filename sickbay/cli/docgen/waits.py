"""docs/waits.md: for each kind of wait what it means, and what `sickbay explain` prints then.

The records are made up; what is printed for them is made by the code that explains real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule
from sickbay.api.words import Phase, WaitsFor
from sickbay.cli.ops.look import explanation_lines
from sickbay.decide import catalogue
from sickbay.decide.explain import explain
from sickbay.decide.faults import active_faults

HEAD = """\
# What a repair waits for

Every wait has an end: `sickbay explain NODE` says what is waited for, since when, until when, what happens then, who
acts, which step is next, and
what would move it on. The same stands in the NodeRepair (`status.current`). Written by `python -m
sickbay.cli.generate` with the code that explains real repairs; a test keeps it current.
"""
NODE, UID, SINCE = "gpu-node-17", "8c1f6a3e-0000-4000-8000-000000000017", "2027-03-01T08:00:00Z"
STEPS = ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")


@dataclass(frozen=True, slots=True)
class Sample:
    """A repair that stands before something."""

    waits_for: WaitsFor
    meaning: str
    phase: Phase
    step: str
    message: str
    until: str
    then: str
    running: bool = False
    needs: str = ""


SAMPLES = (
    Sample(
        WaitsFor.APPROVAL,
        "A gate. Somebody has to answer; until then nothing of the step happens (`docs/approvals.md`).",
        Phase.WAITING_APPROVAL,
        "Drain",
        f"Drain waits for approval: kubectl label node {NODE} intervention.sickbay.dev/drain-node=approved "
        "--overwrite (or denied)",
        "2027-03-02T08:00:00Z",
        "Escalate",
    ),
    Sample(
        WaitsFor.SLOT,
        "A limit of the pool, or of an envelope: too many nodes are out, or too many repairs run (`docs/limits.md`).",
        Phase.WAITING_SLOT,
        "Quarantine",
        "Quarantine waits: 5 of at most 5 nodes of train are out of service (maxUnavailable)",
        "2027-03-02T08:00:00Z",
        "Remind",
    ),
    Sample(
        WaitsFor.JOB,
        "The jobs on the node: their end or their next interruption, where the fault may wait for it (`urgency`, "
        "`docs/custom-faults.md`); or their answer to a gate by Jobs, usually a checkpoint.",
        Phase.WAITING_JOB,
        "Drain",
        "Drain waits for the end of Job default/llm (AtJobEnd)",
        "2027-03-02T08:00:00Z",
        "AskPeople",
    ),
    Sample(
        WaitsFor.CLEAR_PROOF,
        "The fault is no longer seen, but the proof that its type asks for is missing: nothing is done until it comes.",
        Phase.PENDING,
        "Repair",
        "gpu.xid.79 is no longer seen, but nothing proves that it is gone",
        "2027-03-01T08:30:00Z",
        "Escalate",
    ),
    Sample(
        WaitsFor.WINDOW,
        "The pool's windows let nothing start now.",
        Phase.WAITING_SLOT,
        "Quarantine",
        "Quarantine waits: outside every Allow window",
        "2027-03-02T08:00:00Z",
        "Remind",
    ),
    Sample(
        WaitsFor.HOLD,
        "A Hold. It ends at its `until`, or when somebody releases it (`docs/holds.md`).",
        Phase.PENDING,
        "Quarantine",
        "Quarantine waits for a Hold to end: driver-roll-out: driver 595",
        "2027-03-02T08:00:00Z",
        "Remind",
    ),
    Sample(
        WaitsFor.BREAKER,
        "The pool's breaker is open: too many nodes are faulty at once (`docs/operations.md`).",
        Phase.WAITING_SLOT,
        "Quarantine",
        "Quarantine waits: the breaker is open: 12 nodes are faulty, more than 10",
        "2027-03-02T08:00:00Z",
        "Remind",
    ),
    Sample(
        WaitsFor.STORM,
        "Many nodes fell sick at once with something in common: one cause is looked for, not many repairs.",
        Phase.WAITING_SLOT,
        "Quarantine",
        "Quarantine waits: a storm: 8 nodes with domain sickbay.dev/rack=r12; one shared cause is looked for",
        "2027-03-02T08:00:00Z",
        "Remind",
    ),
    Sample(
        WaitsFor.OTHER_OWNER,
        "Another system has the node: it is being deleted or disrupted, opted out, or somebody holds its Lease.",
        Phase.PENDING,
        "Quarantine",
        "Quarantine waits: another system is taking the node away (taint karpenter.sh/disrupted)",
        "2027-03-02T08:00:00Z",
        "Remind",
    ),
    Sample(
        WaitsFor.PROVIDER,
        "The act runs: the back-end or the node's agent is at it.",
        Phase.RUNNING,
        "Repair",
        "Repair (RebootNode) runs",
        "2027-03-01T08:15:00Z",
        "NextRung",
        running=True,
    ),
    Sample(
        WaitsFor.PODS,
        "The drain runs: pods are still on the node.",
        Phase.RUNNING,
        "Drain",
        "2 pods are left: default/api-7 (budget api)",
        "2027-03-01T08:30:00Z",
        "Escalate",
        running=True,
    ),
    Sample(
        WaitsFor.HOOK,
        "A hook of the rule runs before or after the step (`docs/rules.md`).",
        Phase.RUNNING,
        "Drain",
        "snapshot runs before Drain",
        "2027-03-01T08:11:00Z",
        "Escalate",
        running=True,
    ),
    Sample(
        WaitsFor.CHECKS,
        "Validate runs: the node has to be well, and to stay so for the soak.",
        Phase.RUNNING,
        "Validate",
        "all checks pass; they must hold for 5m",
        "2027-03-01T08:30:00Z",
        "NextRung",
        running=True,
    ),
    Sample(
        WaitsFor.PEOPLE,
        "Nothing more can be done without a person. The node stays as it is; people are reminded.",
        Phase.NEEDS_HUMAN,
        "Repair",
        "all remedies are used up (last: PowerCycle)",
        "2027-03-01T12:00:00Z",
        "Remind",
        needs="RepairFailed",
    ),
)


def markdown() -> str:
    return "\n".join([HEAD, *(line for sample in SAMPLES for line in _section(sample))])


def _section(sample: Sample) -> Iterator[str]:
    yield from (f"## {sample.waits_for}", "", sample.meaning, "", "```text")
    yield from explained(sample)
    yield from ("```", "")


def explained(sample: Sample) -> Iterator[str]:
    """What `sickbay explain` prints for the sample."""
    condition = {"type": "NvidiaXID79Error", "status": "True", "message": "GPU has fallen off the bus"}
    meta = {"name": NODE, "uid": UID, "labels": {"pool": "train"}}
    node = msgspec.convert({"metadata": meta, "status": {"conditions": [condition]}}, Node)
    procedure: list[dict[str, Any]] = [{"step": step} for step in STEPS if step != "Validate"]
    rules = [{"name": "severe", "faults": {"severities": ["Critical"]}, "procedure": procedure}]
    rule = msgspec.convert({"metadata": {"name": "full-loop"}, "spec": {"rules": rules}}, RepairRule)
    pool = msgspec.convert({"metadata": {"name": "train"}, "spec": {"mode": "Act", "rule": "full-loop"}}, RepairPool)
    holds = [_hold()] if sample.waits_for == WaitsFor.HOLD else []
    told = explain(node, active_faults(node, catalogue.build()), pool, rule, [_record(sample)], holds)
    yield from explanation_lines(told)


def _hold() -> Hold:
    body = {"metadata": {"name": "driver-roll-out"}, "spec": {"level": "NewRepairs", "reason": "driver 595"}}
    return msgspec.convert(body, Hold)


def _record(sample: Sample) -> NodeRepair:
    steps = [{"step": step, **({"action": "RebootNode"} if step == "Repair" else {})} for step in STEPS]
    done = STEPS[: STEPS.index(sample.step)]
    states = {step: {"state": "Done"} for step in done}
    states[sample.step] = {"state": "Running" if sample.running else "Waiting"}
    current = {
        "step": sample.step, "since": SINCE, "deadline": sample.until, "waitsFor": str(sample.waits_for),
        "onDeadline": sample.then,
    }  # fmt: skip
    body = {
        "metadata": {"name": f"{NODE}-8c1f6a3e-1"},
        "spec": {"node": {"name": NODE, "uid": UID}, "pool": {"name": "train"}, "plan": {"steps": steps}},
        "status": {
            "phase": str(sample.phase), "needs": sample.needs, "message": sample.message, "current": current,
            "steps": states,
        },
    }  # fmt: skip
    return msgspec.convert(body, NodeRepair)
