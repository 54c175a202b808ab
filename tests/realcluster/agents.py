"""The DaemonSet under which agents run, and how their identity is had from it."""

from __future__ import annotations

from typing import Any

from tests.support.controlplane import AGENT, NAMESPACE


def daemon_set() -> dict[str, Any]:
    """A pod of the agent's service account on every node. Hollow kubelets run it; what it does, tests do."""
    labels = {"app": AGENT}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": AGENT, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": AGENT,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "agent", "image": "sickbay"}],
                },
            },
        },
    }


def pod_on(node: str, pods: list[dict[str, Any]]) -> str:
    """Name of the agent's pod on a node. Raises LookupError while there is none."""
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if labels.get("app") == AGENT and pod["spec"].get("nodeName") == node:
            return str(pod["metadata"]["name"])
    raise LookupError(f"no agent pod on {node}")
