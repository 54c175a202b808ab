"""What the agent of a node has written on it, and how that is called unknown when the agent is gone.

A dead agent cannot take back what it said. All its conditions turn Unknown, the good ones as well: neither fault nor
recovery may be read from what nobody looks at any more. Conditions of other detectors stay as they are, also where
they share a type with ours. The API server knows who wrote which condition (managedFields); where it does not tell, a
type that the agent can write counts as the agent's when it reads False or carries a reason in the agent's own form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from sickbay.api import entries, names
from sickbay.api.core import Node, NodeCondition
from sickbay.convert import trace
from sickbay.kube import nodes

MANAGER = "sickbay-agent"
"""Field manager of the agent's writes: its User-Agent."""
REASON = "AgentSilent"
MESSAGE = "the node's agent has given no sign of life for 3 minutes: nobody knows"

NOT_THE_AGENTS = ("job.", "infra.")
_OTHERS = frozenset({"node.hardware-suspected", "kernel.deadlock", "gpu.foreign-fatal"})
_ENTRY = re.compile(r"k:(\{.*\})")


@cache
def writable() -> frozenset[str]:
    """Condition types that an agent can write: those of the built-in entries, those that only others report aside."""
    return frozenset(
        names.condition_type(name)
        for name, document in entries.builtin()[1].items()
        if not name.startswith(NOT_THE_AGENTS) and name not in _OTHERS and _by_its_condition(name, document)
    )


def _by_its_condition(name: str, document: Mapping[str, Any]) -> bool:
    """An entry that is recognised by a count of Events has a condition too, but that is of our making."""
    matches = document["spec"].get("match") or ()
    return any((m.get("condition") or {}).get("type") == names.condition_type(name) for m in matches)


def to_unknown(node: Node, raw: Mapping[str, Any], now: str) -> list[NodeCondition]:
    """The conditions to write on a node whose agent is silent; `raw` is the same Node with all its fields.

    Empty when they all say so already. `now` is RFC 3339.
    """
    owned = _owned(raw)
    types = [c.type for c in node.conditions if _is_the_agents(c, owned) and c.type != names.DETECTION_BLIND]
    changed = (_unknown(node, type_, now) for type_ in [*types, names.DETECTION_BLIND])
    return [condition for condition in changed if condition is not None]


def marked_silent(node: Node) -> bool:
    """True while the node carries our mark: an agent that is back replaces it."""
    blind = node.condition(names.DETECTION_BLIND)
    return blind is not None and blind.status == "Unknown" and blind.reason == REASON


def _unknown(node: Node, type_: str, now: str) -> NodeCondition | None:
    old = node.condition(type_)
    if old is not None and old.status == "Unknown" and type_ != names.DETECTION_BLIND:
        return None
    return nodes.condition(node, type_, "Unknown", REASON, MESSAGE, now)


def _is_the_agents(condition: NodeCondition, owned: frozenset[str] | None) -> bool:
    if owned is not None:
        return condition.type in owned
    if condition.type not in writable() or trace.is_from_events(condition):
        return False
    return condition.status == "False" or names.agents_own(condition.type, condition.reason)


def _owned(raw: Mapping[str, Any]) -> frozenset[str] | None:
    """Types that the server says the agent wrote; None where it does not tell."""
    managed = (raw.get("metadata") or {}).get("managedFields") or ()
    mine = [entry for entry in managed if str(entry.get("manager", "")).startswith(MANAGER)]
    if not mine:
        return None
    return frozenset(type_ for entry in mine for type_ in _types(entry))


def _types(entry: Mapping[str, Any]) -> Iterable[str]:
    status = (entry.get("fieldsV1") or {}).get("f:status") or {}
    for key in status.get("f:conditions") or {}:
        if found := _ENTRY.fullmatch(key):
            yield str(msgspec.json.decode(found[1]).get("type", ""))
