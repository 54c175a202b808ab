"""Nodes that the job loop suspects, as the fault `job.suspect`.

A suspicion stands on no condition of the Node but in `JobRecovery.status.suspects`. It is bound to the node's UID, and
a repair that has ended well since it was raised has answered it, whether or not the job loop has taken it back yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sickbay.api.core import Node
from sickbay.api.fault_type import FaultType
from sickbay.api.job_recovery import JobRecovery, Suspect
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import Outcome, Step, StepState
from sickbay.clock import parse_time
from sickbay.decide.faults import Active

FAULT = "job.suspect"
ANSWERS = (Outcome.REPAIRED, Outcome.REPLACED)


def suspected(
    node: Node, records: Iterable[JobRecovery], past: Iterable[NodeRepair], fault: FaultType | None
) -> Active | None:
    """The suspicion against this very node, the oldest one that is not answered yet; None for none."""
    if fault is None:
        return None
    answered = max((parse_time(r.status.ended_at or "") for r in past if _answers(r, node)), default=None)
    open_ = [
        (since, record, suspect)
        for record in records
        for suspect in record.status.suspects
        if suspect.node == node.name and suspect.uid in ("", node.uid)
        if (since := _moment(suspect)) is not None and (answered is None or since > answered)
    ]
    if not open_:
        return None
    since, record, suspect = min(open_, key=lambda each: (each[0], each[1].namespace, each[1].name))
    job = record.spec.job
    message = f"suspected by {job.kind} {record.namespace}/{job.name}: {suspect.reason}"
    return Active(FAULT, fault, since, f"jobrecovery/{record.namespace}/{record.name}", "Suspected", message, ())


def _answers(repair: NodeRepair, node: Node) -> bool:
    ended = repair.spec.node.uid == node.uid and bool(repair.status.ended_at)
    return ended and repair.status.outcome in ANSWERS


def _moment(suspect: Suspect) -> datetime | None:
    try:
        return parse_time(suspect.since) if suspect.since else None
    except ValueError:
        return None


def is_answered(repair: NodeRepair, fault: str) -> bool:
    """True for a suspicion while the node is validated, and after that: the validation itself is its proof."""
    state = repair.status.step(Step.VALIDATE).state
    return fault == FAULT and state in (StepState.RUNNING, StepState.DONE)
