"""Unquarantine: take back exactly what Quarantine recorded, and what hangs on it.

The cordon first, everything else second, each whether or not the others worked: a Lease that cannot be given back
delays no node, and a cordon that cannot be written keeps no Lease. What failed is tried again with the next look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import structlog

from sickbay.api import kinds, names
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair, Prior
from sickbay.api.nodemarks import CORDON, FOREIGN, cordoned_anew, marked_by, read_mark
from sickbay.api.words import Phase, Step, StepState
from sickbay.execute import lifecycle
from sickbay.execute.attempt import key_of
from sickbay.execute.backends import Backends
from sickbay.execute.marks import clear_ops
from sickbay.execute.owners import Owners
from sickbay.execute.progress import Look, Progress, done
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.nodes import patch_node
from sickbay.providers.base import Act, ProviderError, Target

log = structlog.get_logger(__name__)

_REFUSED = (errors.Conflict, errors.TooManyRequests, errors.Invalid, errors.Unauthorized, errors.Forbidden)

Work = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Try:
    attempt: str
    version: str
    """Of the node."""


class Release:
    def __init__(self, client: Client, observe: Callable[[Node], None], owners: Owners, backends: Backends) -> None:
        self._client = client
        self._observe = observe
        self._owners = owners
        self._backends = backends
        self._tried: dict[str, _Try] = {}
        """By the repair's UID: when our marks were last taken away, or tried to be."""

    async def look(self, look: Look) -> Progress:
        permit = await look.permit()
        repair, node = permit.repair, permit.node
        prior = _recorded(node, repair)
        works: list[Work] = [
            partial(self._unmark, look, node, prior, repair),
            partial(self._calm, node, prior),
            partial(self._owners.release, node),
        ]
        if repair.status.phase == Phase.CANCELLING:
            works.insert(0, partial(self._withdraw, repair, node))
        failures = [error for work in works if (error := await _attempt(work, look.check)) is not None]
        if failures:
            raise failures[0]
        held = prior is not None and prior.unschedulable
        return done("our marks are gone; the cordon is not ours" if held else "uncordoned")

    async def _unmark(self, look: Look, node: Node, prior: Prior | None, repair: NodeRepair) -> None:
        astray = await self._astray(node, repair)
        lift = self._is_ours(look, node, repair)
        uid, ops = repair.metadata.uid, clear_ops(node, prior, repair, lift, astray)
        before = self._tried.pop(uid, None)
        self._tried[uid] = _Try(look.key, node.metadata.resource_version)
        try:
            self._observe(await patch_node(self._client, node, ops))
        except _REFUSED:
            # Surely not carried out, so we have lifted nothing: what was known before holds.
            del self._tried[uid]
            self._tried |= {uid: before} if before is not None else {}
            raise

    def _is_ours(self, look: Look, node: Node, repair: NodeRepair) -> bool:
        """Whether the cordon that stands is the one that we have set.

        Our mark says so. Where a person has taken the mark and left the cordon it is ours all the same, as long as we
        cannot have lifted it ourselves before: whoever cordons the node after that, it is theirs.
        """
        if repair.status.current.args.get(CORDON) == FOREIGN or cordoned_anew(node):
            return False
        if marked_by(node, repair.metadata.uid):
            return True
        if look.resumed:
            return False
        tried = self._tried.get(repair.metadata.uid)
        return tried is None or tried.attempt != look.key or tried.version == node.metadata.resource_version

    def keep(self, uids: set[str]) -> None:
        """Forget all repairs but these."""
        self._tried = {uid: tried for uid, tried in self._tried.items() if uid in uids}

    async def _astray(self, node: Node, repair: NodeRepair) -> bool:
        """The mark on the node names another repair than this one, and there is none that it could be of."""
        mark = read_mark(node)
        if mark is None or mark.uid == repair.metadata.uid:
            return False
        try:
            other = await self._client.get(kinds.NODE_REPAIR, mark.repair or mark.uid)
        except errors.NotFound:
            return True
        return other.metadata.uid != mark.uid or other.spec.node.uid != node.uid

    async def _calm(self, node: Node, prior: Prior | None) -> None:
        self._observe(await lifecycle.remove(self._client, node, prior))

    async def _withdraw(self, repair: NodeRepair, node: Node) -> None:
        """A cancelled act that nobody has begun must not be begun after the node is back in service."""
        target = Target(repair.spec.node.name, repair.spec.node.uid, repair.spec.node.provider_id)
        for attempt in repair.status.step(Step.REPAIR).attempts:
            backend = self._backends.choose(repair, attempt.action, node)
            if backend is None or attempt.state == StepState.DONE:
                continue
            if names.GROUP_ATTEMPT in attempt.proof:
                continue  # a copy: the act was another member's
            key = key_of(repair, Step.REPAIR, attempt.n, attempt.action)
            act = Act(key, attempt.action, target, repair.metadata.name, owner=repair.metadata.uid)
            try:
                await backend.withdraw(act)
            except ProviderError as error:
                raise errors.Unreachable(f"{attempt.action} not withdrawn from {backend.name}: {error}") from error


def _recorded(node: Node, repair: NodeRepair) -> Prior | None:
    """What was there before us; None when this repair never marked the node."""
    mark = read_mark(node)
    if mark is not None and mark.uid == repair.metadata.uid:
        return mark.prior
    return repair.status.prior


async def _attempt(work: Work, check: Callable[[], None]) -> errors.ApiError | None:
    try:
        check()
        await work()
    except errors.ApiError as error:
        log.warning("not taken back yet", error=str(error))
        return error
    return None
