"""The Lease on which remediators of one node agree who handles it: taken before an act, kept while we work on it.

Others wait an hour after our last renewal, so a node we hold for long needs few writes; before an act the Lease must
have been ours within the last minute.
"""

from __future__ import annotations

import structlog

from sickbay.api.core import Node
from sickbay.api.words import WaitsFor
from sickbay.clock import Clock
from sickbay.execute.guard import Stopped
from sickbay.kube import errors
from sickbay.kube.nodelease import Hold, NodeLease

log = structlog.get_logger(__name__)

SURE_FOR = 60.0
"""Seconds for which a look at the Lease, or one that found the convention not in use, is good enough for an act."""
KEPT_FOR = 600.0
"""Seconds between renewals while nothing is done."""
OTHER_AGAIN = 15.0
"""Seconds until a node in another's hands is looked at again."""


class Owners:
    """Takes, keeps and gives back the Leases of the nodes we work on."""

    def __init__(self, leases: NodeLease, clock: Clock) -> None:
        self._leases = leases
        self._clock = clock
        self._sure: dict[str, float] = {}
        self._kept: dict[str, float] = {}
        self._unused_until = float("-inf")

    async def in_use(self) -> bool:
        """Whether remediators share Leases on this cluster at all. Raises ApiError when that cannot be known."""
        now = self._clock.monotonic()
        if self._unused_until > now:
            return False
        if await self._leases.in_use():
            return True
        self._unused_until = now + SURE_FOR
        return False

    async def require(self, node: Node) -> None:
        """Hold the Lease, or raise Stopped with the name of who has it. Raises ApiError when that cannot be known."""
        if self._sure.get(node.uid, 0.0) > self._clock.monotonic():
            return
        taken = await self._leases.take(node)
        now = self._clock.monotonic()
        if taken.hold is Hold.UNUSED:
            self._unused_until = now + SURE_FOR
            return
        if not taken.free_to_act:
            self._forget(node.uid)
            other = taken.holder or "another remediator"
            raise Stopped(f"{other} holds the Lease of the node", WaitsFor.OTHER_OWNER, OTHER_AGAIN, taken.holder)
        self._sure[node.uid] = now + SURE_FOR
        self._kept[node.uid] = now + KEPT_FOR

    async def keep(self, node: Node) -> None:
        """Renew in good time what we hold, so that it does not run out in a long wait. What fails is tried again."""
        due = self._kept.get(node.uid)
        if due is None or due > self._clock.monotonic():
            return
        self._sure.pop(node.uid, None)
        try:
            await self.require(node)
        except (Stopped, errors.ApiError) as error:
            log.warning("the node's Lease was not renewed", node=node.name, error=str(error))

    def holds(self, node: Node) -> bool:
        """Whether this process has taken it."""
        return node.uid in self._kept

    async def release(self, node: Node) -> None:
        """Give it back. Raises ApiError."""
        self._forget(node.uid)
        if await self.in_use():
            await self._leases.release(node.name)

    def forget_others(self, nodes: set[str]) -> None:
        """Only nodes of these UIDs are still there."""
        for uid in [uid for uid in self._kept if uid not in nodes]:
            self._forget(uid)

    def _forget(self, uid: str) -> None:
        self._sure.pop(uid, None)
        self._kept.pop(uid, None)
