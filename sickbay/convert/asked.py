"""What the fault types in force ask of convert: which of them are recognised by Events, other objects or alerts.

Each such type is a condition named after it. A type that cannot be used is left out; that it cannot is for decide to
say, which judges the whole type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from sickbay.api import entries
from sickbay.api.actions import NO_NODE_REPAIR
from sickbay.api.duration import parse_duration
from sickbay.api.fault_type import AlertMatch, EventMatch, FaultType, ObjectMatch
from sickbay.api.names import condition_type
from sickbay.api.words import ClearsBy

WINDOW = "10m"
"""`match.event.window` where none is given (api.md)."""
AGENT, RAISED = "sickbay-agent", "RaisedByFaultType"
"""Who tells of mild faults, and the reason of a condition that is made of that because people want it repaired."""
SOAK = "5m"
"""`validation.soak` of `clearsBy: silence` where none is given, as in decide."""


@dataclass(frozen=True)
class EventTest:
    """`match.event`, ready to run. `window` in seconds; empty texts match anything."""

    source: str
    reason: str
    type: str
    count: int
    window: float
    word: str = ""
    """Reason of the condition; empty = that of the Event."""


@dataclass(frozen=True)
class Asked:
    """One fault type."""

    name: str
    events: tuple[EventTest, ...]
    objects: tuple[ObjectMatch, ...]
    alerts: tuple[AlertMatch, ...]
    clears_by: str
    soak: float
    """Seconds without new evidence after which a fault that clears by silence is over."""
    created: str | None
    """When the FaultType object was made, by the API server's clock; None for a built-in entry."""

    @property
    def condition(self) -> str:
        return condition_type(self.name)


def asked(overrides: Iterable[Mapping[str, Any]]) -> dict[str, Asked]:
    """The types that ask for something, by condition."""
    overrides = list(overrides)
    created = {o["metadata"]["name"]: o["metadata"].get("creationTimestamp") for o in overrides}
    found = {}
    for name, document in entries.merged(overrides).items():
        matches = (document.get("spec") or {}).get("match") or ()
        outside = any(isinstance(m, Mapping) and m.keys() & {"event", "object", "alert"} for m in matches)
        if not outside and name not in created:
            continue
        try:
            type_ = msgspec.convert(document, FaultType)
            told = () if outside else _told_by_event(name, type_)
            if not outside and not told:
                continue
            one = _asked(name, type_, created.get(name), told)
        except (msgspec.ValidationError, ValueError):
            continue
        found[one.condition] = one
    return found


def _told_by_event(name: str, type_: FaultType) -> tuple[EventTest, ...]:
    """The agent's own Event, for a built-in fault that is only told as one and that people now want repaired.

    The agent knows the built-in catalogue alone: of what asks nothing of a node there it writes no condition.
    """
    builtin = entries.builtin()[1].get(name)
    if builtin is None or _is_reported(builtin["spec"]) or not _wants_repair(type_):
        return ()
    return (EventTest(AGENT, condition_type(name), "", 1, parse_duration(WINDOW).total_seconds(), RAISED),)


def _is_reported(spec: Mapping[str, Any]) -> bool:
    """Whether the agent writes a condition of it: severity Error or more, and more to do than a restart of the job."""
    acts = {rung["action"] for rung in spec.get("remedy") or ()}
    return spec.get("severity") in ("Error", "Critical") and bool(acts - NO_NODE_REPAIR)


def _wants_repair(type_: FaultType) -> bool:
    return any(rung.action not in NO_NODE_REPAIR for rung in type_.spec.remedy or ())


def _asked(name: str, type_: FaultType, created: str | None, told: tuple[EventTest, ...] = ()) -> Asked:
    matches = type_.spec.match or []
    soak = type_.spec.validation.soak if type_.spec.validation is not None else None
    return Asked(
        name=name,
        events=(*(_event(m.event) for m in matches if m.event is not None), *told),
        objects=tuple(m.object for m in matches if m.object is not None),
        alerts=tuple(m.alert for m in matches if m.alert is not None),
        clears_by=type_.spec.clears_by or ClearsBy.CONDITION,
        soak=parse_duration(soak or SOAK).total_seconds(),
        created=created,
    )


def _event(match: EventMatch) -> EventTest:
    window = parse_duration(match.window or WINDOW).total_seconds()
    return EventTest(match.source or "", match.reason, match.type or "", max(1, match.count or 1), window)
