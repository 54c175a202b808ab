"""One entry of a provider's list, in normal form: what every source is brought into before anything is decided.

The words for type and phase stay the provider's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

import msgspec

from sickbay.clock import parse_time, rfc3339

CHINA = timezone(timedelta(hours=8))
"""Zone of times that Lingjun writes without one (by convention; not documented)."""


class Undecodable(ValueError):
    """A payload that is not what its source sends; the text names what is wrong with it."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """See the module. `id` with `source` is what the event is; of one event for several machines each is one."""

    source: str
    id: str
    type: str
    phase: str
    resource: str = ""
    """The provider's id of the machine."""
    node: str = ""
    """Name of the Node where the source knows it: what is read on the machine itself."""
    not_before: str | None = None
    """RFC 3339, UTC; None when the provider names no time."""
    published: str | None = None
    """RFC 3339: when this occurrence was published. Tells a new occurrence from a replay where ids are used again."""

    @property
    def key(self) -> tuple[str, str]:
        return self.source, self.id


def moment(value: object) -> str | None:
    """A provider's time as RFC 3339 in UTC; None for one that is absent, empty or unreadable.

    Read are ISO 8601 with `Z`, `+08:00` or the basic `+0800`, without a zone (China, see above), RFC 1123
    (`Mon, 21 Jan 2019 09:00:43 GMT`, also without the weekday), and milliseconds since the epoch. What cannot be read
    is no time: an event without one is still an event.
    """
    if isinstance(value, bool) or value is None:
        return None
    try:
        if isinstance(value, (int, float)):
            return rfc3339(datetime.fromtimestamp(value / 1000, UTC))
        return _text(str(value).strip())
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _text(text: str) -> str | None:
    if not text:
        return None
    if text.isdecimal():
        return rfc3339(datetime.fromtimestamp(int(text) / 1000, UTC))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return rfc3339(parsedate_to_datetime(text).astimezone(UTC))
    return rfc3339(found.replace(tzinfo=CHINA) if found.tzinfo is None else found)


def order(notice: Notice) -> tuple[str, str, str]:
    """A total order of the contents, so that it does not matter in which order a list has its entries."""
    published = notice.published or ""
    return (rfc3339(parse_time(published)) if published else "", notice.phase, msgspec.json.encode(notice).decode())


def distinct(notices: Iterable[Notice]) -> list[Notice]:
    """Every entry once, in a stable order."""
    return sorted(dict.fromkeys(notices), key=lambda notice: (notice.key, order(notice)))
