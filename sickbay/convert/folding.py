"""From what a provider lists to the InfraEvent: where it stands, and what a word that comes late may still change.

Nothing ever leaves a terminal phase, except for an occurrence that was published later under the same id. Between the
open phases the way leads forward; back only where the provider moves times. So it does not matter how often or in
which order the entries of a list are read. What vanishes from a complete list is Gone, which is neither well nor bad.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import datetime, timedelta

from sickbay.api.core import Node
from sickbay.api.infra_event import EventNode, InfraEvent, InfraEventSpec, InfraEventStatus
from sickbay.api.meta import Condition, ObjectMeta
from sickbay.api.objectnames import infra_event_name
from sickbay.api.words import InfraPhase
from sickbay.clock import parse_time, rfc3339
from sickbay.convert.notice import Notice, distinct
from sickbay.convert.vocabulary import RANK, TERMINAL, Vocabulary

UNDERSTOOD = "Understood"
"""Condition of an InfraEvent: False while the provider uses a word that this version does not know."""
NEVER = "NeverKnown"
"""Its reason while the event has never been in a phase that we know: then nobody can say that anything is coming."""
SEEN_AGAIN = timedelta(minutes=10)
"""How exact `lastSeen` is: an event that stands for weeks is not written at every look."""


def fold(event: InfraEvent | None, notices: Iterable[Notice], node: Node | None, words: Vocabulary, now: datetime) -> (
    InfraEvent | None
):  # fmt: skip
    """The InfraEvent after one list had these entries for it. None: there is none, and none is to be made.

    node  the Node the event is about; only an event for one is kept
    """
    for notice in sorted(distinct(notices), key=lambda notice: _furthest_last(notice, words)):
        phase = words.phase(notice.phase)
        if event is None:
            event = _new(notice, phase, node, words, now)
        else:
            event = _moved(event, notice, phase, node, words, now)
    return event


def _furthest_last(notice: Notice, words: Vocabulary) -> tuple[str, int]:
    """Of several entries in one list the latest occurrence counts, and of that the furthest phase."""
    phase = words.phase(notice.phase)
    return notice.published or "", -1 if phase is None else RANK.get(phase, len(RANK))


def missing(event: InfraEvent, now: datetime) -> InfraEvent:
    """The event after complete lists without it."""
    if event.status.terminal or event.status.phase == InfraPhase.GONE:
        return event
    after = copy.deepcopy(event)
    after.status.phase, after.status.since = InfraPhase.GONE, rfc3339(now)
    return after


def _new(notice: Notice, phase: InfraPhase | None, node: Node | None, words: Vocabulary, now: datetime) -> (
    InfraEvent | None
):  # fmt: skip
    """What was over before we ever saw it concerns nobody: providers list ended events for weeks."""
    if phase in TERMINAL or node is None:
        return None
    spec = InfraEventSpec(
        source=notice.source,
        id=notice.id,
        type=notice.type or "unknown",
        resource=notice.resource,
        node=EventNode(name=node.name, uid=node.uid),
        not_before=notice.not_before,
    )
    status = InfraEventStatus(boot_id=node.boot_id, phase_boot_id=node.boot_id, since=rfc3339(now))
    event = InfraEvent(metadata=ObjectMeta(name=infra_event_name(*notice.key)), spec=spec, status=status)
    return _moved(event, notice, phase, node, words, now)


def _moved(
    event: InfraEvent, notice: Notice, phase: InfraPhase | None, node: Node | None, words: Vocabulary, now: datetime
) -> InfraEvent:
    before = event.status
    again = _published_later(event, notice)
    if before.terminal and not (again and phase not in TERMINAL):
        return event
    if _backwards(before.phase, phase, words) and not before.terminal:
        return event
    after = copy.deepcopy(event)
    status = after.status
    if phase is not None and (status.phase != phase or again):
        status.phase, status.since = phase, rfc3339(now)
        status.phase_boot_id = node.boot_id if node is not None and _same(node, event) else status.phase_boot_id
    status.terminal = status.phase in TERMINAL
    status.upstream_phase, status.published = notice.phase, notice.published or status.published
    after.spec.not_before = notice.not_before or after.spec.not_before
    _say_understood(after, notice, phase, words, now)
    if before.last_seen is None or now - parse_time(before.last_seen) >= SEEN_AGAIN:
        status.last_seen = rfc3339(now)
    return after


def _same(node: Node, event: InfraEvent) -> bool:
    return node.uid == event.spec.node.uid


def _published_later(event: InfraEvent, notice: Notice) -> bool:
    before = event.status.published
    return bool(before and notice.published) and parse_time(notice.published or "") > parse_time(before or "")


def _backwards(before: str, phase: InfraPhase | None, words: Vocabulary) -> bool:
    if words.moves_back or phase is None:
        return False
    return before in RANK and phase in RANK and RANK[phase] < RANK[InfraPhase(before)]


def _say_understood(
    event: InfraEvent, notice: Notice, phase: InfraPhase | None, words: Vocabulary, now: datetime
) -> None:
    kind = words.kind(event.spec.type, notice.phase)
    unknown = [f"phase {notice.phase!r}"] if phase is None else []
    unknown += [f"type {event.spec.type!r}"] if kind is None else []
    said = "False" if unknown else "True"
    message = f"{event.spec.source} says {', '.join(unknown)}, which this version does not know" if unknown else ""
    old = next((c for c in event.status.conditions if c.type == UNDERSTOOD), None)
    since = old.last_transition_time if old is not None and old.status == said else rfc3339(now)
    never = phase is None and (old is None or old.reason == NEVER)
    reason = NEVER if never else "UnknownWord" if unknown else "Known"
    made = Condition(type=UNDERSTOOD, status=said, reason=reason, message=message, last_transition_time=since)
    event.status.conditions = [c for c in event.status.conditions if c.type != UNDERSTOOD] + [made]


def never_understood(event: InfraEvent) -> bool:
    return any(c.reason == NEVER for c in event.status.conditions if c.type == UNDERSTOOD)
