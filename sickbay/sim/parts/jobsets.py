"""The JobSet controller, after sigs.k8s.io/jobset v0.11 (pkg/controllers).

replicatedJobs, failure and success policy, restarts by Recreate and BlockingRecreate, suspend and resume, the headless
Service, the TTL, and the labels and annotations that the real one sets on Jobs and pods. A restart raises
`status.restarts`, deletes the child Jobs of before in the foreground, and makes new ones under the same names. It is
held to the real one by tests/jobsets. Absent: startup order and dependencies, in-place restarts, exclusive placement,
volume claims.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.clock import parse_time, rfc3339
from sickbay.sim.hand import JOB_SETS, JOBS, SERVICES, condition_of, labels_of, with_condition
from sickbay.sim.parts import jobset_admission
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.disruption import controller_of
from sickbay.sim.parts.owned import key_of_owner, reference_to
from sickbay.sim.stage import Stage

PREFIX = "jobset.sigs.k8s.io"
RESTART_ATTEMPT = f"{PREFIX}/restart-attempt"
REPLICATED_JOB = f"{PREFIX}/replicatedjob-name"
MANAGER = "jobset.sigs.k8s.io/jobset-controller"
"""spec.managedBy of JobSets that this controller takes for its own."""
ENDS = ("Completed", "Failed")


@dataclass
class _Children:
    """Child Jobs of the present run by how they stand, and those of earlier runs."""

    active: list[Obj] = field(default_factory=list)
    successful: list[Obj] = field(default_factory=list)
    failed: list[Obj] = field(default_factory=list)
    previous: list[Obj] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        every = (*self.active, *self.successful, *self.failed, *self.previous)
        return {job["metadata"]["name"] for job in every}


class JobSets(Part):
    """Keys are `namespace/name`."""

    name = "jobset-controller"
    user = "system:serviceaccount:jobset-system:jobset-controller-manager"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        stage.store.validate_update(jobset_admission.refuse)

    def heeds(self) -> Iterable[str]:
        return (JOB_SETS, JOBS)

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == JOB_SETS:
            return (f"{write.namespace}/{write.name}",)
        if write.resource != JOBS:
            return ()
        return [key for key in {key_of_owner(write.old, "JobSet"), key_of_owner(write.new, "JobSet")} if key]

    def step(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        job_set = self.store.find(JOB_SETS, name, namespace)
        if job_set is None or job_set["metadata"].get("deletionTimestamp"):
            return None
        if job_set["spec"].get("managedBy", MANAGER) != MANAGER:
            return None
        children = self._children(job_set)
        status = dict(job_set.get("status") or {})
        status["replicatedJobsStatus"] = _counts(job_set, children)
        if _finished(job_set):
            self._delete(children.active)
            again = self._expire(job_set)
        else:
            self._reconcile(job_set, children, status)
            again = None
        if status != (job_set.get("status") or {}) and self.store.find(JOB_SETS, name, namespace):
            self.hand.merge(JOB_SETS, name, {"status": status}, namespace, "status")
        return again

    def _expire(self, job_set: Obj) -> float | None:
        """Delete a finished JobSet when its time is over; the seconds until then."""
        seconds, meta = job_set["spec"].get("ttlSecondsAfterFinished"), job_set["metadata"]
        ended = next(c for type_ in ENDS if (c := condition_of(job_set, type_)).get("status") == "True")
        if seconds is None:
            return None
        left = float(seconds) - (self.clock.now() - parse_time(ended["lastTransitionTime"])).total_seconds()
        if left > 0:
            return left
        self.hand.discard(JOB_SETS, meta["name"], meta["namespace"], uid=meta["uid"], propagation="Foreground")
        return None

    def _reconcile(self, job_set: Obj, children: _Children, status: Obj) -> None:
        self._delete(children.previous)
        if children.failed:
            self._fail(job_set, children, status)
        elif children.successful and _succeeded(job_set, children):
            self._condition(status, "Completed", "AllJobsCompleted", "jobset completed successfully")
            status["terminalState"] = "Completed"
        else:
            self._serve(job_set)
            self._create(job_set, children)
            self._suspend_or_resume(job_set, children, status)

    def _children(self, job_set: Obj) -> _Children:
        """Its own, by its UID: children of a former JobSet of that name are none, though they hold their names."""
        meta, found = job_set["metadata"], _Children()
        restarts = (job_set.get("status") or {}).get("restarts", 0)
        for job in self.store.list(JOBS, meta["namespace"]):
            if controller_of(job).get("uid") != meta["uid"]:
                continue
            if int(labels_of(job).get(RESTART_ATTEMPT, "0")) < restarts:
                found.previous.append(job)
            elif condition_of(job, "Failed").get("status") == "True":
                found.failed.append(job)
            elif condition_of(job, "Complete").get("status") == "True":
                found.successful.append(job)
            else:
                found.active.append(job)
        return found

    def _delete(self, jobs: list[Obj]) -> None:
        for job in jobs:
            meta = job["metadata"]
            if not meta.get("deletionTimestamp"):
                self.store.delete(
                    JOBS,
                    meta["name"],
                    meta["namespace"],
                    uid=meta["uid"],
                    propagation="Foreground",
                    caller=self.hand.caller,
                )

    # --- failures

    def _fail(self, job_set: Obj, children: _Children, status: Obj) -> None:
        policy = job_set["spec"].get("failurePolicy")
        first = min(children.failed, key=_failed_at)
        told = f"(first failed job: {first['metadata']['name']})"
        if policy is None:
            self._end_failed(status, "FailedJobs", f"jobset failed due to one or more job failures {told}")
            return
        action = _action(policy, children.failed)
        if action == "FailJobSet":
            self._end_failed(status, "FailJobSetFailurePolicyAction", f"applying FailJobSet action {told}")
        elif action == "RestartJobSet" and status.get("restartsCountTowardsMax", 0) >= policy.get("maxRestarts", 0):
            message = f"jobset failed due to reaching max number of restarts {told}"
            self._end_failed(status, "ReachedMaxRestarts", message)
        else:
            status["restarts"] = status.get("restarts", 0) + 1
            if action == "RestartJobSet":
                status["restartsCountTowardsMax"] = status.get("restartsCountTowardsMax", 0) + 1

    def _end_failed(self, status: Obj, reason: str, message: str) -> None:
        self._condition(status, "Failed", reason, message)
        status["terminalState"] = "Failed"

    # --- making

    def _serve(self, job_set: Obj) -> None:
        network, meta = job_set["spec"].get("network") or {}, job_set["metadata"]
        name = network.get("subdomain") or meta["name"]
        if not network.get("enableDNSHostnames", True) or self.store.find(SERVICES, name, meta["namespace"]):
            return
        service = {
            "metadata": {"name": name, "ownerReferences": [reference_to(job_set)]},
            "spec": {
                "clusterIP": "None",
                "selector": {f"{PREFIX}/jobset-name": meta["name"]},
                "publishNotReadyAddresses": network.get("publishNotReadyAddresses", True),
            },
        }
        self.hand.create(SERVICES, service, meta["namespace"])

    def _create(self, job_set: Obj, children: _Children) -> None:
        policy = job_set["spec"].get("failurePolicy") or {}
        if children.previous and policy.get("restartStrategy") == "BlockingRecreate":
            return
        present = children.names
        for replicated in job_set["spec"].get("replicatedJobs") or ():
            for index in range(int(replicated.get("replicas", 1))):
                if _job_name(job_set, replicated, index) not in present:
                    self.hand.create(JOBS, _job(job_set, replicated, index), job_set["metadata"]["namespace"])

    # --- suspending

    def _suspend_or_resume(self, job_set: Obj, children: _Children, status: Obj) -> None:
        templates = {r["name"]: r["template"]["spec"]["template"] for r in job_set["spec"].get("replicatedJobs") or ()}
        if job_set["spec"].get("suspend"):
            for job in children.active:
                if not job["spec"].get("suspend"):
                    self._patch(job, {"spec": {"suspend": True}})
            self._condition(status, "Suspended", "SuspendedJobs", "jobset is suspended")
            return
        for job in children.active:
            if job["spec"].get("suspend"):
                self._resume(job, templates.get(labels_of(job).get(REPLICATED_JOB, ""), {}))
        if condition_of({"status": status}, "Suspended").get("status") == "True":
            self._condition(status, "Suspended", "ResumeJobs", "jobset is resumed", "False")

    def _resume(self, job: Obj, template: Obj) -> None:
        """Changes of the template that a suspended JobSet allows reach the child when it is resumed."""
        meta = job["metadata"]
        if (job.get("status") or {}).get("startTime"):
            self.hand.merge(JOBS, meta["name"], {"status": {"startTime": None}}, meta["namespace"], "status")
        now, wanted = job["spec"]["template"].get("spec") or {}, template.get("spec") or {}
        spec: dict[str, Any] = {}
        if wanted.get("nodeSelector"):
            spec["nodeSelector"] = wanted["nodeSelector"]
        for key in ("tolerations", "schedulingGates"):
            added = [entry for entry in wanted.get(key) or () if entry not in (now.get(key) or ())]
            if added:
                spec[key] = [*(now.get(key) or ()), *added]
        given = template.get("metadata") or {}
        marks = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
        self._patch(job, {"spec": {"suspend": False, "template": {"metadata": marks, "spec": spec}}})

    def _patch(self, job: Obj, patch: Obj) -> None:
        self.hand.merge(JOBS, job["metadata"]["name"], patch, job["metadata"]["namespace"])

    def _condition(self, status: Obj, type_: str, reason: str, message: str, value: str = "True") -> None:
        if condition_of({"status": status}, type_).get("status") == value:
            return
        now = rfc3339(self.clock.now())
        written = {"type": type_, "status": value, "reason": reason, "message": message, "lastTransitionTime": now}
        status["conditions"] = with_condition(status.get("conditions") or [], written)


def _finished(job_set: Obj) -> bool:
    return any(condition_of(job_set, type_).get("status") == "True" for type_ in ENDS)


def _failed_at(job: Obj) -> str:
    return str(condition_of(job, "Failed").get("lastTransitionTime", ""))


def _action(policy: Obj, failed: list[Obj]) -> str:
    """The action of the first rule that a failed child matches; without one the JobSet restarts."""
    for rule in policy.get("rules") or ():
        reasons, targets = rule.get("onJobFailureReasons") or (), rule.get("targetReplicatedJobs") or ()
        for job in failed:
            reason = condition_of(job, "Failed").get("reason", "")
            if (not reasons or reason in reasons) and (not targets or labels_of(job).get(REPLICATED_JOB) in targets):
                return str(rule["action"])
    return "RestartJobSet"


def _succeeded(job_set: Obj, children: _Children) -> bool:
    policy = job_set["spec"].get("successPolicy") or {}
    targets = policy.get("targetReplicatedJobs") or [r["name"] for r in job_set["spec"].get("replicatedJobs") or ()]
    done = sum(labels_of(job).get(REPLICATED_JOB) in targets for job in children.successful)
    if policy.get("operator", "All") == "Any":
        return done >= 1
    wanted = sum(int(r.get("replicas", 1)) for r in job_set["spec"]["replicatedJobs"] if r["name"] in targets)
    return done >= wanted


def _counts(job_set: Obj, children: _Children) -> list[Obj]:
    counts = []
    for replicated in job_set["spec"].get("replicatedJobs") or ():
        name = replicated["name"]

        def of(jobs: list[Obj], name: str = name) -> list[Obj]:
            return [job for job in jobs if labels_of(job).get(REPLICATED_JOB) == name]

        active = of(children.active)
        counts.append(
            {
                "name": name,
                "ready": sum(map(_ready, active)),
                "active": sum(bool((job.get("status") or {}).get("active")) for job in active),
                "suspended": sum(bool(job["spec"].get("suspend")) for job in active),
                "succeeded": len(of(children.successful)),
                "failed": len(of(children.failed)),
            }
        )
    return counts


def _ready(job: Obj) -> bool:
    status, spec = job.get("status") or {}, job["spec"]
    wanted = min(int(spec.get("parallelism", 1)), int(spec.get("completions") or spec.get("parallelism", 1)))
    return bool(status.get("succeeded", 0) + status.get("ready", 0) >= wanted)


def _job_name(job_set: Obj, replicated: Obj, index: int) -> str:
    return f"{job_set['metadata']['name']}-{replicated['name']}-{index}"


def _job(job_set: Obj, replicated: Obj, index: int) -> Obj:
    marks = _marks(job_set, replicated, index)
    spec, meta = dict(replicated["template"].get("spec") or {}), replicated["template"].get("metadata") or {}
    template = dict(spec["template"])
    pod_meta, pod_spec = template.get("metadata") or {}, dict(template.get("spec") or {})
    template["metadata"] = {**pod_meta, **_marked(pod_meta, marks)}
    network = job_set["spec"].get("network") or {}
    if network.get("enableDNSHostnames", True):
        pod_spec["subdomain"] = network.get("subdomain") or job_set["metadata"]["name"]
    pod_spec.setdefault("restartPolicy", "OnFailure")
    template["spec"] = pod_spec
    spec.update(template=template, suspend=bool(job_set["spec"].get("suspend")))
    spec.setdefault("completionMode", "Indexed")
    return {
        "metadata": {
            "name": _job_name(job_set, replicated, index),
            "ownerReferences": [reference_to(job_set)],
            **_marked(meta, marks),
        },
        "spec": spec,
    }


def _marked(meta: Obj, marks: dict[str, str]) -> Obj:
    return {
        "labels": {**(meta.get("labels") or {}), **marks},
        "annotations": {**(meta.get("annotations") or {}), **marks},
    }


def _marks(job_set: Obj, replicated: Obj, index: int) -> dict[str, str]:
    meta, every = job_set["metadata"], job_set["spec"].get("replicatedJobs") or ()
    group = replicated.get("groupName", "default")
    mates = [other for other in every if other.get("groupName", "default") == group]
    key = f"{meta['namespace']}/{_job_name(job_set, replicated, index)}"
    marks = {
        f"{PREFIX}/jobset-name": meta["name"],
        f"{PREFIX}/jobset-uid": meta["uid"],
        REPLICATED_JOB: replicated["name"],
        RESTART_ATTEMPT: str((job_set.get("status") or {}).get("restarts", 0)),
        f"{PREFIX}/replicatedjob-replicas": str(replicated.get("replicas", 1)),
        f"{PREFIX}/global-replicas": str(_replicas(every)),
        f"{PREFIX}/job-index": str(index),
        f"{PREFIX}/job-global-index": str(_before(every, replicated) + index),
        f"{PREFIX}/job-key": hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest(),
        f"{PREFIX}/group-name": group,
        f"{PREFIX}/group-replicas": str(_replicas(mates)),
        f"{PREFIX}/job-group-index": str(_before(mates, replicated) + index),
    }
    coordinator = job_set["spec"].get("coordinator")
    if coordinator:
        marks[f"{PREFIX}/coordinator"] = _endpoint(job_set, coordinator)
    return marks


def _replicas(jobs: Iterable[Obj]) -> int:
    return sum(int(job.get("replicas", 1)) for job in jobs)


def _before(jobs: Iterable[Obj], replicated: Obj) -> int:
    """Replicas of the replicatedJobs that stand before this one."""
    return _replicas(itertools.takewhile(lambda job: job["name"] != replicated["name"], jobs))


def _endpoint(job_set: Obj, coordinator: Obj) -> str:
    name = job_set["metadata"]["name"]
    job, pod = coordinator.get("jobIndex", 0), coordinator.get("podIndex", 0)
    subdomain = (job_set["spec"].get("network") or {}).get("subdomain") or name
    return f"{name}-{coordinator['replicatedJob']}-{job}-{pod}.{subdomain}"
