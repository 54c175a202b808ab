"""Fencing: a node that is proven to be switched off is said to be out of service, so that its pods can run elsewhere.

A kubelet that has fallen silent may have lost its network only, and its pods run on: deleting them by force would run
them twice, and attach their volumes to two machines. So force is used only where the rule allows it and the back-end,
which reads the power state past the kubelet, says that the machine is off. Then the node gets the taint
`node.kubernetes.io/out-of-service`, with which Kubernetes itself takes its pods away and detaches their volumes
(KEP-2268).

The taint stands only as long as the proof: it goes as soon as the machine is not off any more, when the drain is over,
and after an hour in any case. The annotation beside it, in the same write, says whose it is; one that somebody else has
set is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from sickbay.api import names
from sickbay.api.core import Node, Pod, Taint
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import FenceMark, read_fence
from sickbay.clock import parse_time, rfc3339
from sickbay.execute.backends import Backends
from sickbay.execute.podfilter import unreachable
from sickbay.execute.progress import Look, Told
from sickbay.kube.client import Client
from sickbay.kube.nodes import Op, annotation_ops, patch_node, taint_ops
from sickbay.providers.base import Power, Target

TAINT = Taint(key=names.OUT_OF_SERVICE, value="nodeshutdown", effect="NoExecute")
"""Value and effect as Kubernetes' documentation has them; the controllers look at the key."""
EXPIRES = timedelta(hours=1)
"""The pods of a node are gone within a minute (podgc looks every 20 s), volumes within a few more."""


class Fence:
    """Lives for one term."""

    def __init__(self, client: Client, backends: Backends, observe: Callable[[Node], None]) -> None:
        self._client, self._backends, self._observe = client, backends, observe

    async def stands(self, look: Look, allowed: bool) -> tuple[Node, Told | None]:
        """The node, with the taint where it is due and without it where it is not; and what people should hear."""
        node = look.node
        mark = read_fence(node)
        if not allowed or not unreachable(node):
            return await self.lift(look), None
        if await self._power(look) is not Power.OFF:
            return await self.lift(look), None
        if any(taint.key == TAINT.key for taint in node.taints):
            return node, None
        node = (await look.permit()).node
        until = rfc3339(look.now + EXPIRES)
        mark = FenceMark(repair=look.repair.metadata.name, uid=look.repair.metadata.uid, until=until)
        ops = annotation_ops(node, {names.OUT_OF_SERVICE_MARK: msgspec.json.encode(mark).decode()})
        look.check()
        node = await patch_node(self._client, node, ops + taint_ops(node, add=[TAINT]))
        self._observe(node)
        return node, Told("NodeFenced", "the machine is switched off: its pods are taken away by force")

    async def lift(self, look: Look) -> Node:
        """Take our taint away."""
        if read_fence(look.node) is None:
            return look.node
        look.check()
        node = await patch_node(self._client, look.node, lift_ops(look.node))
        self._observe(node)
        return node

    async def _power(self, look: Look) -> Power:
        node = look.repair.spec.node
        return await self._backends.power(look.repair, Target(node.name, node.uid, node.provider_id, node.boot_id))


def lift_ops(node: Node, repair: NodeRepair | None = None) -> list[Op]:
    """Operations that take the taint away, where it is ours (`repair`: only where it is this one's)."""
    mark = read_fence(node)
    if mark is None or (repair is not None and mark.uid != repair.metadata.uid):
        return []
    return annotation_ops(node, {names.OUT_OF_SERVICE_MARK: None}) + taint_ops(node, remove=[(TAINT.key, TAINT.effect)])


def outlived(node: Node, now: datetime) -> bool:
    """True when our taint stands there although the node is back, or for longer than it may."""
    mark = read_fence(node)
    if mark is None:
        return False
    ready = node.condition("Ready")
    return (ready is not None and ready.status == "True") or not mark.until or now >= parse_time(mark.until)


def taken_by_force(pod: Pod, node: Node) -> bool:
    """True for a pod that Kubernetes deletes for the taint on this node: evicting it as well would change nothing."""
    return any(taint.key == TAINT.key for taint in node.taints) and not pod.tolerates(TAINT)
