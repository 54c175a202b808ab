"""What of a fault type can be accepted and then never be seen, never be repaired, or never be proven gone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sickbay.api import entries
from sickbay.api.actions import ACTIONS
from sickbay.api.duration import format_duration, parse_duration
from sickbay.api.fault_type import FaultType, FaultTypeSpec, Match
from sickbay.api.repair_step import MOST_ATTEMPTS

Said = tuple[bool, str, str]
"""Whether it is an error, the path, and the words."""


def fault_type(found: FaultType, written: FaultTypeSpec) -> Iterator[Said]:
    """Of a merged type; `written` is what the file says itself, over a built-in entry or not."""
    yield from _matches(found)
    yield from _ladder(found.spec, written)
    yield from _proof(found.spec, written)
    yield from _validation(found.spec, written)
    if written.ceiling is not None and (found.spec.urgency or "Now") == "Now":
        yield False, "spec.ceiling", f"{written.ceiling} has no effect: urgency Now waits for nothing"


def _matches(found: FaultType) -> Iterator[Said]:
    """An empty list over a built-in entry is how that one is switched off, and is not mentioned."""
    if found.spec.match is not None and not found.spec.match and found.metadata.name not in entries.merged(()):
        yield False, "spec.match", "empty: nothing is ever recognised as this fault; give a match"
    for i, match in enumerate(found.spec.match or ()):
        yield from _match(f"spec.match[{i}]", match)


def _match(path: str, match: Match) -> Iterator[Said]:
    if match.event is not None and match.event.count == 0:
        yield True, f"{path}.event.count", "0: no event is needed for it; use at least 1"
    if match.cel is not None and not re.search(r"\bnode\b", match.cel):
        yield False, f"{path}.cel", f"{match.cel[:80]!r} does not look at the node: it says the same of each"
    if match.object is not None and not re.search(r"\bobject\b", match.object.node):
        yield False, f"{path}.object.node", f"{match.object.node[:80]!r} names the same node for every object"


def _ladder(spec: FaultTypeSpec, written: FaultTypeSpec) -> Iterator[Said]:
    """Rungs that can never help: a later one does less than one that has been tried, or the same."""
    strongest, names = 0, set()
    for i, rung in enumerate(written.remedy or ()):
        path, action = f"spec.remedy[{i}].action", ACTIONS.get(rung.action)
        if rung.action in names:
            yield False, path, f"{rung.action} stands in the ladder already; use attempts to try it again"
        elif action is not None and action.strength < strongest:
            yield False, path, f"{rung.action} does less than a rung before it; put the ladder in rising order"
        names.add(rung.action)
        strongest = max(strongest, action.strength if action is not None else 0)
    most = sum(max(1, rung.attempts or 1) for rung in written.remedy or ())
    if most > MOST_ATTEMPTS:
        text = f"{most} attempts in all, and one repair makes {MOST_ATTEMPTS} at most; the last are never made"
        yield False, "spec.remedy", f"{text}: use fewer attempts"


_REBOOTS = frozenset(name for name, action in ACTIONS.items() if action.strength >= ACTIONS["RebootNode"].strength)
"""Acts that end the boot in which the fault was seen. Custom and ContactSupport are somebody else's, and may be one."""
_PROOFS = {
    "reset": ("a reset or a reboot", _REBOOTS | {"ResetGPU", "ResetFabric"}),
    "reboot": ("a reboot", _REBOOTS),
    "replacement": (
        "another serial or providerID",
        frozenset({"RepairHardware", "ReplaceNode", "RedeployNode", "ReprovisionNode", "ContactSupport", "Custom"}),
    ),
}
"""By `clearsBy`: what has to happen, and the acts by which it may."""


def _proof(spec: FaultTypeSpec, written: FaultTypeSpec) -> Iterator[Said]:
    """A fault that none of its own remedies can prove gone waits for people each time."""
    if spec.clears_by not in _PROOFS or not (written.remedy or written.clears_by):
        return
    words, gives = _PROOFS[spec.clears_by]
    acts = [rung.action for rung in spec.remedy or () if rung.action != "None"]
    if acts and gives.isdisjoint(acts):
        path = "spec.clearsBy" if written.clears_by else "spec.remedy"
        text = f"{spec.clears_by} needs {words}, and {', '.join(acts)} is none: it is never proven gone; add a rung"
        yield False, path, text


def _validation(spec: FaultTypeSpec, written: FaultTypeSpec) -> Iterator[Said]:
    if spec.validation is None or written.validation is None or spec.validation.soak is None:
        return
    soak, ceiling = spec.validation.soak, spec.validation.ceiling
    longest = (
        [(parse_duration(ceiling), "the ceiling")]
        if ceiling
        else [
            (ACTIONS[r.action].ceiling, f"the ceiling after {r.action}")
            for r in spec.remedy or ()
            if r.action in ACTIONS
        ]
    )
    for span, whose in longest[:1]:
        if parse_duration(soak) > span > parse_duration("0s"):
            text = f"{soak} is above {whose}, {format_duration(span)}: no validation can pass; raise the ceiling"
            yield True, "spec.validation.soak", text
