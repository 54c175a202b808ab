"""Manifests for these tests. What goes into a pod's spec is given by name."""

from __future__ import annotations

from typing import Any

from sickbay.apiserver.errors import Obj
from tests.controllers.cluster import Cluster

STOP_TAKES = "sim.sickbay.dev/stop-takes"


def pod(
    cluster: Cluster,
    name: str,
    gpus: int = 0,
    labels: dict[str, str] | None = None,
    stop_takes: str = "",
    **spec: Any,
) -> Obj:
    """A pod that may run on the test's own nodes."""
    made = template(cluster, gpus, labels, stop_takes, **{"restartPolicy": "Never", **spec})
    return {**made, "metadata": {**made["metadata"], "name": name}}


def template(
    cluster: Cluster, gpus: int = 0, labels: dict[str, str] | None = None, stop_takes: str = "", **spec: Any
) -> Obj:
    container: Obj = {"name": "main", "image": "example.com/x:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    selector = {"pool": cluster.pool, **spec.pop("nodeSelector", {})}
    meta: Obj = {"labels": labels or {}}
    if stop_takes:
        meta["annotations"] = {STOP_TAKES: stop_takes}
    return {"metadata": meta, "spec": {"nodeSelector": selector, "containers": [container], **spec}}


def job(cluster: Cluster, name: str = "j", gpus: int = 0, stop_takes: str = "", **spec: Any) -> Obj:
    inner = template(cluster, gpus, None, stop_takes, restartPolicy="Never")
    return {"metadata": {"name": name}, "spec": {**spec, "template": inner}}


def replicated(cluster: Cluster, name: str, replicas: int | None = None, stop_takes: str = "", **more: Any) -> Obj:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet (without replicas) whose pods are labelled `app: <name>`."""
    labels = {"app": name}
    inner = template(cluster, 0, labels, stop_takes, **more.pop("pod", {}))
    spec: Obj = {"selector": {"matchLabels": labels}, "template": inner, **more}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"metadata": {"name": name}, "spec": spec}


def anti_affinity(label: str, topology: str = "kubernetes.io/hostname") -> Obj:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(label, topology)]}}


def affinity(label: str, topology: str = "kubernetes.io/hostname") -> Obj:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(label, topology)]}}


def _term(label: str, topology: str) -> Obj:
    return {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": topology}
