"""Where the gang is, whether it is where it must not be, and what if there is no room for it."""

from __future__ import annotations

from datetime import datetime, timedelta

from sickbay.api.core import PodCondition
from sickbay.api.duration import parse_duration
from sickbay.api.words import JobAction, JobVerdict, RecoveryPhase
from sickbay.clock import parse_time, rfc3339
from sickbay.recover.job import Job
from sickbay.recover.judge import REMIND, hold
from sickbay.recover.signs import moment
from sickbay.recover.view import RankPod, Work, current, newest

NO_FIT_AFTER = timedelta(seconds=60)
"""How long pods may be unschedulable before the job is said not to fit: autoscalers and late nodes take a moment."""


def place(work: Work, job: Job) -> None:
    pods = {rank: pod for rank, pod in newest(current(work.view)).items() if pod.active}
    if _relanded(work, list(pods.values())):
        return
    bound = {rank: pod.pod.node_name for rank, pod in pods.items() if pod.pod.node_name}
    if len(bound) < len(job.ranks):
        _unplaced(work, list(pods.values()))
        return
    if work.attempt.ended:
        work.begin(work.attempt.n + 1, job.restarts)
    attempt = work.attempt
    attempt.placement = {rank: bound[rank] for rank in job.ranks}
    if not attempt.started and all(pod.pod.phase == "Running" for pod in pods.values()):
        _started(work, job)


def _started(work: Work, job: Job) -> None:
    attempt, first = work.attempt, len(work.status.attempts) == 1
    attempt.started, attempt.restarts = rfc3339(work.now), job.restarts
    if first and work.phase == RecoveryPhase.RUNNING:
        work.enter(RecoveryPhase.RUNNING, "all ranks run")
        return
    work.incident.times.started = rfc3339(work.now)
    work.enter(RecoveryPhase.RECOVERED, f"attempt {attempt.n} runs")
    work.note("JobRecovered", f"attempt {attempt.n} runs")


def _relanded(work: Work, pods: list[RankPod]) -> bool:
    """A pod on a node that it must keep away from: an invariant is broken, so stop and alarm."""
    wrong = [pod for pod in pods if _is_avoided(work, pod)]
    if not wrong:
        return False
    work.relanded += len(wrong)
    where = ", ".join(sorted({pod.pod.node_name for pod in wrong}))
    message = f"attempt {work.attempt.n} landed on {where}, which it must keep away from"
    work.note("JobRelanded", message, warning=True)
    if not work.view.acting:
        return False
    work.attempt.ended = rfc3339(work.now)
    work.attempt.verdict, work.attempt.action = JobVerdict.POLICY.value, JobAction.HOLD.value
    hold(work, message)
    return True


def _is_avoided(work: Work, pod: RankPod) -> bool:
    """On a node that was named before the pod was made."""
    node = work.view.nodes.get(pod.pod.node_name)
    queued, made = moment(work.incident.times.queued), moment(pod.pod.metadata.creation_timestamp)
    if node is None or queued is None or made is None or made < queued:
        return False
    avoided = {(e.node, e.uid) for e in work.status.excluded} | {(s.node, s.uid) for s in work.status.suspects}
    return (node.name, node.uid) in avoided or (node.name, "") in avoided


def _unplaced(work: Work, pods: list[RankPod]) -> None:
    """Some ranks have no node. Waiting for room costs no retry."""
    refused = _refused(pods)
    since = min((t for c in refused if (t := moment(c.last_transition_time)) is not None), default=None)
    if since is None:
        return
    if work.phase == RecoveryPhase.WAITING_CAPACITY:
        _waits(work)
    elif work.phase == RecoveryPhase.PLACING:
        _does_not_fit(work, since, refused[0].message)


def _refused(pods: list[RankPod]) -> list[PodCondition]:
    found = [c for p in pods if (c := p.pod.condition("PodScheduled")) is not None]
    return [c for c in found if c.status == "False" and c.reason == "Unschedulable"]


def _does_not_fit(work: Work, since: datetime, why: str) -> None:
    if work.now - since < NO_FIT_AFTER:
        work.wake(since + NO_FIT_AFTER)
        return
    limit = parse_duration(work.policy.no_fit_deadline)
    message = f"attempt {work.attempt.n} does not fit: {why[:300]}"
    work.enter(RecoveryPhase.WAITING_CAPACITY, message, limit, "people are told")
    work.note("JobWaitsForCapacity", message, warning=True)


def _waits(work: Work) -> None:
    deadline = parse_time(work.status.deadline) if work.status.deadline else work.now
    if work.now < deadline:
        work.wake(deadline)
        return
    work.enter(RecoveryPhase.WAITING_CAPACITY, work.status.message, REMIND, "people are told again")
    work.note("JobNeedsPeople", work.status.message, warning=True)
