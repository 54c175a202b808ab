"""Two pools: one whose drain a training platform approves after its checkpoint, one that repairs itself."""

from __future__ import annotations

from typing import Any

from sickbay.api import names
from sickbay.sim.fleet import PoolSpec

POOLS = (
    PoolSpec("train", nodes=8, gpus=8, zone="a", rack=4, boot_seconds=120),
    PoolSpec("infer", nodes=4, gpus=4, zone="b", boot_seconds=120),
)

GPU = "nvidia.com/gpu"


def objects() -> list[dict[str, Any]]:
    """What a platform team would apply."""
    return [
        _rule("gated", [{"step": "Quarantine"}, _gated_drain(), {"step": "Repair"}, {"step": "Unquarantine"}]),
        _rule("automatic", [{"step": s} for s in ("Quarantine", "Drain", "Repair", "Unquarantine")]),
        _pool("train", "gated", {"name": "agent"}),
        _pool("infer", "automatic", {"name": "fake"}),
        _job(),
        _deployment(),
        _budget(),
    ]


def _own(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _rule(name: str, procedure: list[dict[str, Any]]) -> dict[str, Any]:
    return _own("RepairRule", name, {"rules": [{"name": "every-fault", "procedure": procedure}]})


def _gated_drain() -> dict[str, Any]:
    return {"step": "Drain", "approval": {"by": "People", "timeout": "1h", "onTimeout": "Escalate"}, "timeout": "10m"}


def _pool(name: str, rule: str, provider: dict[str, Any]) -> dict[str, Any]:
    spec = {
        "nodeSelector": {"matchLabels": {"pool": name}},
        "mode": "Act",
        "rule": rule,
        "maxParallelRepairs": 1,
        "maxUnavailable": 2,
        "provider": provider,
    }
    return _own("RepairPool", name, spec)


def _template(name: str, pool: str, gpus: int) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "demo",
        "resources": {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}},
    }
    spec = {
        "nodeSelector": {"pool": pool},
        "terminationGracePeriodSeconds": 15,
        "restartPolicy": "Never" if pool == "train" else "Always",
        "containers": [container],
    }
    return {"metadata": {"labels": {"app": name}}, "spec": spec}


def _job() -> dict[str, Any]:
    spec = {
        "completionMode": "Indexed",
        "completions": 6,
        "parallelism": 6,
        "backoffLimit": 100,
        "template": _template("llm", "train", 8),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "llm", "namespace": "default"}, "spec": spec}


def _deployment() -> dict[str, Any]:
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "chat"}},
        "template": _template("chat", "infer", 4),
    }
    meta = {"name": "chat", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def _budget() -> dict[str, Any]:
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "chat"}}}
    meta = {"name": "chat", "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}
