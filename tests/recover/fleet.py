"""A world with many jobs and one kind of trouble, in which the other loop is a stand-in that is slow at random.

The stand-in does what decide and execute do to a suspect, as far as a scheduler sees it: it cordons the node some time
after the suspicion was raised, and gives it back, with a NodeRepair that has ended well, some time after that. Beside
it the scheduler's own cache lags behind the API server at random.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sickbay.apiserver.writes import Write
from sickbay.clock import Randomness, rfc3339
from sickbay.sim.components import Settings
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import JOB_SETS, JOBS, NODES, PODS, RECOVERIES, REPAIRS, Hand
from sickbay.sim.history import CONTROLLER
from sickbay.sim.loop import VirtualLoop
from sickbay.sim.parts.scheduler import Scheduler
from sickbay.sim.world import World

POLICY = "recoverypolicies.sickbay.dev"
WIDE = {"hardware": 100000, "transient": 100000, "unknown": 100000}


def container(gpus: int = 8) -> dict[str, Any]:
    return {"name": "main", "image": "example.com/train:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}


def indexed_job(name: str, ranks: int, gpus: int = 8, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [container(gpus)]}}
    full = {"completionMode": "Indexed", "completions": ranks, "parallelism": ranks, "template": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": full}


def job_set(name: str, jobs: int, ranks: int, restarts: int | None = None, gpus: int = 8) -> dict[str, Any]:
    child = indexed_job("", ranks, gpus, backoffLimit=0)["spec"]
    spec: dict[str, Any] = {"replicatedJobs": [{"name": "w", "replicas": jobs, "template": {"spec": child}}]}
    if restarts is not None:
        spec["failurePolicy"] = {"maxRestarts": restarts}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec}


def policy(**spec: Any) -> dict[str, Any]:
    meta = {"name": "training", "namespace": "default"}
    full = {"jobSelector": {}, "mode": "Act", **spec}
    return {"apiVersion": "sickbay.dev/v1alpha1", "kind": "RecoveryPolicy", "metadata": meta, "spec": full}


@dataclass
class Landing:
    """A pod that was given a node, or began to run on it, which its job's record named as a suspect before the pod was
    made."""

    pod: str
    node: str
    at: float
    runs: bool


@dataclass
class Fleet:
    """See the module. `slow` and `lag`: the longest delays of the other loop and of the scheduler, in seconds."""

    world: World
    slow: float
    lag: float
    randomness: Randomness
    failures: int = 0
    landings: list[Landing] = field(default_factory=list)
    relandings: float = 0.0
    """What the job loop itself has counted."""
    left: dict[str, int] = field(default_factory=dict)
    """Running ranks of each job at the end."""
    _named: dict[tuple[str, str], float] = field(default_factory=dict)
    _made: dict[str, float] = field(default_factory=dict)
    _repairs: int = 0

    def watch(self) -> None:
        self.world.store.after_write(self._note)
        scheduler = next(part for part in self.world.parts if isinstance(part, Scheduler))
        scheduler.behind = lambda: self.randomness.uniform(0, self.lag)

    def _note(self, write: Write) -> None:
        if write.resource == RECOVERIES and write.new is not None and write.old is not write.new:
            self._record_written(write.new)
        if write.resource == PODS and write.new is not None:
            self._pod_written(write.old, write.new)

    def _record_written(self, record: dict[str, Any]) -> None:
        job = f"{record['spec']['job']['kind']}/{record['spec']['job']['name']}"
        suspects = {s["node"] for s in (record.get("status") or {}).get("suspects") or ()}
        for node in suspects:
            if (job, node) not in self._named:
                self._named[job, node] = self.world.loop.time()
                self.world.loop.call_later(self.randomness.uniform(0, self.slow), self._isolate, node)
        for known in [key for key in self._named if key[0] == job and key[1] not in suspects]:
            del self._named[known]

    def _pod_written(self, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        uid, now = new["metadata"]["uid"], self.world.loop.time()
        self._made.setdefault(uid, now)
        bound = new["spec"].get("nodeName", "") != ((old or {}).get("spec") or {}).get("nodeName", "")
        began = (new.get("status") or {}).get("phase") == "Running" != ((old or {}).get("status") or {}).get("phase")
        labels = new["metadata"].get("labels") or {}
        set_name = labels.get("jobset.sigs.k8s.io/jobset-name")
        job = f"JobSet/{set_name}" if set_name else f"Job/{labels.get('job-name')}"
        node = new["spec"].get("nodeName", "")
        named = self._named.get((job, node))
        if (bound or began) and named is not None and self._made[uid] > named:
            self.landings.append(Landing(new["metadata"]["name"], node, now, began))

    def _isolate(self, node: str) -> None:
        self._hand.merge(NODES, node, {"spec": {"unschedulable": True}})
        self.world.loop.call_later(self.randomness.uniform(20, 60), self._return, node)

    def _return(self, node: str) -> None:
        """Repaired: the fault is gone, the node back, and a record says so."""
        self.heal(node)
        self._hand.merge(NODES, node, {"spec": {"unschedulable": None}})
        self._repairs += 1
        name, uid = f"done-{self._repairs}", self.world.node(node)["metadata"]["uid"]
        spec = {"node": {"name": node, "uid": uid}}
        self._hand.create(REPAIRS, {"metadata": {"name": name}, "spec": spec})
        now = rfc3339(self.world.clock.now())
        status = {"phase": "Succeeded", "outcome": "Repaired", "endedAt": now}
        self._hand.merge(REPAIRS, name, {"status": status}, subresource="status")

    @property
    def _hand(self) -> Hand:
        return Hand(self.world.store, CONTROLLER, "sickbay-execute")

    # --- trouble

    def heal(self, node: str) -> None:
        condition = {"type": "NvidiaXID79Error", "status": "False", "reason": "Fine", "message": ""}
        self.world.set_condition(node, "detector", condition)

    def break_gpu(self, pod: dict[str, Any]) -> None:
        """The rank dies, and its node shows why a little earlier or later."""
        node = pod["spec"]["nodeName"]
        self.failures += 1
        condition = {"type": "NvidiaXID79Error", "status": "True", "reason": "Xid79", "message": "fell off the bus"}
        first, second = sorted((0.0, self.randomness.uniform(0, 4)))
        loop = self.world.loop
        fault, death = (first, second) if self.randomness.chance(0.5) else (second, first)
        loop.call_later(fault, self.world.set_condition, node, "detector", condition)
        loop.call_later(death, self._kill, pod)

    def _kill(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        found = self.world.store.find(PODS, meta["name"], meta["namespace"])
        if found is not None and found["metadata"]["uid"] == meta["uid"] and found["status"]["phase"] == "Running":
            self.world.kubelet.exit_pod(found, 134)

    def recovery(self, job: str) -> dict[str, Any]:
        for record in self.world.store.list(RECOVERIES, "default"):
            if record["spec"]["job"]["name"] == job:
                return record.get("status") or {}
        return {}

    def running(self, job: str) -> list[dict[str, Any]]:
        pods = self.world.store.list(PODS, "default")
        mine = [p for p in pods if job in (p["metadata"]["labels"].get("jobset.sigs.k8s.io/jobset-name"), _job(p))]
        return [p for p in mine if p["status"]["phase"] == "Running" and not p["metadata"].get("deletionTimestamp")]

    async def fail_again_and_again(
        self, jobs: dict[str, int], failures: int, pause: float = 16.0, patience: float = 600.0
    ) -> None:
        """Break a GPU under one job after the other, each when its whole gang runs, until so many have been broken.

        Not more than four within a minute: five at once would be one shared cause, and rightly nobody's fault.
        """
        broken_at, waiting = self.world.loop.time(), list(jobs)
        while self.failures < failures and self.world.loop.time() - broken_at < patience:
            ready = [job for job in waiting if self._is_well(job, jobs[job])]
            if ready:
                job = ready[0]
                self.break_gpu(self.running(job)[self.randomness.below(jobs[job])])
                broken_at, waiting = self.world.loop.time(), [*(j for j in waiting if j != job), job]
            await self.world.clock.sleep(pause)

    def _is_well(self, job: str, ranks: int) -> bool:
        phase = self.recovery(job).get("phase")
        return phase in ("Running", "Recovered") and len(self.running(job)) == ranks


def _job(pod: dict[str, Any]) -> str:
    labels = pod["metadata"]["labels"]
    return "" if "jobset.sigs.k8s.io/jobset-name" in labels else labels.get("job-name", "")


def fleet(
    loop: VirtualLoop, nodes: int, *, seed: int = 0, fence: bool = True, slow: float = 20, lag: float = 10
) -> Fleet:
    """A fleet whose job loop is the real one; everything else is simulated."""
    world = World(loop, seed, Settings(options={"recover": {"fence": fence}}))
    world.fleet.add_pool(PoolSpec("train", nodes=nodes))
    made = Fleet(world, slow, lag, Randomness(seed))
    made.watch()
    return made


__all__ = ["JOBS", "JOB_SETS", "WIDE", "Fleet", "fleet", "indexed_job", "job_set", "policy"]
