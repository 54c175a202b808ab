"""KEP-5683 lifecycle conditions: they tell others that a drain or a maintenance of ours is under way.

What another system says there is left alone while it is True. What it said otherwise may be overwritten only where
Quarantine has recorded it, and comes back when ours goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.api import names
from sickbay.api.core import Node, NodeCondition
from sickbay.api.node_repair import Prior
from sickbay.clock import rfc3339
from sickbay.execute.marks import LIFECYCLE_REASON
from sickbay.execute.progress import Look
from sickbay.kube.client import Client
from sickbay.kube.nodes import condition, set_conditions

Shown = tuple[str, str, str]
"""Type, status and message of a condition."""


async def show(client: Client, look: Look, *shown: Shown) -> Node:
    """Set conditions of ours where they say something new, in one write. Returns the Node as written, or as known."""
    wanted = []
    for type_, status, message in shown:
        standing = look.node.condition(type_)
        if standing is None or _may_overwrite(standing, look.repair.status.prior):
            wanted.append(condition(look.node, type_, status, LIFECYCLE_REASON, message, rfc3339(look.now)))
    news = [each for each in wanted if each is not None]
    if not news:
        return look.node
    look.check()
    return await set_conditions(client, look.node.name, news, uid=look.node.uid)


def _may_overwrite(standing: NodeCondition, prior: Prior | None) -> bool:
    if standing.reason == LIFECYCLE_REASON:
        return True
    recorded = prior is not None and any(c.type == standing.type for c in prior.conditions)
    return recorded and standing.status != "True"


async def remove(
    client: Client, node: Node, prior: Prior | None, types: Iterable[str] = names.LIFECYCLE_CONDITIONS
) -> Node:
    """Take away ours of these types; where another system's stood before, it stands again."""
    ours = [c.type for c in node.conditions if c.type in types and c.reason == LIFECYCLE_REASON]
    if not ours:
        return node
    before = [c for c in (prior.conditions if prior is not None else []) if c.type in ours]
    back = [
        NodeCondition(
            type=c.type,
            status=c.status,
            reason=c.reason,
            message=c.message,
            last_heartbeat_time=c.last_heartbeat_time,
            last_transition_time=c.last_transition_time,
        )
        for c in before
    ]
    gone = [type_ for type_ in ours if type_ not in {c.type for c in before}]
    return await set_conditions(client, node.name, back, remove=gone, uid=node.uid)
