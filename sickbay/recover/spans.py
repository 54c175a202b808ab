"""Phases of a rank's life, read from its log: when it entered and left each (`hang.phases` of a RecoveryPolicy).

A log is read from its end with the kubelet's timestamps, each time anew, so nothing has to be remembered of earlier
reads. What has scrolled out of the part that is read is not known, and an unknown phase excuses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sickbay.api.pattern import Pattern, PatternError
from sickbay.api.recovery_policy import HangPhase
from sickbay.recover.signs import moment


@dataclass(frozen=True)
class Span:
    """One phase of one rank."""

    entered: datetime | None = None
    """When the last line was written that begins it."""
    left: datetime | None = None
    """When the last line was written that ends it."""
    inside: bool = False
    """The last beginning has no end yet."""


def read_spans(log: str, phases: Sequence[HangPhase]) -> dict[str, Span]:
    """By name of the phase. `log`: lines that begin with an RFC 3339 time and a space."""
    lines = [line.partition(" ") for line in log.splitlines()]
    texts = [text for _, _, text in lines]
    found = {}
    for phase in phases:
        first, last = _last(texts, phase.from_), _last(texts, phase.to)
        entered = moment(lines[first][0]) if first is not None else None
        left = moment(lines[last][0]) if last is not None else None
        inside = first is not None and entered is not None and (last is None or last < first)
        found[phase.name] = Span(entered, left, inside)
    return found


def _last(texts: Sequence[str], pattern: str) -> int | None:
    """Number of the last line in which the pattern is found. An empty pattern is found nowhere."""
    try:
        whole = Pattern.compile(f"(?m:{pattern})") if pattern else None
    except PatternError:
        return None  # the policy says so in its condition Valid
    if whole is None:
        return None
    return _last_within(texts, whole, 0, len(texts))


def _last_within(texts: Sequence[str], pattern: Pattern, start: int, end: int) -> int | None:
    """By halves: to search a long text costs hardly more than a line."""
    if start >= end or not pattern.found_in("\n".join(texts[start:end])):
        return None
    if end - start == 1:
        return start
    middle = (start + end) // 2
    later = _last_within(texts, pattern, middle, end)
    return later if later is not None else _last_within(texts, pattern, start, middle)
