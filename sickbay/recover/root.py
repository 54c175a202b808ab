"""Which rank failed first. The others are victims: a gang that loses one rank dies of it within seconds or minutes.

By time, not by who printed the error. Kubernetes keeps whole seconds, so ends within one second of the first one are
told apart by what they show: a cause before a plain exit, a plain exit before a symptom (a collective's timeout, an
abort), and SIGTERM, which only says that somebody was tidying up, last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sickbay.recover.ends import SIGABRT, End
from sickbay.recover.logs import Reading, Shows

SAME_MOMENT = timedelta(seconds=1)


def root_of(ends: Sequence[End], readings: Mapping[str, Reading]) -> End | None:
    """The end that came first; None where there is none. `readings` by pod UID."""
    candidates = [end for end in ends if not end.terminated] or list(ends)
    if not candidates:
        return None
    first = min(end.at for end in candidates)
    close = [end for end in candidates if end.at - first <= SAME_MOMENT]
    return min(close, key=lambda end: (_weight(end, readings.get(end.uid)), end.at, natural(end.rank)))


def _weight(end: End, reading: Reading | None) -> int:
    if end.how in ("OutOfMemory", "NodeLost", "Refused", "Missing"):
        return 0
    shows = reading.shows if reading is not None else Shows.NOTHING
    if shows in (Shows.HARDWARE, Shows.WORKLOAD):
        return 0
    if end.terminated:
        return 4 if end.how == "Deleted" else 3
    return 2 if shows is Shows.SYMPTOM or end.signal == SIGABRT else 1


def natural(rank: str) -> tuple[str, int]:
    """Sorts rank 2 before rank 10."""
    head, _, tail = rank.rpartition("-")
    return (head, int(tail)) if tail.isdecimal() else (rank, 0)
