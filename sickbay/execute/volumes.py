"""Pods that can run nowhere else: one of their volumes exists on this node alone.

A claim that is bound to a PersistentVolume with a node affinity (a local disk) ties its pod to the nodes that the
affinity names. Evicted from the only one there is, the pod waits until that node is back, and whatever needs it fails
meanwhile. So a drain looks first, and the rule says what becomes of such a pod (`nodeVolumes`). A volume that any other
node of the cluster could take, as one of a zone, binds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sickbay.api import kinds, nodeterms
from sickbay.api.core import Node, Pod
from sickbay.kube import errors
from sickbay.kube.client import Client

REMEMBERED = 4096
"""Pods whose volumes are not read again; more than all drains at one time concern."""


class Volumes:
    """What binds pods to a node, read once for each pod. Lives for one term."""

    def __init__(self, client: Client, nodes: Callable[[], Iterable[Node]]) -> None:
        self._client, self._nodes = client, nodes
        self._known: dict[str, str] = {}
        """By UID of the pod: a bound claim stays bound."""

    async def bound(self, pod: Pod, node: Node) -> str:
        """Why the pod can run only here, in words; "" when it can run elsewhere.

        What may not be read is said, and binds: a volume that nobody can see is not known to be elsewhere. Raises
        ApiError for what may pass.
        """
        claims = [v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim]
        if not claims:
            return ""
        if pod.uid not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = [await self._why(claim, pod.namespace, node) for claim in claims]
            self._known[pod.uid] = next((why for why in found if why), "")
        return self._known[pod.uid]

    async def _why(self, claim: str, namespace: str, node: Node) -> str:
        try:
            bound_to = (await self._client.get(kinds.CLAIM, claim, namespace)).get("spec", {}).get("volumeName", "")
            if not bound_to:
                return ""
            volume = await self._client.get(kinds.VOLUME, bound_to)
        except errors.NotFound:
            return ""
        except errors.Forbidden as error:
            return f"its volume of claim {claim} may not be looked at: {error.message}"
        others = (other for other in self._nodes() if other.name != node.name)
        if any(reaches(volume, other) for other in others):
            return ""
        return f"its volume {bound_to} (claim {claim}) is on this node alone"


def reaches(volume: Mapping[str, Any], node: Node) -> bool:
    """Whether a node can take a PersistentVolume (`spec.nodeAffinity.required`). True where it asks for nothing."""
    required = ((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required") or {}
    terms = required.get("nodeSelectorTerms") or []
    return not terms or any(nodeterms.fits(term, node.name, node.labels) for term in terms)
