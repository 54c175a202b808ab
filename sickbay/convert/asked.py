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
from sickbay.api.duration import parse_duration
from sickbay.api.fault_type import AlertMatch, EventMatch, FaultType, ObjectMatch
from sickbay.api.names import condition_type
from sickbay.api.words import ClearsBy

WINDOW = "10m"
"""`match.event.window` where none is given (api.md)."""
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
        if not any(isinstance(m, Mapping) and m.keys() & {"event", "object", "alert"} for m in matches):
            continue
        try:
            one = _asked(name, msgspec.convert(document, FaultType), created.get(name))
        except (msgspec.ValidationError, ValueError):
            continue
        found[one.condition] = one
    return found


def _asked(name: str, type_: FaultType, created: str | None) -> Asked:
    matches = type_.spec.match or []
    soak = type_.spec.validation.soak if type_.spec.validation is not None else None
    return Asked(
        name=name,
        events=tuple(_event(m.event) for m in matches if m.event is not None),
        objects=tuple(m.object for m in matches if m.object is not None),
        alerts=tuple(m.alert for m in matches if m.alert is not None),
        clears_by=type_.spec.clears_by or ClearsBy.CONDITION,
        soak=parse_duration(soak or SOAK).total_seconds(),
        created=created,
    )


def _event(match: EventMatch) -> EventTest:
    window = parse_duration(match.window or WINDOW).total_seconds()
    return EventTest(match.source or "", match.reason, match.type or "", max(1, match.count or 1), window)
