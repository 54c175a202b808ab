"""Other remediators that may act on the nodes of a pool: two that do not know of each other undo each other's work.

What they leave on nodes is read from the nodes; their own objects tell the rest. Nothing is switched off: it is said on
the pool (condition OtherRemediators) and by `sickbay status`, with what to do about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from sickbay.api.core import Node
from sickbay.api.meta import LabelSelector

PLATFORM_LABELS = {
    "kubernetes.azure.com/agentpool": "AKS node auto-repair (always on: it reboots and reimages NotReady nodes)",
    "cloud.google.com/gke-nodepool": "GKE node auto-repair (unless management.autoRepair of the node pool is off)",
    "eks.amazonaws.com/nodegroup": "EKS node auto repair (where nodeRepairConfig of the node group is on)",
    "karpenter.sh/nodepool": "Karpenter node repair (where its feature gate NodeRepair is on)",
    "alibabacloud.com/nodepool-id": "ACK node auto repair (where management.auto_repair of the node pool is on)",
    "dgxc.nvidia.com/nvsentinel-state": "NVSentinel",
    "sagemaker.amazonaws.com/node-health-status": "HyperPod automatic node recovery",
}
"""Labels by which a node belongs to a platform that may repair it."""
MACHINE = "cluster.x-k8s.io/cluster-name"
"""Annotation by which a node belongs to a cluster of Cluster API."""
KURED = "kured"
NVSENTINEL = "nvsentinel"
"""Parts of DaemonSet names or images by which these are known."""


def on_nodes(nodes: Iterable[Node]) -> Counter[str]:
    """Remediators that the nodes themselves tell of, with how many of the nodes each has."""
    found: Counter[str] = Counter()
    for node in nodes:
        found.update(text for label, text in PLATFORM_LABELS.items() if node.labels.get(label))
        if "weave.works/kured-most-recent-reboot-needed" in node.annotations:
            found["kured"] += 1
    return found


def by_objects(
    nodes: Iterable[Node],
    node_checks: Iterable[Mapping[str, Any]] = (),
    machine_checks: Iterable[Mapping[str, Any]] = (),
    daemon_sets: Iterable[Mapping[str, Any]] = (),
) -> Counter[str]:
    """Remediators that their own objects tell of: health checks of medik8s and Cluster API, DaemonSets of others."""
    known, found = list(nodes), Counter[str]()
    for check in node_checks:
        selector = msgspec.convert((check.get("spec") or {}).get("selector") or {}, LabelSelector)
        count = sum(1 for node in known if not selector.empty and selector.matches(node.labels))
        found[f"NodeHealthCheck {check['metadata']['name']}"] += count
    for check in machine_checks:
        cluster = (check.get("spec") or {}).get("clusterName", "")
        meta = check["metadata"]
        count = sum(1 for node in known if cluster and node.annotations.get(MACHINE) == cluster)
        found[f"MachineHealthCheck {meta.get('namespace', '')}/{meta['name']}"] += count
    for daemon_set in daemon_sets:
        name = _named(daemon_set)
        if name:
            found[name] += len(known)
    return +found


def _named(daemon_set: Mapping[str, Any]) -> str:
    meta = daemon_set["metadata"]
    pod = ((daemon_set.get("spec") or {}).get("template") or {}).get("spec") or {}
    words = [meta["name"], meta.get("namespace", ""), *(c.get("image", "") for c in pod.get("containers") or ())]
    text = " ".join(words).lower()
    whose = "kured" if KURED in text else "NVSentinel" if NVSENTINEL in text else ""
    return f"{whose} (DaemonSet {meta.get('namespace', '')}/{meta['name']})" if whose else ""


def message(found: Mapping[str, int]) -> str:
    """For people; "" when there is none."""
    named = [f"{name} on {count} nodes" for name, count in sorted(found.items())]
    return "; ".join(named)
