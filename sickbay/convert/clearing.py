"""A person's word that a condition is over (`sickbay clear`), for conditions that have no other way back.

Some detectors latch what they found and never look again. The word names the very occurrence that is meant, so that it
cannot clear a later one; it stands on the Node until it has been followed, and who said it and why stays in the
condition and in an Event. It clears no condition of our own agent, which would only write it again, and none of
Kubernetes itself. A node under repair is validated all the same before it returns.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sickbay.api import names
from sickbay.api.core import Node, NodeCondition
from sickbay.convert.wanted import Wanted

KUBERNETES = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
NEVER = KUBERNETES | {names.DETECTION_BLIND, *names.LIFECYCLE_CONDITIONS}


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the annotation `sickbay.dev/clear`."""

    by: str = ""
    reason: str = ""
    at: str = ""
    since: str = ""


def read(node: Node) -> dict[str, Word]:
    """What people have said, by condition type. A value that cannot be read says nothing."""
    text = node.annotations.get(names.CLEAR)
    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Word])
    except msgspec.DecodeError:
        return {}


def refusal(node: Node, type_: str) -> str:
    """Why a condition cannot be cleared by hand; "" when it can."""
    condition = node.condition(type_)
    if condition is None:
        return f"{node.name} has no condition {type_}"
    if type_ in NEVER:
        return f"{type_} follows what is there: mend that"
    if condition.status == good(type_):
        return f"{type_} reads {condition.status}: there is nothing to clear"
    watched = node.condition(names.DETECTION_BLIND) is not None
    if watched and condition.status != "Unknown" and names.agents_own(type_, condition.reason):
        return f"{type_} is written by the node's agent, which would write it again: repair the node, or resolve it"
    return ""


def good(type_: str) -> str:
    """The status that is not bad: types that end in Ready say what is well."""
    return "True" if type_.endswith("Ready") else "False"


def followed(node: Node) -> dict[str, Word]:
    """The words that hold: about a condition as it stands now."""
    found = {}
    for type_, word in read(node).items():
        condition = node.condition(type_)
        if condition is not None and word.since == (condition.last_transition_time or "") and not refusal(node, type_):
            found[type_] = word
    return found


def wanted(type_: str, word: Word, tail: str = "") -> Wanted:
    """The condition as a person's word leaves it. `tail` is what the evidence was, where that has to be kept."""
    by = word.by or "a person"
    text = f"cleared by {by[:128]}: {word.reason[:512] or 'no reason given'}"
    return Wanted(type_, good(type_), names.CLEARED_BY_PERSON, f"{text} {tail}".rstrip())


def instead(found: Iterable[Wanted], said: Iterable[str]) -> list[Wanted]:
    """What else is wanted: a person's word goes before all others about the same condition."""
    types = set(said)
    return [each for each in found if each.type not in types]


def is_cleared(condition: NodeCondition) -> bool:
    return condition.reason == names.CLEARED_BY_PERSON
