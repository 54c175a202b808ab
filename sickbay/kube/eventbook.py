"""Which Events are worth writing: repetitions become one Event with a count, and no object gets a flood. No I/O.

The same words about the same object within a window are one series: its Event is written once and then its count and
last time brought up to date, at most every few seconds. New series of one object are limited by a bucket of tokens; one
that is held back keeps counting and is written when it repeats after the bucket has filled again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from sickbay.api.core import ObjectReference

WINDOW = 600.0
"""Seconds within which a repetition belongs to the series (client-go: 10 minutes)."""

UPDATE_EVERY = 10.0
"""Seconds between two writes of one series."""

BURST = 25
REFILL = 60.0
"""New series of one object at once, and seconds until one more. (client-go allows 25, then one in 5 minutes; the
transitions of a repair are worth more than that.)"""

REMEMBERED = 4096
"""Series kept at most; the longest silent are forgotten first. The same as client-go's cache."""

SeriesKey = tuple[str, str, str, str, str, str, str]


@dataclass(slots=True)
class Series:
    """One Event and its repetitions."""

    regarding: ObjectReference
    type: str
    reason: str
    message: str
    action: str
    first: datetime
    last: datetime
    seen: float
    count: int = 0
    related: ObjectReference | None = None
    name: str = ""
    """Of the Event once it exists."""
    written: int = 0
    """The count that the Event shows."""
    due: float = 0.0
    """Monotonic time before which the Event is not written again."""


class _Bucket:
    __slots__ = ("at", "tokens")

    def __init__(self, at: float) -> None:
        self.tokens = float(BURST)
        self.at = at

    def take(self, now: float) -> bool:
        self.tokens = min(float(BURST), self.tokens + (now - self.at) / REFILL)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class EventBook:
    """See the module. `now` is wall time for the Event, `at` monotonic seconds for the limits."""

    def __init__(self) -> None:
        self._series: OrderedDict[SeriesKey, Series] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, str, str, str], _Bucket] = OrderedDict()
        self._pending: dict[SeriesKey, None] = {}

    @property
    def pending(self) -> int:
        """Series that wait to be written."""
        return len(self._pending)

    def note(
        self, regarding: ObjectReference, type_: str, reason: str, message: str, action: str, now: datetime, at: float,
        related: ObjectReference | None = None,
    ) -> bool:  # fmt: skip
        """Take an occurrence in. Returns False where it is held back: too many about this object."""
        thing = (regarding.kind, regarding.namespace, regarding.name, regarding.uid)
        key = (*thing, type_, reason, message)
        series = self._series.pop(key, None)
        if series is None or at - series.seen > WINDOW:
            series = Series(regarding, type_, reason, message, action, now, now, at, related=related)
        series.count += 1
        series.last, series.seen = now, at
        self._series[key] = series
        allowed = bool(series.name) or key in self._pending or self._bucket(thing, at).take(at)
        if allowed:
            self._pending[key] = None
        self._forget(at)
        return allowed

    def due(self, at: float) -> list[Series]:
        """The series to write now, taken off the list; those written a moment ago stay on it."""
        ready = [key for key in self._pending if (found := self._series.get(key)) is None or found.due <= at]
        for key in ready:
            del self._pending[key]
        return [self._series[key] for key in ready if key in self._series]

    def next_due(self) -> float | None:
        """When the next series may be written."""
        return min((self._series[key].due for key in self._pending if key in self._series), default=None)

    def _bucket(self, thing: tuple[str, str, str, str], at: float) -> _Bucket:
        bucket = self._buckets.pop(thing, None) or _Bucket(at)
        self._buckets[thing] = bucket
        return bucket

    def _forget(self, at: float) -> None:
        """What no repetition can join any more, and buckets that are full again; the longest silent first."""
        while self._series and self._over(next(iter(self._series)), at):
            key, _ = self._series.popitem(last=False)
            self._pending.pop(key, None)
        while self._buckets and self._full(next(iter(self._buckets.values())), at):
            self._buckets.popitem(last=False)

    def _over(self, key: SeriesKey, at: float) -> bool:
        if len(self._series) > REMEMBERED:
            return True
        return at - self._series[key].seen > WINDOW and key not in self._pending

    def _full(self, bucket: _Bucket, at: float) -> bool:
        return len(self._buckets) > REMEMBERED or at - bucket.at >= BURST * REFILL
