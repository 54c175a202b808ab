"""Carry decide's grant to the node: the annotation `sickbay.dev/isolate`, which the agent follows.

Level-based: what the open repairs of a node grant is compared with what stands on it, after every change of either and
now and then. While a quarantined node is validated its cards are given back, because what is not offered cannot be
checked; a validation that fails has them taken away again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sickbay.api import holds, kinds, names
from sickbay.api.core import Node
from sickbay.api.isolation import read_isolation, write_isolation
from sickbay.api.markers import leaving_by
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import marked_by
from sickbay.api.words import HoldLevel, Phase, Step, StepState
from sickbay.clock import Clock
from sickbay.execute.progress import Told
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer
from sickbay.kube.nodes import annotation_ops, patch_node

FROZEN_AGAIN = 30.0
"""Seconds until a change is tried again that a Hold keeps back or the server could not be asked about."""


def wanted(node: Node, repairs: Iterable[NodeRepair]) -> frozenset[str]:
    """The cards that shall be isolated now: the union over the open repairs of this very node."""
    found: set[str] = set()
    for repair in repairs:
        if repair.spec.node.uid != node.uid or repair.ended or repair.status.phase == Phase.CANCELLING:
            continue
        if repair.metadata.deletion_timestamp is None and not _validated_now(node, repair):
            found |= set(repair.spec.plan.isolate)
    return frozenset(found)


def _validated_now(node: Node, repair: NodeRepair) -> bool:
    running = repair.status.step(Step.VALIDATE).state == StepState.RUNNING
    return running and node.unschedulable and marked_by(node, repair.metadata.uid)


class Isolation:
    """One term's hand on the annotation. `check` raises when we do not lead."""

    def __init__(
        self, client: Client, clock: Clock, nodes: Informer[Node], repairs: Informer[NodeRepair],
        pools: Callable[[Node], list[str]], check: Callable[[], None], tell: Callable[[Node, Told], None],
    ) -> None:  # fmt: skip
        self._client, self._clock = client, clock
        self._nodes, self._repairs, self._pools = nodes, repairs, pools
        self._check, self._tell = check, tell

    def differs(self, name: str) -> bool:
        """Whether the node says something else than its repairs grant."""
        node = self._nodes.get(name)
        return node is not None and wanted(node, self._of(name)) != read_isolation(node)

    async def look(self, name: str) -> float | None:
        """Bring one node in line. Returns the seconds until the next try; None when all is well. Raises ApiError."""
        if not self.differs(name):
            return None
        node = await self._client.get(kinds.NODE, name)
        self._nodes.observe_write(node)
        goal, stands = wanted(node, await self._afresh(name)), read_isolation(node)
        if goal - stands and (leaving_by(node) or node.labels.get(names.EXCLUDE_FROM_REMEDIATION) == "true"):
            goal &= stands  # nothing is begun on a node that is somebody else's to handle
        if goal == stands:
            return FROZEN_AGAIN
        if await self._frozen(node):
            return FROZEN_AGAIN
        self._check()
        ops = annotation_ops(node, {names.ISOLATE: write_isolation(goal)})
        self._nodes.observe_write(await patch_node(self._client, node, ops))
        self._say(node, goal, stands)
        return None

    def _say(self, node: Node, goal: frozenset[str], stands: frozenset[str]) -> None:
        for reason, devices in (("DevicesIsolated", goal - stands), ("DevicesReturned", stands - goal)):
            if devices:
                self._tell(node, Told(reason, f"the agent is told: {', '.join(sorted(devices))}", warning=False))

    def _of(self, name: str) -> list[NodeRepair]:
        return self._repairs.by_index("node", name)

    async def _afresh(self, name: str) -> list[NodeRepair]:
        """The records as the server has them: a grant that was taken back meanwhile is none."""
        found = []
        for known in self._of(name):
            if not known.spec.plan.isolate or known.ended:
                continue
            try:
                fresh = await self._client.get(kinds.NODE_REPAIR, known.metadata.name)
            except errors.NotFound:
                continue
            self._repairs.observe_write(fresh)
            found.append(fresh)
        return found

    async def _frozen(self, node: Node) -> bool:
        """A Hold of level EveryAct keeps everything as it is; one that cannot be read counts as one."""
        listing = await self._client.list(kinds.HOLD)
        found = holds.strictest(listing.items, node, self._pools(node), [], self._clock.now())
        return bool(listing.malformed) or holds.known_level(found) == HoldLevel.EVERY_ACT
