"""KEP-5683 lifecycle conditions: they tell others that a drain or a maintenance of ours is under way."""

from __future__ import annotations

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.clock import rfc3339
from sickbay.execute.progress import Look
from sickbay.kube.client import Client
from sickbay.kube.nodes import condition, set_conditions

REASON = "Sickbay"
"""Reason of every lifecycle condition of ours: another system's are told apart by it, and left alone."""


async def show(client: Client, look: Look, type_: str, status: str, message: str) -> Node:
    """Set one condition where it says something new. One that another system has set is left alone."""
    standing = look.node.condition(type_)
    if standing is not None and standing.status == "True" and standing.reason != REASON:
        return look.node
    wanted = condition(look.node, type_, status, REASON, message, rfc3339(look.now))
    if wanted is None:
        return look.node
    return await set_conditions(client, look.node.name, [wanted], uid=look.node.uid)


async def remove(client: Client, node: Node) -> None:
    """Take away all of ours."""
    ours = [c.type for c in node.conditions if c.type in names.LIFECYCLE_CONDITIONS and c.reason == REASON]
    if ours:
        await set_conditions(client, node.name, [], remove=ours, uid=node.uid)
