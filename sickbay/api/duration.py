"""Durations as they stand in objects: Go's form, plus days (`90s`, `30m`, `1h30m`, `1.5h`, `7d`)."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache

_NUMBER = r"[0-9]+(\.[0-9]+)?"
_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
"""In milliseconds, which is as fine as a duration gets."""

PATTERN = "^" + "".join(f"({_NUMBER}{unit})?" for unit in _UNITS) + "$"
"""What the API server accepts: at least one part (minLength 2), largest unit first, each at most once; `1.5h` too."""
MAX_LENGTH = 32

_PARTS = re.compile("".join(rf"(?:(?P<{unit}>[0-9]+(?:\.[0-9]+)?){unit})?" for unit in _UNITS))


@lru_cache(maxsize=4096)
def parse_duration(text: str) -> timedelta:
    """Read a duration. Raises ValueError naming the text and the form when it is none."""
    match = _PARTS.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ValueError(f"not a duration: {text!r} (write it like 90s, 30m, 1h30m or 7d)")
    parts = match.groupdict(default="0")
    try:
        return timedelta(milliseconds=int(sum(Fraction(parts[unit]) * size for unit, size in _UNITS.items())))
    except OverflowError:
        raise ValueError(f"duration too long: {text!r}") from None


def format_duration(span: timedelta) -> str:
    """Write a duration in the same form, days and hours only where they are whole parts: 90s is `1m30s`, 0 is `0s`.

    Rounded down to milliseconds. Raises ValueError for a negative one.
    """
    if span < timedelta(0):
        raise ValueError(f"negative duration: {span}")
    rest = span // timedelta(milliseconds=1)
    text = ""
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            text += f"{count}{unit}"
    return text or "0s"
