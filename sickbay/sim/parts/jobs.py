"""The Job controller, after kubernetes/pkg/controller/job.

Indexed and non-indexed jobs; parallelism, completions, backoffLimit with growing delay, backoffLimitPerIndex,
podReplacementPolicy, podFailurePolicy, suspend, activeDeadlineSeconds and ttlSecondsAfterFinished (`jobrules`). Every
pod carries the tracking finalizer until it has been counted: the counters never see a pod twice. Absent: success
policies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.clock import parse_time, rfc3339
from sickbay.sim.hand import JOBS, PODS, condition_of, with_condition
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.jobrules import (
    FAILURES_OF_INDEX,
    IGNORE,
    INDEX,
    action_for,
    by_index,
    deadline_left,
    ended_at,
    ends_index,
    expires_in,
    failures_before,
    index_of,
    indexed,
    over,
    read_indexes,
    replaces_terminating,
    verdict,
    write_indexes,
)
from sickbay.sim.parts.owned import is_active, is_ready, key_of_owner, own_pods, phase_of, pod_from
from sickbay.sim.stage import Stage

FINALIZER = "batch.kubernetes.io/job-tracking"
BACKOFF_SECONDS = 10.0
BACKOFF_MAX = 600.0


class JobController(Part):
    """Keys are `namespace/name`."""

    name = "job-controller"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._failures: dict[str, int] = {}
        """Counted failures by the job's UID, for the back-off."""
        self._index_failures: dict[str, dict[int, int]] = {}
        """The same by index, where each has a limit of its own: what its next pod is told."""

    def heeds(self) -> Iterable[str]:
        return (JOBS, PODS)

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == JOBS:
            if write.new is None and write.old is not None:
                self._failures.pop(write.old["metadata"]["uid"], None)
                self._index_failures.pop(write.old["metadata"]["uid"], None)
            return (f"{write.namespace}/{write.name}",)
        if write.resource != PODS:
            return ()
        return [key for key in {key_of_owner(write.old, "Job"), key_of_owner(write.new, "Job")} if key]

    def step(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        job = self.store.find(JOBS, name, namespace)
        if job is None:
            # The job is gone: nothing counts its pods any more, so nothing may keep them.
            self._release([p for p in self.store.list(PODS, namespace) if key_of_owner(p, "Job") == key], all_=True)
            return None
        pods = own_pods(self.store, job)
        if job["metadata"].get("deletionTimestamp") or over(job):
            self._release(pods)
            return self._expire(job)
        return self._carry_on(job, pods)

    def _carry_on(self, job: Obj, pods: list[Obj]) -> float | None:
        status = dict(job.get("status") or {})
        status.setdefault("startTime", rfc3339(self.clock.now()))
        self._count(job, pods, status)
        pods = own_pods(self.store, job)
        end = verdict(job, pods, status, self.clock.now())
        waits = [deadline_left(job, status, self.clock.now())]
        if end is not None:
            self._finish(job, pods, status, end)
        elif job["spec"].get("suspend"):
            self._suspend(job, pods, status)
        else:
            waits.append(self._fill(job, pods, status))
        self._write(job, status)
        return min((wait for wait in waits if wait is not None and wait > 0), default=None)

    def _expire(self, job: Obj) -> float | None:
        left = expires_in(job, self.clock.now())
        if left is None or left > 0 or job["metadata"].get("deletionTimestamp"):
            return left if left is not None and left > 0 else None
        meta = job["metadata"]
        caller, uid = self.hand.caller, meta["uid"]
        self.store.delete(JOBS, meta["name"], meta["namespace"], uid=uid, propagation="Foreground", caller=caller)
        return None

    # --- counting

    def _count(self, job: Obj, pods: list[Obj], status: Obj) -> None:
        """Take what has ended into the counters, once, and let those pods go."""
        replace_early = replaces_terminating(job)
        for pod in pods:
            if FINALIZER not in (pod["metadata"].get("finalizers") or ()):
                continue
            phase = phase_of(pod)
            leaving = bool(pod["metadata"].get("deletionTimestamp"))
            if phase == "Succeeded":
                self._count_success(job, pod, status)
            elif phase == "Failed" or (leaving and replace_early):
                self._count_failure(job, pod, status)
            else:
                continue
            self._unfinalize(pod)

    def _count_success(self, job: Obj, pod: Obj, status: Obj) -> None:
        if not indexed(job):
            status["succeeded"] = status.get("succeeded", 0) + 1
            return
        done = read_indexes(status.get("completedIndexes", ""))
        done.add(index_of(pod))
        status["completedIndexes"], status["succeeded"] = write_indexes(done), len(done)

    def _count_failure(self, job: Obj, pod: Obj, status: Obj) -> None:
        if action_for(job, pod) == IGNORE:
            return
        uid = job["metadata"]["uid"]
        status["failed"] = status.get("failed", 0) + 1
        self._failures[uid] = self._failures.get(uid, 0) + 1
        if not by_index(job):
            return
        index = index_of(pod)
        self._index_failures.setdefault(uid, {})[index] = failures_before(pod) + 1
        if ends_index(job, pod):
            failed = read_indexes(status.get("failedIndexes") or "")
            status["failedIndexes"] = write_indexes(failed | {index})

    def _unfinalize(self, pod: Obj) -> None:
        meta = pod["metadata"]
        kept = [f for f in meta["finalizers"] if f != FINALIZER]
        self.hand.merge(PODS, meta["name"], {"metadata": {"finalizers": kept or None}}, meta["namespace"])

    def _release(self, pods: list[Obj], all_: bool = False) -> None:
        for pod in pods:
            if FINALIZER in (pod["metadata"].get("finalizers") or ()) and (all_ or not is_active(pod)):
                self._unfinalize(pod)

    # --- acting

    def _finish(self, job: Obj, pods: list[Obj], status: Obj, end: Obj) -> None:
        for pod in pods:
            if is_active(pod):
                # What a failed Job takes down with it has failed too.
                if end["type"] == "Failed" and FINALIZER in (pod["metadata"].get("finalizers") or ()):
                    status["failed"] = status.get("failed", 0) + 1
                self._delete(pod)
        self._release(own_pods(self.store, job))
        left = [pod for pod in own_pods(self.store, job) if phase_of(pod) not in ("Succeeded", "Failed")]
        first = "SuccessCriteriaMet" if end["type"] == "Complete" else "FailureTarget"
        self._condition(status, {**end, "type": first})
        status.update(active=0, ready=0, terminating=len(left))
        if not left:
            self._condition(status, end)
            if end["type"] == "Complete":
                status["completionTime"] = rfc3339(self.clock.now())

    def _suspend(self, job: Obj, pods: list[Obj], status: Obj) -> None:
        for pod in pods:
            if is_active(pod):
                if FINALIZER in (pod["metadata"].get("finalizers") or ()):
                    self._unfinalize(pod)  # first, so that it never counts as failed
                self._delete(pod)
        status.pop("startTime", None)
        status.update(active=0, ready=0)
        self._condition(status, {"type": "Suspended", "reason": "JobSuspended", "message": "Job suspended"})

    def _fill(self, job: Obj, pods: list[Obj], status: Obj) -> float | None:
        """Make the pods that are missing; returns how long a back-off still runs."""
        if condition_of({"status": status}, "Suspended").get("status") == "True":
            resumed = {"type": "Suspended", "reason": "JobResumed", "message": "Job resumed"}
            self._condition(status, resumed, "False")
        active = [pod for pod in pods if is_active(pod)]
        leaving = [pod for pod in pods if pod["metadata"].get("deletionTimestamp")]
        blocking = [] if replaces_terminating(job) else [p for p in leaving if phase_of(p) in ("Pending", "Running")]
        status.update(active=len(active), ready=sum(map(is_ready, active)), terminating=len(leaving))
        present = [*active, *blocking]
        missing = _missing(job, present, status)
        if missing <= 0:
            return None
        left = 0.0 if by_index(job) else self._backoff_left(job, pods)
        if left > 0:
            return left
        return self._create_all(job, pods, _free_indexes(job, present, status)[:missing] or [-1] * missing, status)

    def _create_all(self, job: Obj, pods: list[Obj], indexes: list[int], status: Obj) -> float | None:
        """Returns after how long the next index may run again."""
        waits = []
        for index in indexes:
            if indexed(job) and index < 0:
                continue
            left = self._index_backoff_left(job, pods, index) if by_index(job) else 0.0
            if left > 0:
                waits.append(left)
                continue
            self._create(job, index)
            status["active"] += 1
        return min(waits, default=None)

    def _backoff_left(self, job: Obj, pods: list[Obj]) -> float:
        """10 s after the first failure, doubled with each further one, at most 10 min."""
        return self._left(self._failures.get(job["metadata"]["uid"], 0), pods)

    def _index_backoff_left(self, job: Obj, pods: list[Obj], index: int) -> float:
        failures = self._index_failures.get(job["metadata"]["uid"], {}).get(index, 0)
        return self._left(failures, [pod for pod in pods if index_of(pod) == index])

    def _left(self, failures: int, pods: list[Obj]) -> float:
        ends = [ended_at(pod) for pod in pods if phase_of(pod) == "Failed"]
        latest = max((end for end in ends if end), default="")
        if not failures or not latest:
            return 0.0
        wait = min(BACKOFF_SECONDS * 2.0 ** min(failures - 1, 10), BACKOFF_MAX)
        return wait - (self.clock.now() - parse_time(latest)).total_seconds()

    # --- pods

    def _create(self, job: Obj, index: int) -> None:
        meta = job["metadata"]
        pod = pod_from(job["spec"].get("template") or {}, job)
        given = meta.get("annotations") or {}
        own = {key: value for key, value in given.items() if key.startswith("sim.sickbay.dev/")}
        pod["metadata"]["annotations"] = {**own, **pod["metadata"]["annotations"]}
        pod["metadata"]["finalizers"] = [FINALIZER]
        suffix = self.stage.randomness.hex(5)
        if index < 0:
            pod["metadata"]["name"] = f"{meta['name']}-{suffix}"
        else:
            pod["metadata"]["name"] = f"{meta['name']}-{index}-{suffix}"
            pod["metadata"]["annotations"][INDEX] = pod["metadata"]["labels"][INDEX] = str(index)
            pod["spec"].setdefault("hostname", f"{meta['name']}-{index}")
        if by_index(job):
            failures = self._index_failures.get(meta["uid"], {}).get(index, 0)
            pod["metadata"]["annotations"][FAILURES_OF_INDEX] = str(failures)
        self.hand.create(PODS, pod, meta["namespace"])

    def _delete(self, pod: Obj) -> None:
        meta = pod["metadata"]
        self.hand.discard(PODS, meta["name"], meta["namespace"], uid=meta["uid"])

    # --- status

    def _condition(self, status: Obj, new: Obj, value: str = "True") -> None:
        now = rfc3339(self.clock.now())
        before = condition_of({"status": status}, new["type"])
        if before.get("status") == value:
            return
        written = {**new, "status": value, "lastProbeTime": now, "lastTransitionTime": now}
        status["conditions"] = with_condition(status.get("conditions") or [], written)

    def _write(self, job: Obj, status: Obj) -> None:
        old = job.get("status") or {}
        patch: dict[str, Any] = {**dict.fromkeys(old), **status}
        if status != old:
            self.hand.merge(JOBS, job["metadata"]["name"], {"status": patch}, job["metadata"]["namespace"], "status")


def _missing(job: Obj, present: list[Obj], status: Obj) -> int:
    spec = job["spec"]
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    if completions is None:
        return 0 if status.get("succeeded") else parallelism - len(present)
    given_up = len(read_indexes(status.get("failedIndexes") or ""))
    return min(parallelism, int(completions) - int(status.get("succeeded", 0)) - given_up) - len(present)


def _free_indexes(job: Obj, present: list[Obj], status: Obj) -> list[int]:
    """Indexes without a pod that are neither done nor given up; none for a Job without indexes."""
    if not indexed(job):
        return []
    taken = {index_of(pod) for pod in present} | read_indexes(status.get("completedIndexes", ""))
    taken |= read_indexes(status.get("failedIndexes") or "")
    return [index for index in range(int(job["spec"].get("completions", 0))) if index not in taken]
