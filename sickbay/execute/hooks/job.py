"""A hook that runs a Job, made from a PodTemplate in Sickbay's own namespace.

The Job's name is made from the run's key, so one run can never become two Jobs. It is owned by the NodeRepair, ends by
itself when its time is over, and is removed a day after its end; its result is its own, Complete or Failed.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from sickbay.api import kinds, names
from sickbay.api.node_repair import NodeRepair
from sickbay.api.objectnames import hook_job_name, label_value
from sickbay.execute.hooks.call import Answer
from sickbay.kube import errors
from sickbay.kube.client import Client

KEPT_SECONDS = 24 * 3600
"""How long an ended Job stays, for whoever wants to read its logs."""
LOOK = 5.0
"""Seconds between two looks at a Job."""
OF_REPAIR = f"{names.GROUP}/repair"
"""Label on the Job and its pods: the NodeRepair."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a hook."""

    key: str
    template: str
    seconds: int
    repair: NodeRepair
    facts: dict[str, str]
    """What the Job's containers are told, as environment variables SICKBAY_<NAME>."""

    @property
    def name(self) -> str:
        return hook_job_name(self.key)


class Jobs:
    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def look(self, run: Run) -> Answer:
        """Create the Job where it is not there yet; tell its result. Raises ApiError."""
        try:
            job = await self._client.get(kinds.JOB, run.name, self._namespace)
        except errors.NotFound:
            return await self._create(run)
        if not _ours(job, run.repair):
            return Answer(False, f"Job {self._namespace}/{run.name} is there already and belongs to somebody else")
        return self._result(job)

    async def stop(self, name: str) -> None:
        """Remove a Job whose run is over. Raises ApiError."""
        try:
            await self._client.delete(kinds.JOB, name, self._namespace, propagation="Background")
        except errors.NotFound:
            return

    async def _create(self, run: Run) -> Answer:
        try:
            template = await self._client.get(kinds.POD_TEMPLATE, run.template, self._namespace)
        except errors.NotFound:
            return Answer(False, f"there is no PodTemplate {run.template} in namespace {self._namespace}")
        try:
            await self._client.create(kinds.JOB, manifest(run, template, self._namespace), self._namespace)
        except errors.AlreadyExists:
            pass
        except (errors.Invalid, errors.Forbidden) as error:
            return Answer(False, f"the Job was refused: {error}")
        return Answer(None, f"Job {self._namespace}/{run.name} runs", LOOK)

    def _result(self, job: dict[str, Any]) -> Answer:
        name = f"Job {self._namespace}/{job['metadata']['name']}"
        for condition in (job.get("status") or {}).get("conditions") or ():
            if condition.get("status") != "True":
                continue
            if condition["type"] in ("Complete", "SuccessCriteriaMet"):
                return Answer(True, f"{name} completed")
            if condition["type"] in ("Failed", "FailureTarget"):
                why = condition.get("message") or condition.get("reason") or "no reason given"
                return Answer(False, f"{name} failed: {why}")
        if job["metadata"].get("deletionTimestamp"):
            return Answer(False, f"{name} is being deleted")
        return Answer(None, f"{name} runs", LOOK)


def manifest(run: Run, template: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The Job: the template as it is, told what it is about, once, and not for longer than the hook may take."""
    pod = copy.deepcopy(template.get("template") or {})
    labels = {OF_REPAIR: label_value(run.repair.metadata.name), "app.kubernetes.io/managed-by": "sickbay"}
    meta = pod.setdefault("metadata", {})
    meta["labels"] = {**(meta.get("labels") or {}), **labels}
    spec = pod.setdefault("spec", {})
    if spec.get("restartPolicy") not in ("Never", "OnFailure"):
        spec["restartPolicy"] = "Never"
    told = [{"name": f"SICKBAY_{name}", "value": value} for name, value in sorted(run.facts.items())]
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        own = [env for env in container.get("env") or () if not str(env.get("name", "")).startswith("SICKBAY_")]
        container["env"] = [*own, *told]
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": "NodeRepair",
        "name": run.repair.metadata.name,
        "uid": run.repair.metadata.uid,
        "controller": True,
    }
    return {
        "metadata": {"name": run.name, "namespace": namespace, "labels": labels, "ownerReferences": [owner]},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": max(1, run.seconds),
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": pod,
        },
    }


def _ours(job: dict[str, Any], repair: NodeRepair) -> bool:
    owners = job["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == repair.metadata.uid for owner in owners)
