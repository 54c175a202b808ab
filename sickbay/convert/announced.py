"""What a provider's events say about a node, as conditions: one type per kind of event. Pure.

A condition is True while an event of its kind is open, and False once every one of them has ended; the end of an event
releases what that event caused and nothing else. A failed act of the provider ends the event, not the fault: that
stays True until the node has been dealt with. An event that vanished from the provider's list leaves Unknown, unless

* nothing can be left of it (a freeze, an impairment that is no longer shown), or
* the provider never says the end, it had not begun (its time had not come), and the node was not booted, or
* the node has been booted since and is Ready.

While an event runs, or its time has come, a boot of the node answers it even where the provider goes on listing it:
lists have been seen to say "ongoing" for hours after the machine was back.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sickbay.api.core import Node
from sickbay.api.infra_event import InfraEvent
from sickbay.api.words import InfraPhase
from sickbay.clock import parse_time
from sickbay.convert.clouds import vocabulary
from sickbay.convert.folding import never_understood
from sickbay.convert.kinds import CONDITIONS, HARMLESS, EventKind
from sickbay.convert.vocabulary import RANK
from sickbay.convert.wanted import Wanted

ANSWERED = "Answered"
"""Condition of an InfraEvent: True once a person has cleared what it caused."""
SHOWN = 3
"""Events that one message names."""


def conditions(node: Node, events: Iterable[InfraEvent], now: datetime) -> list[Wanted]:
    """All conditions of the kinds above that the node has or should have. `events`: all that there are for its name."""
    by_type: dict[str, list[tuple[InfraEvent, EventKind]]] = {}
    for event in sorted(events, key=lambda e: e.metadata.name):
        kind = kind_of(event)
        written = event.status.since is not None  # the status comes with a second write
        if written and kind is not None and kind.condition and event.spec.node.uid == node.uid:
            by_type.setdefault(kind.condition, []).append((event, kind))
    present = {c.type for c in node.conditions if c.type in CONDITIONS}
    return [_one(type_, by_type.get(type_, []), node, now) for type_ in sorted(present | by_type.keys())]


def kind_of(event: InfraEvent) -> EventKind | None:
    return vocabulary(event.spec.source).kind(event.spec.type, event.status.upstream_phase)


def _one(type_: str, events: list[tuple[InfraEvent, EventKind]], node: Node, now: datetime) -> Wanted:
    standing = [(event, kind, _status(event, kind, node, now)) for event, kind in events]
    bad = [event for event, _, status in standing if status == "True"]
    if bad:
        strongest = max(bad, key=lambda e: (_weight(e), e.metadata.name))
        return Wanted(type_, "True", strongest.status.phase, _text(bad))
    unknown = [event for event, _, status in standing if status == "Unknown"]
    if unknown:
        return Wanted(
            type_, "Unknown", InfraPhase.GONE, f"no longer listed, and nothing proves the end: {_text(unknown)}"
        )
    last = max((e for e, _ in events), key=lambda e: (e.status.since or "", e.metadata.name), default=None)
    if last is None:
        return Wanted(type_, "False", "NoEvent", "no event of this kind is known any more")
    reason = last.status.phase if last.status.terminal else "Answered"
    return Wanted(type_, "False", reason, f"over: {_text([last])}")


def answered(event: InfraEvent) -> bool:
    """A person has said that nothing of the event is left, in the phase it is in."""
    return any(
        c.type == ANSWERED and c.status == "True" and (c.last_transition_time or "") >= (event.status.since or "")
        for c in event.status.conditions
    )


def _weight(event: InfraEvent) -> int:
    phase = event.status.phase
    return RANK[InfraPhase(phase)] if phase in RANK else len(RANK)


def _status(event: InfraEvent, kind: EventKind, node: Node, now: datetime) -> str:
    """What one event says: True, False or Unknown."""
    status = event.status
    if answered(event):
        return "False"
    booted = _booted(node, status.phase_boot_id)
    if status.phase in (InfraPhase.COMPLETED, InfraPhase.AVOIDED, InfraPhase.CANCELLED):
        return "False"
    if status.phase == InfraPhase.GONE:
        return "False" if _ended_unseen(event, kind, node) else "Unknown"
    if status.phase == InfraPhase.FAILED:
        return "True"
    if never_understood(event):
        return "False"
    return "False" if booted and _due(event, now) else "True"


def _booted(node: Node, before: str) -> bool:
    return bool(before) and bool(node.boot_id) and node.boot_id != before and node.ready


def _due(event: InfraEvent, now: datetime) -> bool:
    """It runs, or its time has come. A boot before that is a coincidence: the provider's own is still to come."""
    if event.status.phase == InfraPhase.EXECUTING:
        return True
    return event.spec.not_before is not None and parse_time(event.spec.not_before) <= now


def _ended_unseen(event: InfraEvent, kind: EventKind, node: Node) -> bool:
    status = event.status
    if _booted(node, status.boot_id):
        return True
    if vocabulary(event.spec.source).says_the_end:
        return False
    if kind in HARMLESS:
        return True
    not_before, gone = event.spec.not_before, status.since
    early = not_before is not None and gone is not None and parse_time(gone) < parse_time(not_before)
    return early and node.boot_id == status.boot_id


def _text(events: list[InfraEvent]) -> str:
    shown = [_event(event) for event in events[:SHOWN]]
    more = len(events) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _event(event: InfraEvent) -> str:
    spec, status = event.spec, event.status
    text = f"{spec.type} of {spec.source}, event {spec.id}, {status.upstream_phase or status.phase}"
    return text + (f", not before {spec.not_before}" if spec.not_before and not status.terminal else "")
