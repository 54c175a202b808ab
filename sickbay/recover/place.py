"""Where the gang is, whether it is where it must not be, and what if there is no room for it."""

from __future__ import annotations

from datetime import datetime, timedelta

from sickbay.api import names
from sickbay.api.duration import parse_duration
from sickbay.api.words import JobAction, JobVerdict, NoFit, RecoveryPhase
from sickbay.clock import parse_time, rfc3339
from sickbay.recover.adapters.base import full_size
from sickbay.recover.job import Job, number
from sickbay.recover.room import refused, requeue, set_down
from sickbay.recover.signs import moment
from sickbay.recover.stops import PEOPLE, REMIND, hold, tear_down
from sickbay.recover.suspects import began, host_names
from sickbay.recover.symptoms import youngest
from sickbay.recover.view import RankPod, Work, current, newest, scheduling_since

NO_FIT_AFTER = timedelta(seconds=60)
"""How long pods may be unschedulable before the job is said not to fit: autoscalers and late nodes take a moment."""


def place(work: Work, job: Job) -> None:
    """Take note of where the ranks are; act where that is wrong or impossible."""
    pods = {rank: pod for rank, pod in newest(current(work.view)).items() if pod.active}
    if _relanded(work, list(pods.values())):
        return
    bound = {rank: pod.pod.node_name for rank, pod in pods.items() if pod.pod.node_name}
    if len(bound) < len(job.ranks):
        _unplaced(work, job, list(pods.values()))
        return
    if work.attempt.ended:
        work.begin(work.attempt.n + 1, job.restarts)
    attempt = work.attempt
    if attempt.started and set(bound) != set(attempt.placement):
        attempt.youngest = youngest(pods.values())  # its owner has given it more ranks, or fewer
    attempt.placement, attempt.unplaced = {rank: bound[rank] for rank in job.ranks}, 0
    if not attempt.started and all(pod.pod.phase == "Running" for pod in pods.values()):
        _started(work, job)


def _started(work: Work, job: Job) -> None:
    attempt, first = work.attempt, len(work.status.attempts) == 1
    attempt.started, attempt.restarts = rfc3339(work.now), job.restarts
    attempt.youngest = youngest(newest(current(work.view)).values())
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
    named = [(e.node, e.uid, began(work, e)) for e in work.status.excluded]
    named += [(s.node, s.uid, moment(s.since)) for s in work.status.suspects]
    return any(
        name == node.name and uid in ("", node.uid) and (since is None or since <= made) for name, uid, since in named
    )


def _unplaced(work: Work, job: Job, pods: list[RankPod]) -> None:
    """Some ranks have no node. Waiting for room costs no retry."""
    turned_away = refused(pods)
    if not work.attempt.started and not work.attempt.ended:
        work.attempt.unplaced = max(work.attempt.unplaced, len(turned_away))
    since = min((t for p in pods if refused([p]) and (t := scheduling_since(work.view, p))), default=None)
    if since is None or work.phase not in (RecoveryPhase.WAITING_CAPACITY, RecoveryPhase.PLACING):
        return
    over = sorted(set(job.excluded) - set(host_names(work)))
    if over and work.view.acting:
        _let_go_anew(work, f"{', '.join(over[:4])} need not be avoided any more, so the job is let go anew")
    elif work.phase == RecoveryPhase.WAITING_CAPACITY:
        _waits(work)
    else:
        _does_not_fit(work, job, since, turned_away[0].message, sum(1 for pod in pods if pod.pod.node_name))


def _let_go_anew(work: Work, why: str) -> None:
    set_down(work, why)
    tear_down(work, why)


def _does_not_fit(work: Work, job: Job, since: datetime, why: str, bound: int) -> None:
    if work.now - since < NO_FIT_AFTER:
        work.wake(since + NO_FIT_AFTER)
        return
    limit = parse_duration(work.policy.no_fit_deadline)
    message = f"attempt {work.attempt.n} does not fit: {why[:300]}"
    if work.policy.on_no_fit == NoFit.REQUEUE and work.view.acting:
        requeue(work, message)
        return
    if work.policy.on_no_fit == NoFit.SHRINK and work.view.acting:
        cannot = _cannot_shrink(work, job, bound)
        if not cannot:
            _shrink(work, job, bound)
            return
        message = f"{message}; it is not made smaller: {cannot}"
    work.enter(RecoveryPhase.WAITING_CAPACITY, message, limit, "people are told")
    work.note("JobWaitsForCapacity", message, warning=True)


def _cannot_shrink(work: Work, job: Job, bound: int) -> str:
    """Why the job has to wait for room for all its ranks; "" when it can run with those that have found some."""
    least = number(job.annotations.get(names.MIN_RANKS), 0)
    if not work.view.can_shrink:
        return f"a {job.id.kind} cannot be given fewer ranks"
    if least < 1:
        return f"it does not say with how few ranks it can run (annotation {names.MIN_RANKS})"
    if bound < least:
        return f"{bound} of its ranks have found a place, and it needs {least}"
    return ""


def _shrink(work: Work, job: Job, ranks: int) -> None:
    """Let it go anew with as many ranks as there is room for. At the next failure its full size is tried again."""
    work.status.ranks = ranks
    message = f"there is room for {ranks} of {full_size(job)} ranks, so it is let go with {ranks}"
    work.note("JobShrunk", message, warning=True)
    _let_go_anew(work, message)


def _waits(work: Work) -> None:
    deadline = parse_time(work.status.deadline) if work.status.deadline else work.now
    if work.now < deadline:
        work.wake(deadline)
        return
    work.enter(RecoveryPhase.WAITING_CAPACITY, work.status.message, REMIND, PEOPLE)
    work.note("JobNeedsPeople", work.status.message, warning=True)
