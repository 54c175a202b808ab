"""Planned moves: a drain offers the whole gang, and the job loop answers.

Accepted, the job is asked for a checkpoint where its policy has one, then held, torn down and released away from the
node. That is nobody's failure and costs no budget. What the job loop may not do (Observe, a job that belongs to
somebody else) it declines at once, and the drain evicts.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sickbay.api.duration import parse_duration
from sickbay.api.job_recovery import Gate, Move
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import GateState, JobAction, JobVerdict, MoveState, RecoveryPhase, Step, StepState
from sickbay.clock import parse_time, rfc3339
from sickbay.recover import suspects
from sickbay.recover.checkpoints import ask, gang, has_checkpoint, request_value
from sickbay.recover.stops import tear_down
from sickbay.recover.view import HOLDING, LIVE, MAX_LISTED, Work

RESERVE = timedelta(minutes=2)
"""Left of an offer's time for tearing down, when a checkpoint is waited for."""


def answer_offers(work: Work) -> None:
    status = work.status
    open_ = {_key(r): r for repairs in work.view.repairs.values() for r in repairs if _is_offered(work, r)}
    kept = []
    for move in status.moves:
        found = open_.pop((move.repair, move.attempt), None)
        if found is not None:
            kept.append(_carried_on(work, move, found))
        elif move.state == MoveState.MOVING and work.phase in (*HOLDING, RecoveryPhase.RELEASING):
            kept.append(move)  # withdrawn, but the gang is down already: it goes on elsewhere
    status.moves = [*kept, *(_first_answer(work, repair) for repair in open_.values())][-MAX_LISTED:]


def _is_offered(work: Work, repair: NodeRepair) -> bool:
    """A running drain offers this very job a move."""
    current, step = repair.status.current, repair.status.step(Step.DRAIN)
    job = work.view.job
    if repair.ended or job is None or current.step != Step.DRAIN or step.state != StepState.RUNNING:
        return False
    offers = step.report.offers if step.report.attempt == current.attempt else []
    return any(offer.job.uid == job.uid for offer in offers)


def _key(repair: NodeRepair) -> tuple[str, int]:
    return repair.metadata.name, repair.status.current.attempt


def _first_answer(work: Work, repair: NodeRepair) -> Move:
    name, attempt = _key(repair)
    if not work.view.acting:
        return Move(repair=name, attempt=attempt, state=MoveState.DECLINED.value)
    work.note("MoveAccepted", f"moves away from {repair.spec.node.name}, which {name} drains")
    return _carried_on(work, Move(repair=name, attempt=attempt, state=MoveState.ACCEPTED.value), repair)


def _carried_on(work: Work, move: Move, repair: NodeRepair) -> Move:
    """One step further: Accepted, Moving, Gone."""
    state = move.state
    if state == MoveState.ACCEPTED and work.phase in LIVE and _ready(work, move, repair):
        _leave(work, repair)
    if state in (MoveState.ACCEPTED, MoveState.MOVING):
        there = any(p.pod.node_name == repair.spec.node.name and p.lingers for p in work.view.pods)
        moving = work.phase not in LIVE
        state = (MoveState.MOVING if moving else MoveState(state)) if there else MoveState.GONE
    return Move(repair=move.repair, attempt=move.attempt, state=str(state))


def _latest(work: Work, repair: NodeRepair) -> datetime:
    """When the gang has to begin to leave so that the drain need not evict: four fifths of its time, less a reserve."""
    started, ends = repair.status.step(Step.DRAIN).started, repair.status.current.deadline
    if not started or not ends:
        return work.now
    whole = parse_time(ends) - parse_time(started)
    return max(work.now, parse_time(ends) - whole / 5 - RESERVE)


def _ready(work: Work, move: Move, repair: NodeRepair) -> bool:
    """The job has its checkpoint, has had its time, or was not to be asked."""
    checkpoint = work.policy.checkpoint
    if checkpoint is None or not gang(work):
        return True
    value = request_value(move.repair, Step.DRAIN, move.attempt)
    earlier = [g for g in work.status.gates if g.repair == move.repair and g.state == GateState.CHECKPOINTED]
    if earlier or has_checkpoint(work, value):
        return True
    known = next((g for g in work.status.gates if (g.repair, g.step) == (move.repair, MOVE)), None)
    if known is None:
        until = min(work.now + parse_duration(checkpoint.window), _latest(work, repair))
        known = Gate(
            repair=move.repair, step=MOVE, attempt=move.attempt, state=GateState.ASKED.value, until=rfc3339(until)
        )
        work.status.gates = [*work.status.gates, known]
        work.note("CheckpointRequested", "asked for a checkpoint before it moves")
    ask(work, value)
    until = parse_time(known.until) if known.until else work.now
    if work.now >= until:
        return True
    work.wake(until)
    return False


MOVE = "Move"
"""`step` of the entry in `gates` under which the checkpoint before a move stands: no gate, but the same question."""


def _leave(work: Work, repair: NodeRepair) -> None:
    """Hold the job and take the whole gang down; it goes on without the node."""
    attempt, node = work.attempt, repair.spec.node.name
    message = f"planned move away from {node}, which {repair.metadata.name} drains"
    attempt.verdict, attempt.action = JobVerdict.POLICY.value, JobAction.RESCHEDULE.value
    attempt.evidence, attempt.fingerprint = [message], "policy: planned move"
    attempt.ended = attempt.times.detected = rfc3339(work.now)
    attempt.step = work.view.standing.step
    suspects.exclude(work, node, message)
    tear_down(work, message)
