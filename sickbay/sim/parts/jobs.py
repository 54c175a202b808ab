"""The Job controller, after kubernetes/pkg/controller/job.

Indexed and non-indexed jobs; parallelism, completions, backoffLimit with growing delay, podReplacementPolicy, suspend,
and podFailurePolicy for pods lost to a disruption. Every pod carries the tracking finalizer until it has been counted:
the counters never see a pod twice. Absent: success policies, backoffLimitPerIndex, activeDeadlineSeconds, TTL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.clock import parse_time, rfc3339
from sickbay.sim.hand import JOBS, PODS, condition_of, labels_of, with_condition
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.owned import is_active, is_ready, key_of_owner, own_pods, phase_of, pod_from
from sickbay.sim.stage import Stage

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
BACKOFF_SECONDS = 10.0
BACKOFF_MAX = 600.0


class JobController(Part):
    """Keys are `namespace/name`."""

    name = "job-controller"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._failures: dict[str, int] = {}
        """Counted failures by the job's UID, for the back-off."""

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == JOBS:
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
        if job["metadata"].get("deletionTimestamp") or _over(job):
            self._release(pods)
            return None
        status = dict(job.get("status") or {})
        status.setdefault("startTime", rfc3339(self.clock.now()))
        self._count(job, pods, status)
        pods = own_pods(self.store, job)
        verdict = self._verdict(job, pods, status)
        again: float | None = None
        if verdict is not None:
            self._finish(job, pods, status, verdict)
        elif job["spec"].get("suspend"):
            self._suspend(job, pods, status)
        else:
            again = self._fill(job, pods, status)
        self._write(job, status)
        return again

    # --- counting

    def _count(self, job: Obj, pods: list[Obj], status: Obj) -> None:
        """Take what has ended into the counters, once, and let those pods go."""
        replace_early = _replaces_terminating(job)
        for pod in pods:
            if FINALIZER not in (pod["metadata"].get("finalizers") or ()):
                continue
            phase = phase_of(pod)
            leaving = bool(pod["metadata"].get("deletionTimestamp"))
            if phase == "Succeeded":
                self._count_success(job, pod, status)
            elif phase == "Failed" or (leaving and replace_early):
                if not _ignored(job, pod):
                    status["failed"] = status.get("failed", 0) + 1
                    self._failures[job["metadata"]["uid"]] = self._failures.get(job["metadata"]["uid"], 0) + 1
            else:
                continue
            self._unfinalize(pod)

    def _count_success(self, job: Obj, pod: Obj, status: Obj) -> None:
        if not _indexed(job):
            status["succeeded"] = status.get("succeeded", 0) + 1
            return
        done = _read_indexes(status.get("completedIndexes", ""))
        done.add(_index(pod))
        status["completedIndexes"], status["succeeded"] = _write_indexes(done), len(done)

    def _unfinalize(self, pod: Obj) -> None:
        meta = pod["metadata"]
        kept = [f for f in meta["finalizers"] if f != FINALIZER]
        self.hand.merge(PODS, meta["name"], {"metadata": {"finalizers": kept or None}}, meta["namespace"])

    def _release(self, pods: list[Obj], all_: bool = False) -> None:
        for pod in pods:
            if FINALIZER in (pod["metadata"].get("finalizers") or ()) and (all_ or not is_active(pod)):
                self._unfinalize(pod)

    # --- deciding

    def _verdict(self, job: Obj, pods: list[Obj], status: Obj) -> Obj | None:
        spec = job["spec"]
        completions = spec.get("completions")
        succeeded = status.get("succeeded", 0)
        active = [pod for pod in pods if is_active(pod)]
        if completions is not None and succeeded >= completions:
            return {"type": "Complete", "reason": "CompletionsReached", "message": "Reached expected number of pods"}
        if completions is None and succeeded and not active:
            return {"type": "Complete", "reason": "CompletionsReached", "message": "A pod succeeded and none is active"}
        if any(_fails_job(job, pod) for pod in pods):
            return {"type": "Failed", "reason": "PodFailurePolicy", "message": "A pod matched a FailJob rule"}
        if status.get("failed", 0) > spec.get("backoffLimit", 6):
            message = "Job has reached the specified backoff limit"
            return {"type": "Failed", "reason": "BackoffLimitExceeded", "message": message}
        return None

    def _finish(self, job: Obj, pods: list[Obj], status: Obj, verdict: Obj) -> None:
        for pod in pods:
            if is_active(pod):
                self._delete(pod)
        self._release(own_pods(self.store, job))
        left = [pod for pod in own_pods(self.store, job) if phase_of(pod) not in ("Succeeded", "Failed")]
        first = "SuccessCriteriaMet" if verdict["type"] == "Complete" else "FailureTarget"
        self._condition(status, {**verdict, "type": first})
        status.update(active=0, ready=0, terminating=len(left))
        if not left:
            self._condition(status, verdict)
            if verdict["type"] == "Complete":
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
        blocking = [] if _replaces_terminating(job) else [p for p in leaving if phase_of(p) in ("Pending", "Running")]
        status.update(active=len(active), ready=sum(map(is_ready, active)), terminating=len(leaving))
        missing = self._missing(job, [*active, *blocking], status)
        if missing <= 0:
            return None
        left = self._backoff_left(job, pods)
        if left > 0:
            return left
        for index in self._indexes(job, [*active, *blocking], status, missing):
            self._create(job, index)
            status["active"] += 1
        return None

    def _missing(self, job: Obj, present: list[Obj], status: Obj) -> int:
        spec = job["spec"]
        parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
        if completions is None:
            return 0 if status.get("succeeded") else parallelism - len(present)
        return min(parallelism, int(completions) - int(status.get("succeeded", 0))) - len(present)

    def _backoff_left(self, job: Obj, pods: list[Obj]) -> float:
        """10 s after the first failure, doubled with each further one, at most 10 min."""
        failures = self._failures.get(job["metadata"]["uid"], 0)
        ends = [_ended_at(pod) for pod in pods if phase_of(pod) == "Failed"]
        latest = max((end for end in ends if end), default="")
        if not failures or not latest:
            return 0.0
        wait = min(BACKOFF_SECONDS * 2.0 ** min(failures - 1, 10), BACKOFF_MAX)
        return wait - (self.clock.now() - parse_time(latest)).total_seconds()

    def _indexes(self, job: Obj, present: list[Obj], status: Obj, missing: int) -> list[int]:
        if not _indexed(job):
            return [-1] * missing
        taken = {_index(pod) for pod in present} | _read_indexes(status.get("completedIndexes", ""))
        free = [index for index in range(int(job["spec"].get("completions", 0))) if index not in taken]
        return free[:missing]

    # --- pods

    def _create(self, job: Obj, index: int) -> None:
        meta = job["metadata"]
        template = job["spec"].get("template") or {}
        pod = pod_from(template, job)
        own = {
            key: value for key, value in (meta.get("annotations") or {}).items() if key.startswith("sim.sickbay.dev/")
        }
        pod["metadata"]["annotations"] = {**own, **pod["metadata"]["annotations"]}
        pod["metadata"]["finalizers"] = [FINALIZER]
        suffix = self.stage.randomness.hex(5)
        if index < 0:
            pod["metadata"]["name"] = f"{meta['name']}-{suffix}"
        else:
            pod["metadata"]["name"] = f"{meta['name']}-{index}-{suffix}"
            pod["metadata"]["annotations"][INDEX] = pod["metadata"]["labels"][INDEX] = str(index)
            pod["spec"].setdefault("hostname", f"{meta['name']}-{index}")
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


def _over(job: Obj) -> bool:
    return any(condition_of(job, type_).get("status") == "True" for type_ in ("Complete", "Failed"))


def _indexed(job: Obj) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def _index(pod: Obj) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(INDEX) or labels_of(pod).get(INDEX) or -1)


def _replaces_terminating(job: Obj) -> bool:
    policy = job["spec"].get("podReplacementPolicy")
    return bool(policy == "TerminatingOrFailed" or (policy is None and not job["spec"].get("podFailurePolicy")))


def _rule_for(job: Obj, pod: Obj) -> str:
    """The action of the first podFailurePolicy rule that the failed pod matches."""
    for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ():
        for wanted in rule.get("onPodConditions") or ():
            if condition_of(pod, wanted["type"]).get("status") == wanted.get("status", "True"):
                return str(rule["action"])
        codes = rule.get("onExitCodes")
        if codes and (_exit_code(pod) in codes["values"]) == (codes["operator"] == "In") and _exit_code(pod):
            return str(rule["action"])
    return "Count"


def _exit_code(pod: Obj) -> int:
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        code = ((status.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
        if code:
            return int(code)
    return 0


def _ended_at(pod: Obj) -> str:
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = ((status.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if ended:
            return str(ended)
    return ""


def _ignored(job: Obj, pod: Obj) -> bool:
    return _rule_for(job, pod) == "Ignore"


def _fails_job(job: Obj, pod: Obj) -> bool:
    return phase_of(pod) == "Failed" and _rule_for(job, pod) == "FailJob"


def _read_indexes(text: str) -> set[int]:
    """`0,2-4` is {0, 2, 3, 4}."""
    indexes: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def _write_indexes(indexes: set[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
