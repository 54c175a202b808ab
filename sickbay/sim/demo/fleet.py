"""One pool of training nodes with spares, a rule with a gate for the worst, and what runs there.

llm    a JobSet of four ranks over four nodes; a RecoveryPolicy lets the job loop act on it
eval   a short job of one rank, on a node whose GPU will soon ask for a reset
tune   a job of two ranks that is submitted while that node is on its way out
"""

from __future__ import annotations

from typing import Any

from sickbay.api import names
from sickbay.sim.fleet import PoolSpec

POOLS = (PoolSpec("train", nodes=9, gpus=8, zone="a", rack=3, boot_seconds=120),)
RANKS, EVAL_SECONDS = 4, 210
GPU = "nvidia.com/gpu"


def objects() -> list[dict[str, Any]]:
    """What a platform team would apply."""
    gate = {"by": "People", "timeout": "1h", "onTimeout": "Escalate"}
    severe = {"name": "severe", "faults": {"severities": ["Critical"]}, "procedure": _steps(gate)}
    rules = [severe, {"name": "the-rest", "procedure": _steps(None)}]
    return [_own("RepairRule", "training", {"rules": rules}), _pool(), _policy(), _llm(), _job("eval", 1, EVAL_SECONDS)]


def tune() -> dict[str, Any]:
    return _job("tune", 2, 3600)


def _own(kind: str, name: str, spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


def _steps(gate: dict[str, Any] | None) -> list[dict[str, Any]]:
    drain = {"step": "Drain", "timeout": "10m"} | ({"approval": gate} if gate else {})
    return [{"step": "Quarantine"}, drain, {"step": "Repair"}, {"step": "Unquarantine"}]


def _pool() -> dict[str, Any]:
    spec = {
        "nodeSelector": {"matchLabels": {"pool": "train"}},
        "mode": "Act",
        "rule": "training",
        "maxParallelRepairs": 2,
        "maxUnavailable": 3,
        "provider": {"name": "agent"},
    }
    return _own("RepairPool", "train", spec)


def _policy() -> dict[str, Any]:
    spec = {"jobSelector": {"matchLabels": {"app": "llm"}}, "mode": "Act"}
    return _own("RecoveryPolicy", "training", spec, namespace="default")


def _template(ranks: int) -> dict[str, Any]:
    container = {"name": "main", "image": "demo", "resources": {"limits": {GPU: "8"}}}
    spec = {
        "nodeSelector": {"pool": "train"},
        "terminationGracePeriodSeconds": 15,
        "restartPolicy": "Never",
        "containers": [container],
    }
    return {"completions": ranks, "parallelism": ranks, "backoffLimit": 0, "template": {"spec": spec}}


def _llm() -> dict[str, Any]:
    jobs = [{"name": "w", "replicas": 2, "template": {"spec": _template(RANKS // 2)}}]
    meta = {"name": "llm", "namespace": "default", "labels": {"app": "llm"}}
    spec = {"failurePolicy": {"maxRestarts": 10}, "replicatedJobs": jobs}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec}


def _job(name: str, ranks: int, seconds: int) -> dict[str, Any]:
    meta = {
        "name": name,
        "namespace": "default",
        "labels": {"app": name},
        "annotations": {"sim.sickbay.dev/run-for": f"{seconds}s"},
    }
    spec = {"completionMode": "Indexed", **_template(ranks)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
