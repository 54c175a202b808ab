"""Maintenance and blackout windows: when a pool's repairs may start.

A window begins at each match of its cron expression in its time zone and lasts for its duration. Starts happen only
inside an Allow window (where there is any) and never inside a Deny window.

Cron expressions have five fields (minute hour day-of-month month day-of-week) with `*`, lists, ranges, steps and
English names. As in cron, when both day fields are restricted either may match. Local times that a change to summer
time skips are taken as the moment of the change; times that occur twice count once, at their first occurrence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sickbay.api.duration import parse_duration
from sickbay.api.repair_pool import Window
from sickbay.api.words import WindowKind

MONTHS = dict(zip(("jan", "feb", "mar", "apr", "may", "jun"), range(1, 7), strict=True)) | dict(
    zip(("jul", "aug", "sep", "oct", "nov", "dec"), range(7, 13), strict=True)
)
DAYS = dict(zip(("sun", "mon", "tue", "wed", "thu", "fri", "sat"), range(7), strict=True))
FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7))
LONGEST = timedelta(days=366 * 4 + 1)
"""How far back and ahead a match is sought: 29 February comes at least every 4 years (8 around 2100)."""


@dataclass(frozen=True)
class Cron:
    """A parsed expression."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def on(self, day: datetime) -> bool:
        """True when the expression matches some time of this day."""
        if day.month not in self.months:
            return False
        by_date, by_weekday = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_date and by_weekday
        return by_date or by_weekday


@lru_cache(maxsize=256)
def parse_cron(text: str) -> Cron:
    """Raises ValueError that names the field and the value."""
    fields = text.split()
    if len(fields) != 5:
        raise ValueError(f"cron {text!r} has {len(fields)} fields; write minute hour day month weekday")
    values = [
        _field(part, *FIELDS[i], names=(MONTHS if i == 3 else DAYS if i == 4 else {})) for i, part in enumerate(fields)
    ]
    weekdays = frozenset(0 if day == 7 else day for day in values[4])
    return Cron(values[0], values[1], values[2], values[3], weekdays, fields[2] == "*", fields[4] == "*")


def _field(text: str, what: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, what, 1, high, {}) if slash else 1
        if span == "*":
            first, last = low, high
        elif "-" in span:
            begin, _, end = span.partition("-")
            first, last = _number(begin, what, low, high, names), _number(end, what, low, high, names)
        else:
            first = _number(span, what, low, high, names)
            last = high if slash else first
        if first > last:
            raise ValueError(f"{what} {part!r} runs backwards; write it as two parts")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, what: str, low: int, high: int, names: dict[str, int]) -> int:
    value = names.get(text.lower()[:3]) if text.isalpha() else int(text) if text.isdigit() else None
    if value is None or not low <= value <= high:
        raise ValueError(f"{what} {text!r} is not a number from {low} to {high}")
    return value


def problem(windows: Iterable[Window]) -> str:
    """What is wrong with the first window that cannot be read, with its place; "" when all can."""
    for number, window in enumerate(windows):
        try:
            parse_cron(window.cron)
            zone(window.zone)
            parse_duration(window.duration)
        except ValueError as error:
            return f"spec.windows[{number}]: {error}; nothing starts until it is mended"
    return ""


def zone(name: str) -> ZoneInfo:
    """Raises ValueError for a name that is no IANA time zone."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{name!r} is no IANA time zone; write one such as Europe/Berlin or UTC") from None


def last_start(cron: Cron, where: ZoneInfo, now: datetime) -> datetime | None:
    """The latest match at or before `now`, in UTC."""
    return _seek(cron, where, now, -1)


def next_start(cron: Cron, where: ZoneInfo, now: datetime) -> datetime | None:
    """The earliest match after `now`, in UTC."""
    return _seek(cron, where, now, +1)


def _seek(cron: Cron, where: ZoneInfo, now: datetime, direction: int) -> datetime | None:
    local = now.astimezone(where)
    # One day further to both sides: a change of the zone's offset can move a match over midnight.
    day = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None) - timedelta(days=direction)
    for _ in range(LONGEST.days):
        if cron.on(day):
            moments = sorted(_moments(cron, where, day), reverse=direction < 0)
            for moment in moments:
                if (moment <= now) if direction < 0 else (moment > now):
                    return moment
        day += timedelta(days=direction)
    return None


def _moments(cron: Cron, where: ZoneInfo, day: datetime) -> Iterable[datetime]:
    for hour in cron.hours:
        for minute in cron.minutes:
            yield day.replace(hour=hour, minute=minute, tzinfo=where, fold=0).astimezone(UTC)


def inside(window: Window, now: datetime) -> bool:
    """True while the window is open. Raises ValueError for a window that cannot be read."""
    start = last_start(parse_cron(window.cron), zone(window.zone), now)
    return start is not None and now < start + parse_duration(window.duration)


def refusal(windows: Iterable[Window], now: datetime) -> str:
    """Why nothing may start now; "" when it may. A window that cannot be read lets nothing start."""
    allows, open_allow = [], False
    try:
        for window in windows:
            if window.kind == WindowKind.DENY and inside(window, now):
                return f"inside the Deny window {window.cron!r} ({window.zone})"
            if window.kind != WindowKind.DENY:
                allows.append(window)
                open_allow = open_allow or inside(window, now)
    except ValueError as error:
        return f"a window cannot be read: {error}"
    if allows and not open_allow:
        return "outside every Allow window"
    return ""


def next_change(windows: Iterable[Window], now: datetime) -> datetime | None:
    """When a window next opens or closes; None without a readable window."""
    moments: list[datetime] = []
    for window in windows:
        try:
            cron, where, length = parse_cron(window.cron), zone(window.zone), parse_duration(window.duration)
        except ValueError:
            continue
        begun, begins = last_start(cron, where, now), next_start(cron, where, now)
        if begun is not None and begun + length > now:
            moments.append(begun + length)
        if begins is not None:
            moments.append(begins)
    return min(moments, default=None)
