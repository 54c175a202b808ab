"""One look at one job: what is known (`View`), and the copy of its record that the look changes (`Work`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sickbay.api.core import Node, Pod
from sickbay.api.job_recovery import JobAttempt, JobRecovery, JobRecoveryStatus
from sickbay.api.node_repair import NodeRepair
from sickbay.api.recovery_policy import RecoveryPolicySpec
from sickbay.api.words import Mode, RecoveryPhase
from sickbay.clock import rfc3339
from sickbay.recover.ends import End
from sickbay.recover.evidence import Onset
from sickbay.recover.job import Job, JobId
from sickbay.recover.logs import Reading
from sickbay.recover.signs import Sign, moment
from sickbay.recover.spans import Span

NO_FIT = "does not fit"
"""Fingerprint of an attempt for which there was no room."""
MAX_ATTEMPTS = 32
MAX_LISTED = 64

HOLDING = (
    RecoveryPhase.FAILING,
    RecoveryPhase.ISOLATING,
    RecoveryPhase.TEARING_DOWN,
    RecoveryPhase.HELD,
    RecoveryPhase.STOPPED,
)
"""Phases in which no pod of the job may run."""
LIVE = (
    RecoveryPhase.RUNNING,
    RecoveryPhase.RECOVERED,
    RecoveryPhase.PLACING,
    RecoveryPhase.WAITING_CAPACITY,
)


@dataclass(frozen=True)
class RankPod:
    """A pod of the job, with what its labels say."""

    rank: str
    pod: Pod
    attempt: int
    restart: int
    job: str = ""
    """UID of the job object that it was made for; "" where it does not tell."""

    @property
    def active(self) -> bool:
        return not self.pod.finished and not self.pod.deleting

    @property
    def lingers(self) -> bool:
        """It may still run a process."""
        return not self.pod.finished


@dataclass(frozen=True)
class Standing:
    """Progress as our own clock has seen it."""

    step: int | None = None
    since: datetime | None = None
    """Since when the highest step has not grown."""
    behind: tuple[str, ...] = ()
    """Ranks that have not come as far as the others."""
    silent: tuple[str, ...] = ()
    """Ranks that have reported no step yet, where others have."""
    expected: bool = False
    """The job is known to report steps, whether or not this attempt has reported one yet."""


@dataclass(frozen=True)
class View:
    """Everything a look may depend on, as it is at `now`."""

    now: datetime
    id: JobId
    job: Job | None = None
    policy: RecoveryPolicySpec | None = None
    """None: no policy selects the job."""
    policy_name: str = ""
    pods: tuple[RankPod, ...] = ()
    """All that are there, of whatever attempt."""
    ends: tuple[End, ...] = ()
    """Ranks that failed or vanished, as far as anybody remembers."""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Nodes that matter to the job: of its placement, its suspects, its exclusions."""
    signs: Callable[[Node], list[Sign]] = lambda _: []
    repairs: Mapping[str, tuple[NodeRepair, ...]] = field(default_factory=dict)
    """NodeRepairs by node, for the same nodes."""
    withheld: tuple[str, ...] = ()
    """Nodes that only a limit keeps in service (WouldQuarantine)."""
    onsets: tuple[Onset, ...] = ()
    others: tuple[JobAttempt, ...] = ()
    """Failed attempts of other jobs."""
    scheduling: Mapping[str, datetime] = field(default_factory=dict)
    """Since when we have seen the scheduler say of a pod what it says now, by pod UID."""
    standing: Standing = Standing()
    spans: Mapping[str, Mapping[str, Span]] = field(default_factory=dict)
    """Where ranks are in the phases of `hang.phases`, by rank and phase, as their logs told at `logs_read`."""
    logs_read: datetime | None = None
    excludes_in_place: bool = True
    can_shrink: bool = False
    """Whether the kind of job can be given fewer ranks."""
    settled: bool = True
    """The job's controller has taken note of the suspension; before that its template cannot be changed."""
    blocked_by_lost_pods: bool = False
    """Its controller would wait for ever for a pod on a lost node."""
    resumes_late: bool = False
    """Its controller would make no pods for a while after it is resumed."""
    fence: bool = True
    """False only in tests that show what the fence is for."""

    @property
    def acting(self) -> bool:
        """Whether the loop may do anything to this job."""
        return self.policy is not None and self.policy.mode == Mode.ACT and not (self.job and self.job.foreign)


@dataclass(frozen=True, slots=True)
class Note:
    """An Event to publish on the job."""

    reason: str
    message: str
    warning: bool = False


@dataclass
class Work:
    """The record as it will be, and what is told beside writing it."""

    record: JobRecovery
    view: View
    notes: list[Note] = field(default_factory=list)
    requeue_at: datetime | None = None
    relanded: int = 0
    consumed: set[str] = field(default_factory=set)
    """UIDs of pods whose ends have been judged: they say nothing about the next attempt."""
    read_logs: bool = False
    """Whether the logs of the running ranks are wanted, to know in which phase they are."""
    annotate: dict[str, str] = field(default_factory=dict)
    """Checkpoint requests to put on the job's pods, by pod name."""

    @property
    def now(self) -> datetime:
        return self.view.now

    @property
    def status(self) -> JobRecoveryStatus:
        return self.record.status

    @property
    def phase(self) -> str:
        return self.record.status.phase

    @property
    def policy(self) -> RecoveryPolicySpec:
        """The policy in force; what was begun under one that is gone is brought to its end under the defaults."""
        return self.view.policy or RecoveryPolicySpec(mode=Mode.ACT)

    @property
    def attempt(self) -> JobAttempt:
        """The present attempt; the first one is made on demand."""
        if not self.status.attempts:
            job = self.view.job
            self.status.attempts.append(JobAttempt(n=job.attempt if job else 1, restarts=job.restarts if job else 0))
        return self.status.attempts[-1]

    @property
    def incident(self) -> JobAttempt:
        """The attempt whose recovery is going on: the last one that ended, having run."""
        ended = (a for a in reversed(self.status.attempts) if a.ended and a.fingerprint != NO_FIT)
        return next(ended, self.attempt)

    @property
    def before(self) -> list[JobAttempt]:
        """Earlier attempts that count in the budgets."""
        return self.earlier(self.attempt)

    def earlier(self, attempt: JobAttempt) -> list[JobAttempt]:
        """Attempts before this one that count in the budgets."""
        before = itertools.takewhile(lambda a: a is not attempt, self.status.attempts)
        return [a for a in before if a.n >= self.status.counted_from]

    @property
    def forgotten(self) -> int:
        """How many attempts that count in the budgets are on record no longer."""
        kept = self.status.attempts
        return max(0, kept[0].n - max(1, self.status.counted_from)) if len(kept) >= MAX_ATTEMPTS else 0

    def begin(self, n: int, restarts: int) -> JobAttempt:
        """Append the next attempt. Of older ones than the last only what history needs is kept."""
        made = JobAttempt(n=n, restarts=restarts)
        for old in self.status.attempts[:-1]:
            old.ends, old.placement = [], {}
        self.status.attempts = _bounded([*self.status.attempts, made])
        return made

    def enter(self, phase: RecoveryPhase, message: str, within: timedelta | None = None, then: str = "") -> None:
        """Stand in this phase; `within` ends the wait, and `then` says what happens."""
        status = self.status
        if status.phase != phase or status.since is None:
            status.since = rfc3339(self.now)
        status.phase, status.message = phase, message[:2048]
        status.deadline = rfc3339(self.now + within) if within is not None else None
        status.on_deadline = then
        if within is not None:
            self.wake(self.now + within)

    def wake(self, at: datetime) -> None:
        at = max(at, self.now + timedelta(seconds=0.5))
        self.requeue_at = at if self.requeue_at is None else min(self.requeue_at, at)

    def note(self, reason: str, message: str, warning: bool = False) -> None:
        self.notes.append(Note(reason, message, warning))


def _bounded(attempts: list[JobAttempt]) -> list[JobAttempt]:
    """As many as the record holds. The oldest go; but first those that found no room, between others that found none:
    the first of them tells since when, and what failed before them still counts."""
    while len(attempts) > MAX_ATTEMPTS:
        fits = [attempt.fingerprint != NO_FIT for attempt in attempts]
        between = (n for n in range(1, len(attempts) - 1) if not any(fits[n - 1 : n + 2]))
        dropped = next(between, 0)
        attempts = [*attempts[:dropped], *attempts[dropped + 1 :]]
    return attempts


def current(view: View) -> list[RankPod]:
    """Pods of the attempt that the job's label names, and of the last restart by its own controller.

    What is left of an earlier attempt, or of another job that had its name, must never be taken for a failure of this
    one.
    """
    job = view.job
    if job is None:
        return []
    mine = [p for p in view.pods if p.attempt == job.attempt and p.job in ("", job.uid)]
    return [p for p in mine if p.restart >= job.restarts and p.rank in job.ranks]


def scheduling_since(view: View, rank: RankPod) -> datetime | None:
    """Since when its pod has a place, or is refused one: by the scheduler's clock, and at the earliest as we saw it."""
    condition = rank.pod.condition("PodScheduled")
    said = moment(condition.last_transition_time) if condition is not None else None
    return max(said, view.scheduling.get(rank.pod.uid, said)) if said is not None else None


def newest(pods: list[RankPod]) -> dict[str, RankPod]:
    """The youngest pod of each rank: an older one has been replaced."""
    found: dict[str, RankPod] = {}
    for pod in pods:
        known = found.get(pod.rank)
        if known is None or _age(pod) >= _age(known):
            found[pod.rank] = pod
    return found


def _age(pod: RankPod) -> tuple[str, bool, Any]:
    return pod.pod.metadata.creation_timestamp or "", pod.active, pod.pod.uid
