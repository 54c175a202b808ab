"""One condition from what Events, other objects and alerts each say of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sickbay.api.core import Node, NodeCondition
from sickbay.convert import alerts, others, trace
from sickbay.convert.asked import Asked
from sickbay.convert.wanted import Wanted


def combined(node: Node, type_: str, said: Iterable[Wanted | None]) -> Wanted | None:
    """Bad while anybody says so; of several who do, the one whose words stand already keeps the word."""
    given = [each for each in said if each is not None]
    old = node.condition(type_)
    for status in ("True", "Unknown", "False"):
        saying = [each for each in given if each.status == status]
        if saying:
            return next((each for each in saying if old is not None and each.message == old.message), saying[0])
    return None


def orphans(node: Node, types: Mapping[str, Asked]) -> list[Wanted]:
    """Conditions of ours whose fault type is gone, or asks for something else by now: nobody would ever end them."""
    return [
        Wanted(c.type, "False", "NoFaultType", "no fault type asks for this any more")
        for c in node.conditions
        if c.status != "False" and c.type not in types and _made_here(c)
    ]


def _made_here(condition: NodeCondition) -> bool:
    return trace.is_from_events(condition) or alerts.is_from_alerts(condition) or others.is_from_objects(condition)
