"""How often something happened, read from Events as they stand. Pure.

One Event object may stand for many occurrences: writers count repetitions in it (`count`, or `series`) and move only
its last time. Between first and last the occurrences count as evenly spread. All times are the writer's own and are
compared with each other only, so no clock of ours makes them more or fewer; and since they are read from the objects,
neither the order in which Events arrive, nor their repetition, nor a restart of ours changes the count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sickbay.api import names
from sickbay.api.core import Event, Node
from sickbay.clock import parse_time
from sickbay.convert.asked import EventTest

MOST = 512
"""Occurrences of one Event that are looked at, the latest of them; more only where a fault type asks for more."""
OUR_OWN = "sickbay-convert"
"""Events of convert are about its own conditions: they never make one."""


def matches(event: Event, test: EventTest) -> bool:
    """Whether an Event is what a fault type asks for. The source may stand in either of its two places."""
    sources = (event.reporting_component, event.source.component)
    if OUR_OWN in sources or event.reason != test.reason:
        return False
    return (not test.source or test.source in sources) and (not test.type or event.type == test.type)


def concerns(event: Event, node: Node) -> bool:
    """Whether an Event is about this Node and not about an earlier one of its name.

    Many detectors write the node's name in place of its UID, so the time of creation counts too: both are the API
    server's.
    """
    about = event.involved_object
    if about.name != node.name or about.uid not in ("", node.name, node.uid):
        return False
    made, born = event.metadata.creation_timestamp, node.metadata.creation_timestamp
    return not made or not born or parse_time(made) >= parse_time(born)


def occurrences(event: Event, most: int = MOST) -> list[datetime]:
    """When it happened, oldest first, the last so many. Empty for an Event without any readable time."""
    try:
        return _spread(event, most)
    except ValueError:
        return []


def _spread(event: Event, most: int) -> list[datetime]:
    series = event.series
    last_text = (series.last_observed_time if series is not None else None) or event.last_timestamp or event.event_time
    last_text = last_text or event.metadata.creation_timestamp
    if not last_text:
        return []
    last = parse_time(last_text)
    first_text = event.first_timestamp or event.event_time
    first = min(parse_time(first_text), last) if first_text else last
    count = max(1, (series.count if series is not None else 0) or event.count or 1)
    if count == 1:
        return [last]
    step = (last - first) / (count - 1)
    return [last - step * k for k in range(min(count, most) - 1, -1, -1)]


def evidence(
    events: Iterable[Event],
    test: EventTest,
    node: Node,
    created: str | None,
    after: datetime | None,
    judged: datetime | None = None,
) -> list[datetime]:
    """Every matching occurrence on the node, oldest first.

    created  when the fault type was made: what Events told before that was nobody's fault yet
    after    only what happened later than this (the evidence before was judged and is over)
    judged   when that was judged. An Event object made since then is new, though its writer's clock, which was ahead,
             has been set back to before `after`
    """
    found: list[datetime] = []
    for event in events:
        if matches(event, test) and concerns(event, node):
            since = _not_before(event, created)
            times = occurrences(event, max(MOST, test.count))
            over = None if _told_since(event, after, judged) else after
            found += [t for t in times if (since is None or t > since) and (over is None or t > over)]
    return sorted(found)


def _told_since(event: Event, after: datetime | None, judged: datetime | None) -> bool:
    """The server made the Event after the judgement, and the evidence of that lay in the future even then."""
    made = event.metadata.creation_timestamp
    if not made or after is None or judged is None:
        return False
    return judged < parse_time(made) < after


def _not_before(event: Event, created: str | None) -> datetime | None:
    """The type's creation, for an Event that was there already; None for one that came after it."""
    if created is None:
        return None
    made = event.metadata.creation_timestamp
    return None if made and parse_time(made) >= parse_time(created) else parse_time(created)


def by_device(events: Iterable[Event]) -> list[list[Event]]:
    """Apart for each device that the Events name (`related`, as our agent writes it): that three cards have met
    something once says less of any of them than that one has met it three times."""
    groups: dict[str, list[Event]] = {}
    for event in events:
        related = event.related
        device = related.name if related is not None and related.kind == names.DEVICE else ""
        groups.setdefault(device, []).append(event)
    return [group for _, group in sorted(groups.items())]


def reached(times: Sequence[datetime], test: EventTest) -> bool:
    """Whether so many happened within one window."""
    window, apart = timedelta(seconds=test.window), test.count - 1
    return any(times[k + apart] - times[k] <= window for k in range(len(times) - apart))
