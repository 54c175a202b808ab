"""The controller around the decisions: one look at a job, the record written, and then the one act that follows.

Keys are jobs. Any job may be looked at at any moment, any number of times; each by one worker at a time. Between
processes the lease, and the version in every write, see to it that one failure leads to one restart.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta

import structlog
from prometheus_client import CollectorRegistry

from sickbay.api.core import ObjectReference
from sickbay.api.job_recovery import JobRecovery, JobRecoverySpec, JobRef
from sickbay.api.meta import ObjectMeta
from sickbay.api.objectnames import job_recovery_name
from sickbay.api.words import RecoveryPhase
from sickbay.clock import Clock, Randomness, parse_time
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.events import NORMAL, WARNING, EventRecorder
from sickbay.kube.leadership import Leadership, NotLeading
from sickbay.kube.lease import Elector, LeaseTimes
from sickbay.kube.workqueue import WorkQueue
from sickbay.recover import suspects
from sickbay.recover.acts import Act, next_act
from sickbay.recover.adapters import ADAPTERS
from sickbay.recover.fence import lingering
from sickbay.recover.job import Job, JobId
from sickbay.recover.metrics import RecoverMetrics
from sickbay.recover.phases import advance, copied
from sickbay.recover.sources import RESYNC, Sources
from sickbay.recover.spans import read_spans
from sickbay.recover.stops import hold
from sickbay.recover.view import HOLDING, LIVE, RankPod, View, Work, current, newest
from sickbay.recover.writer import MANIFEST_MAX, Writer

log = structlog.get_logger(__name__)

WORKERS = 8
LOOK_AGAIN = 60.0
"""Seconds after which every job is looked at again, whatever the watches said."""
SOON = 0.5
"""Seconds until a job is looked at again whose object or pods have not come so far yet."""
AT_ONCE = 0.2
"""Seconds until a job is looked at again that was seen in an old version."""
LOG_LINES, LOG_SECONDS, LOGS_AT_ONCE = 200, 5.0, 8
"""Lines of a failed rank's log, how long its kubelet may take to give them, and how many ranks are asked."""
SPAN_LINES = 500
"""Lines of a running rank's log in which the phases of `hang.phases` are looked for."""
KEEP_RECORDS = timedelta(days=7)
"""How long the record of a job that is gone is kept; longer where the policy's window is."""


@dataclass(frozen=True)
class RecoverOptions:
    """Settings of the controller."""

    identity: str = "sickbay-recover"
    namespace: str = "sickbay-system"
    """Where the Lease lives."""
    resync: float = RESYNC
    lease: LeaseTimes = field(default_factory=LeaseTimes)
    fence: bool = True
    """False lets new attempts go without waiting for isolation and without an exclusion. Only for tests that show what
    the fence is for."""


class RecoverController:
    """Runs until cancelled; acts only while it leads."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        options: RecoverOptions | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._options = options or RecoverOptions()
        self._client = client
        self._clock = clock
        self._elector = Elector(
            client, clock, randomness, name="sickbay-recover",
            namespace=self._options.namespace, identity=self._options.identity,
            times=self._options.lease,
        )  # fmt: skip
        self._queue: WorkQueue[JobId] = WorkQueue(clock, randomness, name="recover", metrics=client.metrics)
        self._sources = Sources(client, clock, randomness, self._queue.add, self._options.resync)
        self._recorder = EventRecorder(client, clock, randomness, component="sickbay-recover")
        self._writer = Writer(client, self._sources, self._elector.check)
        self._metrics = RecoverMetrics(registry or CollectorRegistry())

    async def run(self) -> None:
        """Keep the caches current, and act whenever the lease is ours."""
        async with asyncio.TaskGroup() as group:
            for task in self._sources.tasks():
                group.create_task(task)
            group.create_task(self._recorder.run())
            group.create_task(self._elector.run(self._lead))

    def awaited(self) -> list[str]:
        """What start-up still waits for, for a readiness probe. A replica that does not lead is ready too."""
        return self._sources.awaited()

    def is_leader(self) -> bool:
        return self._elector.is_leader()

    async def _lead(self, _: Leadership) -> None:
        await self._sources.wait_synced()
        await self._sources.relist()
        self._add_all()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run(self._reconcile, workers=WORKERS))
            group.create_task(self._look_again())

    async def _look_again(self) -> None:
        while True:
            await self._clock.sleep(LOOK_AGAIN)
            self._add_all()

    def _add_all(self) -> None:
        for id_ in self._sources.known():
            self._queue.add(id_)

    # --- one job

    async def _reconcile(self, id_: JobId) -> float | None:
        try:
            return await self._look(id_)
        except NotLeading:
            return None
        except errors.Conflict as conflict:
            log.debug("looked at something that has changed", job=str(id_), error=str(conflict))
            return 0.2

    async def _look(self, id_: JobId) -> float | None:
        record = self._sources.record(id_)
        view = self._sources.view(id_, record, self._options.fence)
        if record is None and not _concerns(view):
            return None
        if record is not None and self._outdated(record, view):
            await self._writer.delete_record(record)
            self._sources.progress.forget(id_)
            return None
        before = record if record is not None else _new_record(view)
        work = advance(before, view)
        if _newly_over(before, work) and view.job is not None and not await self._writer.is_current(view.job):
            return AT_ONCE
        after = before
        if record is not None or _worth_keeping(work):
            after = await self._writer.record(before, work.record)
            self._take_in(id_, before, after, work)
        if work.annotate:
            await self._writer.annotate(id_.namespace, work.annotate)
        again = await self._act(after, view)
        await self._read_logs(id_)
        if work.read_logs:
            await self._read_spans(id_, view)
            again = SOON
        wake = None if work.requeue_at is None else max(0.05, (work.requeue_at - view.now).total_seconds())
        return min((t for t in (again, wake) if t is not None), default=None)

    def _take_in(self, id_: JobId, before: JobRecovery, after: JobRecovery, work: Work) -> None:
        """What follows from the record that has just been written."""
        self._metrics.transition(before, after)
        self._metrics.relandings.inc(work.relanded)
        self._sources.consume(id_, work.consumed)
        if before.status.attempts and after.status.attempts[-1].n > before.status.attempts[-1].n:
            self._sources.progress.restart(id_)
        job = work.view.job
        for note in work.notes:
            about = ObjectReference(
                api_version=after.spec.job.api_version, kind=id_.kind, namespace=id_.namespace, name=id_.name,
                uid=job.uid if job is not None else after.spec.job.uid,
            )  # fmt: skip
            self._recorder.event(about, WARNING if note.warning else NORMAL, note.reason, note.message)

    def _outdated(self, record: JobRecovery, view: View) -> bool:
        """The job has been gone for so long that nothing counts any more."""
        if view.job is not None or record.status.phase == RecoveryPhase.RELEASING:
            return False
        ended = [parse_time(a.ended) for a in record.status.attempts if a.ended]
        return not ended or view.now - max(ended) > KEEP_RECORDS

    # --- acting

    async def _act(self, record: JobRecovery, view: View) -> float | None:
        """Do the next thing the record asks for. Returns the seconds until another look, None when events will tell."""
        work = Work(record, view)
        excluded = suspects.host_names(work) if self._options.fence else []
        adapter, job = ADAPTERS[view.id.kind], view.job
        match next_act(record, view, excluded):
            case Act.CREATE:
                await self._writer.create(record, adapter)
            case Act.FORGET:
                await self._writer.forget(record)
            case Act.HOLD if job is not None:
                await self._writer.hold(adapter, job, record.status.attempts[-1].n)
            case Act.UNMARK if job is not None:
                await self._writer.unmark(adapter, job)
            case Act.RELEASE if job is not None:
                return await self._release(record, view, job, excluded)
            case Act.KEEP if job is not None:
                return await self._keep(record, view, job, excluded)
            case Act.DELETE if job is not None:
                if await self._still_there(view, job):
                    return SOON
                await self._writer.delete(adapter, job)
            case _:
                return None
        return SOON

    async def _release(self, record: JobRecovery, view: View, job: Job, excluded: list[str]) -> float | None:
        if await self._still_there(view, job):
            return SOON
        adapter = ADAPTERS[view.id.kind]
        try:
            await self._writer.release(record, adapter, job, excluded)
        except errors.Invalid as refusal:
            log.info("cannot be changed in place, so it is made again", job=str(view.id), error=str(refusal))
            return await self._keep(record, view, job, excluded)
        return SOON

    async def _keep(self, record: JobRecovery, view: View, job: Job, excluded: list[str]) -> float | None:
        adapter, attempt = ADAPTERS[view.id.kind], record.status.attempts[-1].n
        if not await self._writer.keep(record, adapter, job, attempt, excluded):
            work = Work(copied(record), view)
            hold(work, f"its manifest is larger than {MANIFEST_MAX} bytes, so it is not deleted and made again")
            await self._writer.record(record, work.record)
        return SOON

    async def _still_there(self, view: View, job: Job) -> bool:
        """Whether a fresh list shows a pod of the old gang that may still run."""
        pods = await self._writer.pods_now(ADAPTERS[view.id.kind], job)
        return bool(lingering(replace(view, pods=tuple(pods))))

    async def _read_spans(self, id_: JobId, view: View) -> None:
        """Look into the logs of the running ranks. A rank whose log cannot be read is in no phase that is known."""
        phases = view.policy.hang.phases if view.policy is not None else []
        room, found = asyncio.Semaphore(LOGS_AT_ONCE), {}

        async def look(rank: RankPod) -> None:
            async with room:
                text = await self._log_of(rank.pod.name, id_.namespace, SPAN_LINES, timestamps=True)
            if text is not None:
                found[rank.pod.uid] = read_spans(text, phases)

        async with asyncio.TaskGroup() as group:
            for rank in newest(current(view)).values():
                if rank.active and rank.pod.node_name:
                    group.create_task(look(rank))
        self._sources.progress.keep_spans(id_, found)

    async def _log_of(self, pod: str, namespace: str, lines: int, timestamps: bool = False) -> str | None:
        """The end of a pod's log; None where its kubelet does not answer."""
        try:
            async with asyncio.timeout(LOG_SECONDS):
                return await self._client.pod_log(pod, namespace, lines, timestamps)
        except (TimeoutError, errors.ApiError) as error:
            log.debug("no log", pod=pod, error=str(error))
            return None

    async def _read_logs(self, id_: JobId) -> None:
        """Ask for the logs of failed ranks, the first ones first; a kubelet that does not answer is not waited for."""
        for end in sorted(self._sources.ends.unread(id_), key=lambda end: end.at)[:LOGS_AT_ONCE]:
            text = await self._log_of(end.pod, id_.namespace, LOG_LINES)
            self._sources.ends.keep_log(id_, end, text or "")
            if text:
                self._queue.add(id_)


def _concerns(view: View) -> bool:
    """Whether the loop has anything to do with this job: a gang that a policy selects."""
    return view.job is not None and bool(view.job.ranks) and view.policy is not None


def _newly_over(before: JobRecovery, work: Work) -> bool:
    """This look ends an attempt. Pods and jobs come by two watches: pods that vanish because the job was suspended,
    restarted or deleted look like a failure until the job's own watch has caught up."""
    return before.status.phase in LIVE and work.phase in HOLDING


def _worth_keeping(work: Work) -> bool:
    status = work.status
    return bool(work.attempt.started or status.gates or status.moves) or status.phase != RecoveryPhase.RUNNING


def _new_record(view: View) -> JobRecovery:
    job = view.job
    assert job is not None
    ref = JobRef(api_version=job.api_version, kind=view.id.kind, name=view.id.name)
    meta = ObjectMeta(name=job_recovery_name(view.id.kind, view.id.name), namespace=view.id.namespace)
    return JobRecovery(metadata=meta, spec=JobRecoverySpec(job=ref, policy=view.policy_name))
