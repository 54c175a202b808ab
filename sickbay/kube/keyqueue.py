"""The bookkeeping of a work queue: which key is served next, which sleeps, which is in work. No I/O, no clock.

Every method that needs the time takes it as an argument (seconds, monotonic). See `workqueue` for the promises.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)

HEAD_START = 30.0
"""Seconds that one step of priority is worth."""

_SLACK = 64
"""Outdated heap entries tolerated beyond the live ones before the heap is rebuilt."""


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A key in the queue: since when, how urgent, and its place among equals."""

    since: float
    priority: int
    place: int

    @property
    def rank(self) -> float:
        return self.since - self.priority * HEAD_START


class Alarm(msgspec.Struct, frozen=True, gc=False):
    """A key that shall be added at a moment."""

    when: float
    priority: int
    place: int


class KeyQueue(Generic[K]):
    """See the module."""

    def __init__(self) -> None:
        self._places = 0
        self._waiting: dict[K, Waiting] = {}
        self._order: list[tuple[float, int, K]] = []
        self._alarms: dict[K, Alarm] = {}
        self._alarm_order: list[tuple[float, int, K]] = []
        self._working: dict[K, Waiting] = {}
        self._again: dict[K, int] = {}
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        """Keys that wait to be taken."""
        return len(self._waiting)

    @property
    def asleep(self) -> int:
        """Keys with an alarm."""
        return len(self._alarms)

    @property
    def in_work(self) -> int:
        return len(self._working)

    def add(self, key: K, now: float, priority: int = 0) -> None:
        """Let the key be looked at. Already waiting: at most its priority rises; in work: it waits again afterwards."""
        if key in self._working:
            self._again[key] = max(priority, self._again.get(key, priority))
            return
        known = self._waiting.get(key)
        if known is None:
            self._wait(key, Waiting(now, priority, self._next_place()))
        elif priority > known.priority:
            self._wait(key, Waiting(known.since, priority, known.place))

    def add_at(self, key: K, when: float, priority: int = 0) -> None:
        """Add the key at that moment; of several wishes the earliest counts, with the highest priority."""
        known = self._alarms.get(key)
        if known is not None:
            priority = max(priority, known.priority)
            if when >= known.when:
                self._alarms[key] = Alarm(known.when, priority, known.place)
                return
        alarm = self._alarms[key] = Alarm(when, priority, self._next_place())
        heapq.heappush(self._alarm_order, (when, alarm.place, key))
        if len(self._alarm_order) > 2 * len(self._alarms) + _SLACK:
            self._alarm_order = [(each.when, each.place, name) for name, each in self._alarms.items()]
            heapq.heapify(self._alarm_order)

    def ring(self, now: float) -> int:
        """Add the keys whose moment has come. Returns how many."""
        rung = 0
        while self._alarm_order and self._alarm_order[0][0] <= now:
            _, place, key = heapq.heappop(self._alarm_order)
            alarm = self._alarms.get(key)
            if alarm is None or alarm.place != place:
                continue
            del self._alarms[key]
            self.add(key, now, alarm.priority)
            rung += 1
        return rung

    def next_alarm(self) -> float | None:
        """The moment of the next alarm."""
        while self._alarm_order:
            when, place, key = self._alarm_order[0]
            alarm = self._alarms.get(key)
            if alarm is not None and alarm.place == place:
                return when
            heapq.heappop(self._alarm_order)
        return None

    def take(self) -> tuple[K, Waiting] | None:
        """The key whose turn it is, now in work; None when none waits."""
        while self._order:
            rank, place, key = heapq.heappop(self._order)
            known = self._waiting.get(key)
            if known is None or known.place != place or known.rank != rank:
                continue
            del self._waiting[key]
            self._working[key] = known
            return key, known
        return None

    def done(self, key: K, now: float) -> bool:
        """The worker has finished. Returns whether the key waits again because it was added meanwhile."""
        del self._working[key]
        priority = self._again.pop(key, None)
        if priority is None:
            return False
        self.add(key, now, priority)
        return True

    def fail(self, key: K) -> int:
        """Note a failure. Returns how many came before it since the last `forget`."""
        before = self._failures.get(key, 0)
        self._failures[key] = before + 1
        return before

    def forget(self, key: K) -> None:
        """It worked: the next failure counts as the first."""
        self._failures.pop(key, None)

    def priority(self, key: K) -> int:
        """The priority under which a key in work was taken; 0 for others."""
        known = self._working.get(key)
        return known.priority if known is not None else 0

    def _wait(self, key: K, waiting: Waiting) -> None:
        self._waiting[key] = waiting
        heapq.heappush(self._order, (waiting.rank, waiting.place, key))

    def _next_place(self) -> int:
        self._places += 1
        return self._places
