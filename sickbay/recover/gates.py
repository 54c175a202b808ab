"""The jobs' answer to a gate: a checkpoint, or that their time is over.

A gate by Jobs, or by PeopleAndJobs, asks the jobs on the node whether they have saved what they did. A person's gate is
never answered here.
"""

from __future__ import annotations

from datetime import datetime

from sickbay.api.duration import parse_duration
from sickbay.api.job_recovery import Gate
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import ApprovalBy, GateState, Phase
from sickbay.clock import parse_time, rfc3339
from sickbay.recover.checkpoints import ask, has_checkpoint, ranks_on, request_value
from sickbay.recover.view import LIVE, MAX_LISTED, Work

WAITING = (Phase.WAITING_JOB, Phase.WAITING_APPROVAL, Phase.NEEDS_HUMAN)


def answer_gates(work: Work) -> None:
    status = work.status
    open_ = {_key(r): r for repairs in work.view.repairs.values() for r in repairs if _asks_jobs(r)}
    kept = []
    for gate in status.gates:
        repair = open_.pop((gate.repair, gate.step, gate.attempt), None)
        if repair is not None:
            kept.append(_answered(work, gate, repair))
        elif _is_open(work, gate):
            kept.append(gate)  # the answer stands until the repair has gone on
    for repair in open_.values():
        asked = _asked(work, repair)
        if asked is not None:
            kept.append(asked)
    status.gates = kept[-MAX_LISTED:]


def _asks_jobs(repair: NodeRepair) -> bool:
    """The repair stands at a gate in which jobs have a part."""
    current = repair.status.current
    planned = repair.spec.plan.step(current.step)
    if repair.ended or repair.status.phase not in WAITING or planned is None or planned.approval is None:
        return False
    return planned.approval.by in (ApprovalBy.JOBS, ApprovalBy.PEOPLE_AND_JOBS)


def _key(repair: NodeRepair) -> tuple[str, str, int]:
    current = repair.status.current
    return repair.metadata.name, current.step, current.attempt


def _is_open(work: Work, gate: Gate) -> bool:
    every = (r for repairs in work.view.repairs.values() for r in repairs)
    return any(r.metadata.name == gate.repair and not r.ended for r in every)


def _asked(work: Work, repair: NodeRepair) -> Gate | None:
    """Ask the job, if it is to be asked and runs on the node."""
    checkpoint = work.policy.checkpoint
    if checkpoint is None or not work.view.acting or not ranks_on(work, repair.spec.node.name):
        return None
    name, step, attempt = _key(repair)
    if work.phase not in LIVE:
        return Gate(repair=name, step=step, attempt=attempt, state=GateState.GONE.value)
    until = work.now + parse_duration(checkpoint.window)
    work.wake(until)
    ask(work, request_value(name, step, attempt))
    work.note("CheckpointRequested", f"asked for a checkpoint before {step} of {repair.spec.node.name}")
    return Gate(repair=name, step=step, attempt=attempt, state=GateState.ASKED.value, until=rfc3339(until))


def _answered(work: Work, gate: Gate, repair: NodeRepair) -> Gate:
    if gate.state != GateState.ASKED:
        return gate
    value = request_value(gate.repair, gate.step, gate.attempt)
    until = _moment(gate.until, work.now)
    if has_checkpoint(work, value):
        state = GateState.CHECKPOINTED
    elif work.phase not in LIVE or not ranks_on(work, repair.spec.node.name):
        state = GateState.GONE
    elif work.now >= until:
        state = GateState.TIME_OVER
    else:
        ask(work, value)
        work.wake(until)
        return gate
    return Gate(repair=gate.repair, step=gate.step, attempt=gate.attempt, state=state.value, until=gate.until)


def _moment(text: str | None, default: datetime) -> datetime:
    return parse_time(text) if text else default
