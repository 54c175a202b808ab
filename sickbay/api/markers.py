"""Marks of other systems on a Node that tell us to keep off."""

from __future__ import annotations

from sickbay.api.core import Node

LEAVING_TAINTS = (
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "node.cloudprovider.kubernetes.io/shutdown",
)
"""Taints of systems that are taking the node away (cluster-autoscaler, Karpenter, cloud provider)."""


def leaving_by(node: Node) -> str:
    """Who is taking this node away, in words; "" when nobody is. Nothing is started on such a node."""
    if node.deleting:
        return "the node is being deleted"
    taint = next((key for key in LEAVING_TAINTS if node.taint(key) is not None), None)
    return f"another system is taking the node away (taint {taint})" if taint is not None else ""
