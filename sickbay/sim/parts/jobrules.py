"""What a Job's rules say of its pods: failure policy, indexes and their limits, and when the Job is over."""

from __future__ import annotations

from datetime import datetime

from sickbay.apiserver.errors import Obj
from sickbay.clock import parse_time
from sickbay.sim.hand import condition_of, labels_of
from sickbay.sim.parts.owned import is_active, phase_of

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES_OF_INDEX = "batch.kubernetes.io/job-index-failure-count"
"""On pods of a Job with a limit for each index: how often that index had failed before."""
COUNT, IGNORE, FAIL_JOB, FAIL_INDEX = "Count", "Ignore", "FailJob", "FailIndex"


def indexed(job: Obj) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def by_index(job: Obj) -> bool:
    """Whether each index has a limit of its own."""
    return job["spec"].get("backoffLimitPerIndex") is not None


def index_of(pod: Obj) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(INDEX) or labels_of(pod).get(INDEX) or -1)


def failures_before(pod: Obj) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(FAILURES_OF_INDEX) or 0)


def replaces_terminating(job: Obj) -> bool:
    policy = job["spec"].get("podReplacementPolicy")
    return bool(policy == "TerminatingOrFailed" or (policy is None and not job["spec"].get("podFailurePolicy")))


def action_for(job: Obj, pod: Obj) -> str:
    """The action of the first podFailurePolicy rule that the failed pod matches."""
    for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ():
        for wanted in rule.get("onPodConditions") or ():
            if condition_of(pod, wanted["type"]).get("status") == wanted.get("status", "True"):
                return str(rule["action"])
        codes = rule.get("onExitCodes")
        if codes and (_exit_code(pod) in codes["values"]) == (codes["operator"] == "In") and _exit_code(pod):
            return str(rule["action"])
    return COUNT


def _exit_code(pod: Obj) -> int:
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        code = ((status.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
        if code:
            return int(code)
    return 0


def ended_at(pod: Obj) -> str:
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = ((status.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if ended:
            return str(ended)
    return ""


def ends_index(job: Obj, pod: Obj) -> bool:
    """Whether this failure is the last that its index may have."""
    action = action_for(job, pod)
    limit = int(job["spec"]["backoffLimitPerIndex"])
    return action == FAIL_INDEX or (action == COUNT and failures_before(pod) >= limit)


def over(job: Obj) -> bool:
    return any(condition_of(job, type_).get("status") == "True" for type_ in ("Complete", "Failed"))


def deadline_left(job: Obj, status: Obj, now: datetime) -> float | None:
    """Seconds until the Job is too old; None where it may take for ever."""
    limit, since = job["spec"].get("activeDeadlineSeconds"), status.get("startTime")
    if limit is None or not since or job["spec"].get("suspend"):
        return None
    return float(limit) - (now - parse_time(since)).total_seconds()


def expires_in(job: Obj, now: datetime) -> float | None:
    """Seconds that a Job that is over is still kept; None = for ever (ttlSecondsAfterFinished)."""
    kept = job["spec"].get("ttlSecondsAfterFinished")
    if kept is None or not over(job):
        return None
    ends = [condition_of(job, type_).get("lastTransitionTime") for type_ in ("Complete", "Failed")]
    return float(kept) - (now - parse_time(next(end for end in ends if end))).total_seconds()


def verdict(job: Obj, pods: list[Obj], status: Obj, now: datetime) -> Obj | None:
    """The condition with which the Job ends; None while it goes on."""
    spec, completions, succeeded = job["spec"], job["spec"].get("completions"), status.get("succeeded", 0)
    if completions is not None and succeeded >= completions:
        return _ends("Complete", "CompletionsReached", "Reached expected number of pods")
    if completions is None and succeeded and not any(is_active(pod) for pod in pods):
        return _ends("Complete", "CompletionsReached", "A pod succeeded and none is active")
    if any(phase_of(pod) == "Failed" and action_for(job, pod) == FAIL_JOB for pod in pods):
        return _ends("Failed", "PodFailurePolicy", "A pod matched a FailJob rule")
    if (left := deadline_left(job, status, now)) is not None and left <= 0:
        return _ends("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    if by_index(job):
        return _by_indexes(spec, status)
    if status.get("failed", 0) > spec.get("backoffLimit", 6):
        return _ends("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    return None


def _by_indexes(spec: Obj, status: Obj) -> Obj | None:
    failed = len(read_indexes(status.get("failedIndexes") or ""))
    most = spec.get("maxFailedIndexes")
    if most is not None and failed > int(most):
        message = "Job has exceeded the specified maximal number of failed indexes"
        return _ends("Failed", "MaxFailedIndexesExceeded", message)
    if failed and failed + status.get("succeeded", 0) >= int(spec["completions"]):
        return _ends("Failed", "FailedIndexes", "Job has failed indexes")
    return None


def _ends(type_: str, reason: str, message: str) -> Obj:
    return {"type": type_, "reason": reason, "message": message}


def read_indexes(text: str) -> set[int]:
    """`0,2-4` is {0, 2, 3, 4}."""
    indexes: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def write_indexes(indexes: set[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(_run(first, last) for first, last in runs)


def _run(first: int, last: int) -> str:
    """The real controller writes two indexes in a row as `0,1` and longer runs as `0-2`."""
    if last - first < 2:
        return ",".join(str(index) for index in range(first, last + 1))
    return f"{first}-{last}"
