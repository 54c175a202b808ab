"""A condition as it should stand on a Node, and the patch that brings a Node there. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sickbay.api.core import Node, NodeCondition
from sickbay.kube import nodes

MESSAGE_MAX = 1024
"""Characters of a message: people read it, and a Node is read by everybody."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """`status` True = bad, Unknown = nobody can say."""

    type: str
    status: str
    reason: str
    message: str


def changes(node: Node, wanted: Iterable[Wanted], now: str) -> list[NodeCondition]:
    """The conditions to write: what says so already is not written again.

    A condition that was never bad is not made; one that is False already keeps the reason why it became so.
    """
    found = []
    for each in wanted:
        old = node.condition(each.type)
        ended = each.status == "False" or each.type.endswith("Ready")
        if ended and (old is None or old.status == each.status):
            continue
        made = nodes.condition(node, each.type, each.status, each.reason, each.message[:MESSAGE_MAX], now)
        if made is not None:
            found.append(made)
    return found
