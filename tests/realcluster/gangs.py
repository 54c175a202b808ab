"""Gangs on the real control plane: a JobSet or an Indexed Job, its record, and the hollow containers of its ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sickbay.api import kinds, names
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.objectnames import job_recovery_name
from sickbay.kube import errors
from tests.realcluster.view import SOON
from tests.realcluster.world import World
from tests.support.eventually import eventually

Obj = dict[str, Any]
JOB, JOB_SET = "Job", "JobSet"
KINDS = {JOB: kinds.JOB, JOB_SET: kinds.JOB_SET}


class Gang:
    """One gang of `ranks` ranks, each with all GPUs of a node; a JobSet has two child Jobs."""

    def __init__(self, world: World, kind: str, ranks: int, pool: str = "") -> None:
        self.world, self.kind, self.ranks = world, kind, ranks
        self.name, self._pool = world.name, pool or world.name
        self.annotations: dict[str, str] = {}
        self.seen: list[Obj] = []
        """Every version of a pod of this gang that the watch brought."""
        world.on_pod.append(self._record)

    def _record(self) -> None:
        self.seen += [pod for pod in self.pods(leaving=True) if pod not in self.seen[-64:]]

    # --- making

    async def start(self, watched: bool = True, policy: Obj | None = None, **spec: Any) -> None:
        """Policy and gang, and wait until it runs and its record knows where. Not `watched`: the gang alone."""
        meta = {"name": self.name, "namespace": "default"}
        policy = {"jobSelector": {"matchLabels": {"app": self.name}}, "mode": "Act", **(policy or {})}
        manifest = {"apiVersion": names.API_VERSION, "kind": "RecoveryPolicy", "metadata": meta, "spec": policy}
        await self.world.workload(
            *([manifest] if watched else ()),
            self._job_set(spec) if self.kind == JOB_SET else self._job(self.ranks, self.meta, spec),
        )
        await self.runs(120.0 if self.ranks > 8 else SOON)
        if not watched:
            return
        await self.until(lambda r: len(r.status.attempts[0].placement) == self.ranks, "its placement is known")

    @property
    def meta(self) -> Obj:
        labels = {"app": self.name}
        return {"name": self.name, "namespace": "default", "labels": labels, "annotations": self.annotations}

    def _job(self, ranks: int, meta: Obj, spec: Obj) -> Obj:
        container = {
            "name": "main",
            "image": "example.com/train:1",
            "resources": {"limits": {"nvidia.com/gpu": "8"}},
        }
        template = {
            "metadata": {"labels": {"gang": self.name}},
            "spec": {"restartPolicy": "Never", "nodeSelector": {"pool": self._pool}, "containers": [container]},
        }
        full = {"completionMode": "Indexed", "completions": ranks, "parallelism": ranks, "template": template, **spec}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": full}

    def _job_set(self, spec: Obj) -> Obj:
        child = self._job(self.ranks // 2, {}, {"backoffLimit": 0})["spec"]
        jobs = [{"name": "w", "replicas": 2, "template": {"spec": child}}]
        full = {"replicatedJobs": jobs, **spec}
        return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": self.meta, "spec": full}

    async def remove(self) -> None:
        for kind, name in (
            (KINDS[self.kind], self.name),
            (kinds.RECOVERY_POLICY, self.name),
            (kinds.JOB_RECOVERY, job_recovery_name(self.kind, self.name)),
        ):
            try:
                await self.world.admin.delete(kind, name, "default", propagation="Background")
            except errors.NotFound:
                continue

    # --- looking

    def pods(self, leaving: bool = False) -> list[Obj]:
        """Live pods; with `leaving` all that are there."""
        mine = [p for p in self.world.pods() if (p["metadata"].get("labels") or {}).get("gang") == self.name]
        return [p for p in mine if leaving or "deletionTimestamp" not in p["metadata"]]

    def places(self) -> list[str]:
        """Nodes of the running ranks."""
        return sorted(p["spec"]["nodeName"] for p in self.pods() if p["status"].get("phase") == "Running")

    def on(self, node: str) -> Obj:
        """The running rank on a node. Raises LookupError while there is none."""
        for pod in self.pods():
            if pod["spec"].get("nodeName") == node and pod["status"].get("phase") == "Running":
                return pod
        raise LookupError(f"no rank of {self.name} runs on {node}")

    async def object(self) -> Obj:
        found: Obj = await self.world.admin.get(KINDS[self.kind], self.name, "default")
        return found

    async def record(self) -> JobRecovery:
        return await self.world.admin.get(kinds.JOB_RECOVERY, job_recovery_name(self.kind, self.name), "default")

    # --- waiting

    async def until(self, check: Callable[[JobRecovery], bool], what: str, seconds: float = SOON) -> JobRecovery:
        told = [""]

        async def found() -> JobRecovery | None:
            record = await self.record()
            told[0] = f"{record.status.phase}: {record.status.message}"
            return record if check(record) else None

        seen = await eventually(found, seconds, lambda: f"{what}; the record is {told[0]}")
        assert isinstance(seen, JobRecovery)
        return seen

    async def runs(self, seconds: float = SOON) -> None:
        await eventually(
            lambda: len(self.places()) == self.ranks,
            seconds,
            lambda: f"{self.ranks} ranks run; they are on {self.places()}",
        )

    async def recovered(self, seconds: float = 60.0) -> JobRecovery:
        """Wait until the next attempt runs with all its ranks."""
        record = await self.until(lambda r: r.status.phase == "Recovered", "it runs again", seconds)
        await self.runs()
        return record
