"""The permit: everything that must hold for an act, read from the server right before it.

Never from a cache: the record (is this attempt still asked for?), the node (is it the one, is it still ours?), the
Holds, the Lease shared with other remediators. They are read side by side, and judged when all are there. What cannot
be read gives no permit. A permit is good for one second, so that a batch of evictions does not ask for each pod anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from sickbay.api import kinds
from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import WaitsFor
from sickbay.clock import Clock
from sickbay.execute import guard
from sickbay.execute.guard import Stopped, Superseded
from sickbay.execute.owners import Owners
from sickbay.kube import errors
from sickbay.kube.client import Client

GOOD_FOR = 1.0
"""Seconds."""
UNREADABLE_AGAIN = 5.0
PAUSES = (0.2, 0.5)
"""Seconds before a read that the server could not answer is repeated."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Permit:
    """The record and the node as they were read for it."""

    repair: NodeRepair
    node: Node
    until: float


@dataclass(frozen=True, slots=True)
class Known:
    """What caches say: enough to refuse without asking the server, never enough to permit."""

    holds: Callable[[], Iterable[Hold]]
    pools: Callable[[NodeRepair, Node], list[str]]
    """Names of the pools whose Holds bind a repair."""
    observe: Callable[[Node], None]
    """Takes in the node as it was read, so that nothing is judged by an older one afterwards."""


class Permits:
    """`check` raises when we do not lead; it is asked first and last."""

    def __init__(self, client: Client, clock: Clock, check: Callable[[], None], owners: Owners, known: Known) -> None:
        self._client = client
        self._clock = clock
        self._check = check
        self._owners = owners
        self._known = known
        self._given: dict[str, Permit] = {}

    async def ask(self, repair: NodeRepair, node: Node, fresh: bool = False) -> Permit:
        """A permit to act for the current attempt of a repair. Raises Superseded, Stopped or ApiError.

        `node` is the node as a cache has it, for refusing cheaply; `fresh` asks the server though a permit is there.
        """
        self._check()
        given = self._given.get(repair.metadata.uid)
        if given is not None and not fresh and self._clock.monotonic() < given.until and _covers(given.repair, repair):
            return given
        self._given.pop(repair.metadata.uid, None)
        now = self._clock.now()
        guard.check_holds(self._known.holds(), repair, node, self._known.pools(repair, node), now)
        record, live, holds, shared, pool = await _together(
            self._patient(lambda: self._record(repair)),
            self._patient(lambda: self._node(repair)),
            self._holds(),
            self._patient(lambda: self._shared(repair)),
            self._patient(lambda: self._pool(repair)),
        )
        guard.check_holds(holds, record, live, self._known.pools(record, live), self._clock.now())
        if guard.needs_consent(repair) and guard.needs_consent(record):
            guard.check_pool(pool, record, live)
        if not guard.releasing(record):
            guard.check_hands(record, live)
            if shared:
                await self._owners.require(live)
        self._check()
        now_is = self._clock.monotonic()
        # Those that are over go with this one: each holds a whole record, and nobody else would ever drop the last.
        self._given = {uid: each for uid, each in self._given.items() if now_is < each.until}
        permit = self._given[repair.metadata.uid] = Permit(record, live, now_is + GOOD_FOR)
        return permit

    async def ask_to_restore(self, known: NodeRepair) -> tuple[NodeRepair, Node]:
        """Record and node, for putting our mark back. Raises Superseded, Stopped or ApiError."""
        self._check()
        fresh, node, holds = await _together(
            self._patient(lambda: self._client.get(kinds.NODE_REPAIR, known.metadata.name)),
            self._patient(lambda: self._node(known)),
            self._holds(),
        )
        if not guard.to_restore(fresh):
            raise Superseded("the record has moved on")
        guard.check_frozen(holds, fresh, node, self._known.pools(fresh, node), self._clock.now())
        self._check()
        return fresh, node

    def forget(self, uid: str) -> None:
        """Something has changed: the next act of this repair is judged anew."""
        self._given.pop(uid, None)

    async def _record(self, known: NodeRepair) -> NodeRepair:
        try:
            fresh = await self._client.get(kinds.NODE_REPAIR, known.metadata.name)
        except errors.NotFound:
            raise Superseded("the record is gone") from None
        guard.same_attempt(known, fresh)
        return fresh

    async def _node(self, repair: NodeRepair) -> Node:
        try:
            node = await self._client.get(kinds.NODE, repair.spec.node.name)
        except errors.NotFound:
            raise Superseded("the node is gone") from None
        self._known.observe(node)
        return guard.check_node(repair, node)

    async def _pool(self, repair: NodeRepair) -> RepairPool | None:
        """The repair's pool, where its word is needed; None for one that is gone."""
        if not guard.needs_consent(repair):
            return None
        try:
            return await self._client.get(kinds.REPAIR_POOL, repair.spec.pool.name)
        except errors.NotFound:
            return None

    async def _patient(self, read: Callable[[], Awaitable[T]]) -> T:
        """A permit needs several reads at once; one that fails for a moment must not cost the others."""
        for pause in PAUSES:
            try:
                return await read()
            except (errors.ServerError, errors.Unreachable, errors.TooManyRequests):
                await self._clock.sleep(pause)
        return await read()

    async def _holds(self) -> list[Hold]:
        try:
            listing = await self._patient(lambda: self._client.list(kinds.HOLD))
        except errors.ApiError as error:
            raise Stopped(f"the Holds cannot be read: {error}", WaitsFor.HOLD, UNREADABLE_AGAIN) from error
        if listing.malformed:
            bad = listing.malformed[0]
            raise Stopped(f"Hold {bad.identity.name} cannot be read: {bad.error}", WaitsFor.HOLD)
        return listing.items

    async def _shared(self, repair: NodeRepair) -> bool:
        """Whether the node's Lease has to be held. A release never asks: what cannot be known must not delay it."""
        return guard.releasing(repair) or await self._owners.in_use()


async def _together(*reads: Coroutine[Any, Any, Any]) -> list[Any]:
    """The answers of reads that do not wait for each other; the first that fails ends them all."""
    tasks = [asyncio.ensure_future(read) for read in reads]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _covers(given: NodeRepair, asked: NodeRepair) -> bool:
    now, then = asked.status.current, given.status.current
    return (now.step, now.attempt) == (then.step, then.attempt)
