"""Marks of other systems on a Node that tell us to keep off: it is being taken away, or maintained by somebody else.

While one stands the node is neither faulty nor does it count in the breaker, and nothing is started on it; when it
goes the node is judged by what is wrong with it then. Each mark is told in words that name it, so that `sickbay
explain` says whom to ask.
"""

from __future__ import annotations

from collections.abc import Iterator

from sickbay.api import names
from sickbay.api.core import Node

LEAVING_TAINTS = (
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "node.cloudprovider.kubernetes.io/shutdown",
    "cloud.google.com/impending-node-termination",
)
"""Systems that are taking the node away: cluster-autoscaler (candidates too: they are idle and go within minutes),
Karpenter (also under the name it had before 1.0), cloud providers."""

MAINTENANCE_TAINTS = {
    "medik8s.io/drain": "the node maintenance operator",
    "remediation.medik8s.io/self-node-remediation": "self node remediation",
    "cloud.google.com/maintenance-window-started": "GKE",
    "alibabacloud.com/node-needrepair": "ACK",
    "alibabacloud.com/node-anomaly": "ACS",
    "nvsentinel.nvidia.com/external-remediation": "an owner that NVSentinel has handed it to",
}

MAINTENANCE_LABELS: dict[str, tuple[str, frozenset[str]]] = {
    "nvidia.com/gpu-driver-upgrade-state": (
        "the GPU operator's driver upgrade",
        frozenset(
            {
                "cordon-required",
                "wait-for-jobs-required",
                "pod-deletion-required",
                "drain-required",
                "node-maintenance-required",
                "pod-restart-required",
                "post-maintenance-required",
                "validation-required",
                "uncordon-required",
            }
        ),
    ),
    "cloud.google.com/active-node-maintenance": ("GKE", frozenset()),
    "alibabacloud.com/node-needrepair": ("ACK", frozenset({"inquiring", "approved"})),
    "alibabacloud.com/node-anomaly": ("ACS", frozenset({"true"})),
    "dgxc.nvidia.com/nvsentinel-state": (
        "NVSentinel",
        frozenset({"quarantined", "draining", "drain-succeeded", "remediating"}),
    ),
    "sagemaker.amazonaws.com/node-health-status": (
        "HyperPod",
        frozenset({"unschedulablependingreplacement", "unschedulablependingreboot"}),
    ),
}
"""By label: whose it is, and its values (in lower case) that mean that work is under way; none = all but false."""

MAINTENANCE_ANNOTATIONS = {
    "weave.works/kured-reboot-in-progress": "kured",
    "cluster.x-k8s.io/paused": "Cluster API",
    "cluster.x-k8s.io/remediate-machine": "Cluster API",
    "cluster.x-k8s.io/delete-machine": "Cluster API",
    "cluster.x-k8s.io/skip-remediation": "Cluster API",
    "node.machine.sapcloud.io/preserve": "Gardener",
    "draino.planet.com/conditions": "draino",
    "quarantineHealthEvent": "NVSentinel",
}
"""Annotations whose presence says that somebody is at work on the node, or has asked others to keep off."""
NOT_NOW = ("false", "[]", "when-failed")
"""Values that say that nothing is under way: Gardener keeps a node with `when-failed` only once it has failed."""

MAINTENANCE_CONDITIONS = {
    "SoperatorChecksNodeMaintenance": "Soperator",
    "NebiusMaintenanceScheduled": "Nebius",
    "SlurmNodeReboot": "Slurm",
    "SlurmMaintenance": "Slurm (a reservation with MAINT)",
    "DrainScheduled": "draino",
}
"""Conditions that are True while it is maintained, beside those of KEP-5683."""

UNDER_WAY = (names.DRAIN_IN_PROGRESS, names.MAINTENANCE_IN_PROGRESS)
OURS = "Sickbay"
"""Reason of the KEP-5683 conditions that we set ourselves."""


def leaving_by(node: Node) -> str:
    """Who is taking this node away, or maintains it, in words; "" when nobody does. Nothing is started on it then."""
    return next(_marks(node), "")


def _marks(node: Node) -> Iterator[str]:
    if node.deleting:
        yield "the node is being deleted"
    for taint in node.taints:
        if taint.key in LEAVING_TAINTS:
            yield f"another system is taking the node away (taint {taint.key})"
        elif taint.key in MAINTENANCE_TAINTS:
            yield f"{MAINTENANCE_TAINTS[taint.key]} is at work on the node (taint {taint.key})"
    for key, (whose, words) in MAINTENANCE_LABELS.items():
        value = node.labels.get(key, "").lower()
        if names.INQUIRY in node.annotations and value in ("inquiring", "approved", "denied"):
            continue  # a question of ours may stand under that very key
        if value in words or (not words and value not in ("", "false")):
            yield f"{whose} is at work on the node (label {key}={node.labels[key]})"
    for key, whose in MAINTENANCE_ANNOTATIONS.items():
        if node.annotations.get(key, "false").lower() not in NOT_NOW:
            yield f"{whose} is at work on the node, or asks to keep off (annotation {key})"
    for condition in node.conditions:
        if condition.status != "True":
            continue
        if condition.type in UNDER_WAY and condition.reason != OURS:
            yield f"another system maintains the node (condition {condition.type}, reason {condition.reason or '-'})"
        elif condition.type in MAINTENANCE_CONDITIONS:
            yield f"{MAINTENANCE_CONDITIONS[condition.type]} maintains the node (condition {condition.type})"
