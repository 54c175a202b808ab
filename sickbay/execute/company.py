"""What must hold on every member of a group right before an act that takes the whole domain down.

The record that is carried out is one member's. Between decide's look at the others and the act lies time: each of them
is read from the server once more, with its node.
"""

from __future__ import annotations

import asyncio

from sickbay.api import kinds
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import Phase, Step, StepState, WaitsFor
from sickbay.execute import guard
from sickbay.execute.guard import Stopped
from sickbay.kube import errors
from sickbay.kube.client import Client

EMPTIED = (StepState.DONE, StepState.SKIPPED)
AT_ONCE = 16
"""Reads side by side."""


class Company:
    """Reads the other members."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def require(self, repair: NodeRepair) -> None:
        """Raises Stopped unless every other node of the group is out of service, drained and still ours."""
        group = repair.spec.group
        if not group.id:
            raise Stopped("an act on a whole domain needs the group of its members", WaitsFor.PEOPLE, again=60)
        listing = await self._client.list(kinds.NODE_REPAIR)
        if listing.malformed:
            raise Stopped(f"record {listing.malformed[0].identity.name} cannot be read", again=10)
        records = [r for r in listing.items if r.spec.group.id == group.id]
        room = asyncio.Semaphore(AT_ONCE)

        async def one(name: str) -> None:
            async with room:
                await self._member(name, [r for r in records if r.spec.node.name == name])

        others = [name for name in group.members if name != repair.spec.node.name]
        found = await asyncio.gather(*(one(name) for name in others), return_exceptions=True)
        for problem in found:
            if problem is not None:
                raise problem

    async def _member(self, name: str, records: list[NodeRepair]) -> None:
        try:
            node = await self._client.get(kinds.NODE, name)
        except errors.NotFound:
            return  # there is nothing left to disturb
        found = next((r for r in records if r.spec.node.uid == node.uid and not r.ended), None)
        if found is None or found.status.phase == Phase.CANCELLING or found.metadata.deletion_timestamp is not None:
            raise Stopped(f"member {name} of the group is not under its repair any more", WaitsFor.OTHER_OWNER)
        guard.check_hands(found, node)
        steps = [s.step for s in found.spec.plan.steps if s.step in (Step.QUARANTINE, Step.DRAIN)]
        if any(found.status.step(step).state not in EMPTIED for step in steps):
            raise Stopped(f"member {name} of the group is not drained", WaitsFor.PODS, again=10)
