"""What a boot leaves behind: pods that the kubelet refused before the device plug-in was back.

They are Failed for good. Their owners make others in their place, some only when the dead ones are gone, and the dead
ones stay in every list until somebody removes them. That is done once, when the node offers all its devices again, and
only for owners that make new pods of their own; pods of jobs are the evidence of the job loop, and left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from sickbay.api import kinds
from sickbay.api.core import Pod
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import Step, StepState
from sickbay.execute.progress import Look, Told
from sickbay.execute.proof import NEW_BOOT
from sickbay.kube import errors
from sickbay.kube.client import Client

log = structlog.get_logger(__name__)

REFUSED = "UnexpectedAdmissionError"
"""status.reason of a pod for which the kubelet's device manager had no device (kubernetes#125579)."""
REPLACE = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})
"""Controllers whose pods are services, and are made anew. A DaemonSet removes its own dead pods."""


def left_behind(repair: NodeRepair, pods: Iterable[Pod]) -> list[Pod]:
    """Dead pods of services on the node, after a boot of ours. Pure."""
    if not any(a.action in NEW_BOOT and a.state == StepState.DONE for a in repair.status.step(Step.REPAIR).attempts):
        return []
    return [pod for pod in pods if _dead(pod) and pod.metadata.controller and pod.metadata.controller.kind in REPLACE]


def _dead(pod: Pod) -> bool:
    return pod.phase == "Failed" and not pod.deleting and pod.status.reason.startswith(REFUSED)


async def remove(client: Client, look: Look, pods: list[Pod]) -> tuple[Told, ...]:
    """Delete them, each only as the pod that was seen. One that cannot be deleted stays: tidying keeps no node out."""
    gone = []
    for pod in pods:
        await look.permit()
        look.check()
        try:
            await client.delete(kinds.POD, pod.name, pod.namespace, pod.uid)
        except errors.ApiError as error:
            log.info("dead pod not removed", pod=f"{pod.namespace}/{pod.name}", error=str(error))
            continue
        gone.append(f"{pod.namespace}/{pod.name}")
    if not gone:
        return ()
    more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
    text = f"removed pods that were refused before the device plug-in was back: {', '.join(gone[:3])}{more}"
    return (Told("DeadPodsRemoved", text, warning=False),)
