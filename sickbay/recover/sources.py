"""What recover reads: one informer per kind, the joins between them, and what has to be remembered of pods that went.

Pods carry what ended a rank, and their controllers delete them within moments. So the ends seen are kept in memory
(`endbook`) until they have been judged, and from the first look on in the record (`kept`), for a restart of this
process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sickbay.api import kinds, names
from sickbay.api.core import Node, Pod
from sickbay.api.job_recovery import JobAttempt, JobRecovery
from sickbay.api.joblabels import JOB_NAME
from sickbay.api.joblabels import job_of as labelled_job
from sickbay.api.node_repair import NodeRepair
from sickbay.api.objectnames import job_recovery_name
from sickbay.api.recovery_policy import RecoveryPolicy
from sickbay.api.words import RecoveryPhase
from sickbay.clock import Clock, Randomness
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer
from sickbay.recover.adapters import ADAPTERS
from sickbay.recover.adapters.base import Adapter, facts
from sickbay.recover.endbook import EndBook
from sickbay.recover.ends import End
from sickbay.recover.evidence import Onset
from sickbay.recover.fence import lingering
from sickbay.recover.job import Job, JobId, number
from sickbay.recover.late import is_open
from sickbay.recover.progress import ProgressBook
from sickbay.recover.scheduling import SchedulingBook
from sickbay.recover.signs import Signs, moment
from sickbay.recover.view import LIVE, RankPod, View

RESYNC = 300.0
"""Seconds between comparisons of a cache with a fresh list."""
PROBE = 60.0
"""Seconds between looks whether a kind of job has come to be served."""
OTHERS_WITHIN = timedelta(days=7)
ONSETS_WITHIN = timedelta(minutes=5)
TIDY_EVERY = 60.0
"""Seconds between looks for what nobody will judge."""
LAG = timedelta(minutes=1)
"""A job and its policy come by other watches than its pods: until then an end may still turn out to be ours."""
KEEP_ENDS = timedelta(days=1)
"""Ends of our jobs that this process has not judged: a replica that stands by never does."""


class Served:
    """An informer for a kind that the cluster may not have. While it has not, there is nothing to wait for."""

    def __init__(self, client: Client, informer: Informer[Any], clock: Clock) -> None:
        self.informer = informer
        self.ready = asyncio.Event()
        self._client, self._clock = client, clock

    async def run(self) -> None:
        while not await self._is_served():
            self.ready.set()
            await self._clock.sleep(PROBE)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.informer.run())
            await self.informer.synced.wait()
            self.ready.set()

    async def _is_served(self) -> bool:
        """True also when that cannot be known: the informer then waits for an answer."""
        try:
            await self._client.current_version(self.informer.kind)
        except errors.NotFound:
            return False
        except errors.ApiError:
            return True
        return True


class Sources:
    """See the module. `changed` is told of every job that has to be looked at again."""

    def __init__(
        self, client: Client, clock: Clock, randomness: Randomness, changed: Callable[[JobId], None], resync: float
    ) -> None:
        def informer(kind: kinds.Kind[Any], **options: Any) -> Informer[Any]:
            return Informer(client, kind, clock, randomness, resync=resync, **options)

        self._clock = clock
        self._changed = changed
        self.nodes: Informer[Node] = informer(kinds.NODE)
        self.policies: Informer[RecoveryPolicy] = informer(kinds.RECOVERY_POLICY)
        self.types: Informer[dict[str, Any]] = informer(kinds.FAULT_TYPE.raw)
        self.pods: Informer[Pod] = informer(
            kinds.POD, labels=JOB_NAME, indexes={"job": _jobs_of, "node": lambda pod: [pod.node_name]}
        )
        self.repairs: Informer[NodeRepair] = informer(
            kinds.NODE_REPAIR, indexes={"node": lambda repair: [repair.spec.node.name], "withheld": _withheld}
        )
        self.recoveries: Informer[JobRecovery] = informer(
            kinds.JOB_RECOVERY, indexes={"node": _nodes_of, "root": _roots_of}
        )
        self.jobs: dict[str, Informer[dict[str, Any]]] = {}
        self._served: list[Served] = []
        for name, adapter in ADAPTERS.items():
            self.jobs[name] = informer(adapter.kind)
            self._served.append(Served(client, self.jobs[name], clock))
        self.progress = ProgressBook(clock)
        self.ends = EndBook(clock)
        self._scheduling = SchedulingBook(clock)
        self._signs = Signs()
        self._subscribe()

    # --- running

    @property
    def all(self) -> list[Informer[Any]]:
        return [self.nodes, self.policies, self.types, self.pods, self.repairs, self.recoveries]

    def tasks(self) -> list[Any]:
        return [*(i.run() for i in self.all), *(s.run() for s in self._served), self._tidy()]

    def awaited(self) -> list[str]:
        waiting = [f"the list of {i.kind.plural}" for i in self.all if not i.synced.is_set()]
        return waiting + [f"the list of {s.informer.kind.plural}" for s in self._served if not s.ready.is_set()]

    async def wait_synced(self) -> None:
        await asyncio.gather(*(i.synced.wait() for i in self.all), *(s.ready.wait() for s in self._served))

    async def relist(self) -> None:
        """Read everything afresh, when a new term begins."""
        for informer in [*self.all, *(s.informer for s in self._served if s.informer.synced.is_set())]:
            await informer.read_afresh()

    # --- changes

    def _subscribe(self) -> None:
        self.pods.on_change(self._pod_changed)
        self.nodes.on_change(self._node_changed)
        self.repairs.on_change(self._repair_changed)
        self.recoveries.on_change(self._recovery_changed)
        self.policies.on_change(lambda old, new: self._policy_changed(old, new))
        self.types.on_change(lambda _old, _new: self._types_changed())
        for name, jobs in self.jobs.items():
            jobs.on_change(partial(self._job_changed, name))

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None
        id_, adapter = job_of(pod)
        if id_ is None or adapter is None:
            return
        further = new is not None and self.progress.note(id_, rank_pod(adapter, new), old)
        self.ends.note(id_, adapter, pod, gone=new is None)
        self._scheduling.note(pod, gone=new is None)
        if old is None or new is None or _facts(old) != _facts(new) or (further and self._step_matters(id_)):
            self._changed(id_)

    def _step_matters(self, id_: JobId) -> bool:
        """Whether this is the first step of an attempt, or the job makes up for what its last failure has cost it:
        otherwise a step is no reason to look."""
        record = self.record(id_)
        if record is not None and record.status.attempts and record.status.attempts[-1].first_step is None:
            return True
        if record is None or record.status.phase != RecoveryPhase.RECOVERED:
            return False
        failed = next((a for a in reversed(record.status.attempts) if a.verdict), None)
        return failed is not None and failed.step is not None and not failed.times.caught_up

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        assert node is not None
        if old is not None and new is not None and _outlook(old) == _outlook(new):
            return
        self._wake_jobs_on(node.name)

    def _repair_changed(self, old: NodeRepair | None, new: NodeRepair | None) -> None:
        repair = new or old
        assert repair is not None
        self._wake_jobs_on(repair.spec.node.name)

    def _wake_jobs_on(self, node: str) -> None:
        for pod in self.pods.by_index("node", node):
            id_, _ = job_of(pod)
            if id_ is not None:
                self._changed(id_)
        for record in self.recoveries.by_index("node", node):
            self._changed(id_of(record))

    def _recovery_changed(self, old: JobRecovery | None, new: JobRecovery | None) -> None:
        record = new or old
        assert record is not None
        self._changed(id_of(record))

    def _policy_changed(self, old: RecoveryPolicy | None, new: RecoveryPolicy | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            for id_ in self.known():
                self._changed(id_)

    def _job_changed(self, kind: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        obj = new or old
        assert obj is not None
        meta = obj["metadata"]
        id_ = JobId(kind, meta.get("namespace", ""), meta["name"])
        attempt = number((meta.get("labels") or {}).get(names.ATTEMPT), 1)
        if new is not None and self.progress.bind(id_, meta.get("uid", ""), attempt):
            self._note_steps(id_)
        self._changed(id_)

    def _note_steps(self, id_: JobId) -> None:
        """Take the steps that the pods show now for new: how they came there was not seen."""
        for pod in self.pods_of(id_):
            self.progress.note(id_, pod, None)

    def _types_changed(self) -> None:
        self._signs = Signs(self.types.all())

    # --- looking

    def known(self) -> list[JobId]:
        """Every job there is, and every job there is a record of."""
        found = {
            JobId(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
            for kind, jobs in self.jobs.items()
            for obj in jobs.all()
        }
        return sorted(found | {id_of(record) for record in self.recoveries.all()})

    def record(self, id_: JobId) -> JobRecovery | None:
        return self.recoveries.get(job_recovery_name(id_.kind, id_.name), id_.namespace)

    def policy(self, id_: JobId, labels: dict[str, str]) -> RecoveryPolicy | None:
        """The policy that selects the job: the oldest of those that do."""
        fitting = [
            p
            for p in self.policies.all()
            if p.namespace == id_.namespace
            and (not p.spec.kinds or id_.kind in p.spec.kinds)
            and p.spec.job_selector.matches(labels)
        ]
        return min(fitting, key=lambda p: (p.metadata.creation_timestamp or "", p.name), default=None)

    def job(self, id_: JobId) -> Job | None:
        """None for a job that is not there, and for one that is no gang."""
        obj = self.jobs[id_.kind].get(id_.name, id_.namespace)
        return facts(ADAPTERS[id_.kind], obj) if obj is not None else None

    def pods_of(self, id_: JobId) -> tuple[RankPod, ...]:
        adapter = ADAPTERS[id_.kind]
        return tuple(rank_pod(adapter, pod) for pod in self.pods.by_index("job", str(id_)))

    def view(self, id_: JobId, record: JobRecovery | None, fence: bool = True) -> View:
        adapter, job, now = ADAPTERS[id_.kind], self.job(id_), self._clock.now()
        policy = self.policy(id_, job.labels) if job is not None else None
        if policy is not None and self.progress.read_from(id_, policy.spec.hang.progress.annotation):
            self._note_steps(id_)
        pods = self.pods_of(id_)
        ends = self.ends.of(id_, pods)
        logs_read, spans = self.progress.spans(id_, pods)
        withheld = tuple(sorted({r.spec.node.name for r in self.repairs.by_index("withheld", "yes")}))
        watched = self._watched(pods, ends, record) | set(withheld)
        nodes = {name: node for name in watched if (node := self.nodes.get(name)) is not None}
        failing = bool(ends) or (record is not None and is_open(record, now))
        view = View(
            now=now,
            id=id_,
            job=job,
            policy=policy.spec if policy is not None else None,
            policy_name=policy.name if policy is not None else "",
            pods=pods,
            ends=ends,
            readings={end.uid: self.ends.reading(id_, end) for end in ends},
            nodes=nodes,
            signs=self._signs.of,
            repairs={name: tuple(self.repairs.by_index("node", name)) for name in watched},
            withheld=withheld,
            onsets=self._onsets(now) if failing else (),
            others=self._others(id_, watched, now) if failing else (),
            scheduling=self._scheduling.of(pods),
            standing=self.progress.standing(id_, pods),
            spans=spans,
            logs_read=logs_read,
            excludes_in_place=adapter.excludes_in_place,
            can_shrink=adapter.can_shrink,
            settled=job is not None and adapter.settled(job.raw),
            resumes_late=job is not None and adapter.resumes_late(job.raw),
            fence=fence,
        )
        if job is None or not adapter.blocked_by_lost_pods(job.raw):
            return view
        stuck = [p for p in pods if p.lingers]
        return replace(view, blocked_by_lost_pods=bool(stuck) and not lingering(view))

    def _watched(self, pods: Iterable[RankPod], ends: Iterable[End], record: JobRecovery | None) -> set[str]:
        found = {p.pod.node_name for p in pods} | {end.node for end in ends}
        if record is not None:
            found |= set(_nodes_of(record))
        return {name for name in found if name}

    def _onsets(self, now: datetime) -> tuple[Onset, ...]:
        """Nodes that have lately begun to show a decisive fault, or fallen silent."""
        found = []
        for node in self.nodes.all():
            ready = node.condition("Ready")
            faults = [(s.fault, s.since) for s in self._signs.of(node) if s.decisive]
            if ready is not None and ready.status != "True":
                faults.append(("NotReady", moment(ready.last_transition_time)))
            found += [Onset(node.name, fault, at) for fault, at in faults if at and now - at <= ONSETS_WITHIN * 2]
        return tuple(found)

    def _others(self, id_: JobId, nodes: Iterable[str], now: datetime) -> tuple[JobAttempt, ...]:
        found: list[JobAttempt] = []
        for node in nodes:
            for record in self.recoveries.by_index("root", node):
                if id_of(record) != id_:
                    found += [a for a in record.status.attempts if a.root_node == node and _recent(a, now)]
        return tuple(found)

    # --- memory

    def consume(self, id_: JobId, uids: set[str]) -> None:
        """These ends have been judged, and say nothing about what comes after."""
        self.ends.consume(id_, uids, {pod.uid for pod in self.pods.by_index("job", str(id_))})

    async def _tidy(self) -> None:
        while True:
            await self._clock.sleep(TIDY_EVERY)
            self.tidy()

    def tidy(self) -> None:
        """Forget what nobody here will judge."""
        now = self._clock.now()
        for id_ in self.ends.jobs():
            began = self._began(id_)
            self.ends.forget(id_, now - (KEEP_ENDS if self._is_ours(id_) else LAG))
            if began is not None and began < now - LAG:
                self.ends.forget(id_, began - LAG)
        for id_ in self.progress.jobs():
            if self.record(id_) is None and self.job(id_) is None:
                self.progress.forget(id_)

    def _began(self, id_: JobId) -> datetime | None:
        """Since when the present attempt runs, where all is well: what ended before it has been judged."""
        record = self.record(id_)
        if record is None or not record.status.attempts or record.status.phase not in LIVE:
            return None
        return moment(record.status.attempts[-1].started)

    def _is_ours(self, id_: JobId) -> bool:
        if self.record(id_) is not None:
            return True
        job = self.job(id_)
        return job is not None and self.policy(id_, job.labels) is not None


def job_of(pod: Pod) -> tuple[JobId | None, Adapter | None]:
    """The job that the pod is a rank of, and its kind's adapter."""
    kind, name = labelled_job(pod)
    return (JobId(kind, pod.namespace, name), ADAPTERS[kind]) if name else (None, None)


def rank_pod(adapter: Adapter, pod: Pod) -> RankPod:
    attempt = number(pod.labels.get(names.ATTEMPT), 1)
    return RankPod(adapter.rank(pod), pod, attempt, adapter.restart(pod), adapter.owner(pod))


def id_of(record: JobRecovery) -> JobId:
    return JobId(record.spec.job.kind, record.namespace, record.spec.job.name)


def _jobs_of(pod: Pod) -> list[str]:
    id_, _ = job_of(pod)
    return [str(id_)] if id_ is not None else []


def _nodes_of(record: JobRecovery) -> list[str]:
    """Nodes whose changes matter to the record."""
    status = record.status
    found = {s.node for s in status.suspects} | {e.node for e in status.excluded}
    for attempt in status.attempts[-2:]:  # the last failure's too: late evidence
        found |= set(attempt.placement.values())
    return sorted(name for name in found if name)


def _withheld(repair: NodeRepair) -> list[str]:
    """Repairs whose node stays in service only because a limit forbids to take it out."""
    condition = repair.status.condition(names.WOULD_QUARANTINE)
    return ["yes"] if condition is not None and condition.status == "True" and not repair.ended else []


def _roots_of(record: JobRecovery) -> list[str]:
    return sorted({a.root_node for a in record.status.attempts if a.root_node})


def _recent(attempt: JobAttempt, now: datetime) -> bool:
    ended = moment(attempt.ended)
    return ended is not None and now - ended <= OTHERS_WITHIN


def _facts(pod: Pod) -> tuple[object, ...]:
    """What of a pod matters to a job; progress is kept apart."""
    scheduled = pod.condition("PodScheduled")
    reason = (scheduled.status, scheduled.reason) if scheduled is not None else None
    done = pod.annotations.get(names.CHECKPOINT_DONE)
    starts = [
        (s.restart_count, s.state.waiting.reason if s.state.waiting else "") for s in pod.status.container_statuses
    ]
    attempt = pod.labels.get(names.ATTEMPT)
    return pod.phase, pod.node_name, pod.deleting, pod.status.reason, reason, done, attempt, starts


def _outlook(node: Node) -> tuple[object, ...]:
    conditions = [(c.type, c.status, c.reason) for c in node.conditions]
    return node.uid, node.spec, conditions, node.deleting
