"""The manifests of a world: fault type, rule and pool under its name, and workloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sickbay.api import names

Obj = dict[str, Any]

STEPS = ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")
GATE: Obj = {"by": "People", "timeout": "10m", "onTimeout": "Escalate"}


def fault_name(world: str) -> str:
    return f"test.{world}"


def condition_type(world: str) -> str:
    """The condition that carries the fault; no other world's nodes match it."""
    return names.condition_type(fault_name(world))


def fault_type(world: str, spec: Obj) -> Obj:
    """A fault of the node that a reboot is said to cure; soak and ceilings are short."""
    usual = {
        "class": "Node",
        "severity": "Critical",
        "scope": "Node",
        "match": [{"condition": {"type": condition_type(world), "status": "True"}}],
        "remedy": [{"action": "RebootNode", "attempts": 1, "timeout": "60s"}],
        "clearsBy": "condition",
        "validation": {"ceiling": "60s", "soak": "1s"},
    }
    return own("FaultType", fault_name(world), usual | spec)


def rule(world: str, steps: Sequence[str | Obj]) -> Obj:
    """A rule for all faults. A step is its name, or its whole entry."""
    procedure = [{"step": step} if isinstance(step, str) else step for step in steps or STEPS]
    return own("RepairRule", world, {"rules": [{"name": "all", "faults": {}, "procedure": procedure}]})


def gated(step: str, **gate: Any) -> Obj:
    """A step behind a gate by people."""
    return {"step": step, "approval": GATE | gate}


def pool(world: str, spec: Obj) -> Obj:
    """A pool that acts, by the fake cloud, without limits that matter for a few nodes."""
    usual = {
        "nodeSelector": {"matchLabels": {"pool": world}},
        "mode": "Act",
        "rule": world,
        "maxUnavailable": "100%",
        "storm": {"nodes": 0},
        "provider": {"name": "fake"},
    }
    return own("RepairPool", world, usual | spec)


def deployment(name: str, node_pool: str, replicas: int, annotations: dict[str, str] | None = None) -> Obj:
    """A workload that Kubernetes' own controllers and scheduler keep on the nodes of a pool."""
    labels = {"app": name}
    grace = {"terminationGracePeriodSeconds": 60}
    containers = [{"name": "main", "image": "example.com/web:1"}]
    pod = {"nodeSelector": {"pool": node_pool}, "containers": containers, **grace}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": annotations or {}}, "spec": pod},
        },
    }


def budget(name: str, **spec: Any) -> Obj:
    """A PodDisruptionBudget for the workload of that name."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **spec},
    }


def own(kind: str, name: str, spec: Obj) -> Obj:
    """An object of ours."""
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
