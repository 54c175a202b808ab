"""When a line was printed, as far as it says: enough to tell how long after another it came.

Lines carry seconds since boot, a wall time, both or neither, and one input may mix them. Two lines are compared on a
clock they share. Without one, neighbours count as simultaneous: a log without times is read in the order it was
written, and a burst stands together in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sickbay.detect.record import Record

NEIGHBOURS = 20
"""Lines without a common clock that are at most so far apart belong to one burst: the longest message known (an XID 119
with its dump of RPC entries) has about as many."""

_YEAR_SECONDS = 366 * 86400.0
"""A year-less syslog time that goes back by more than half of this has passed New Year."""


@dataclass(slots=True)
class Moment:
    uptime: float | None
    wall: float | None
    line: int

    @classmethod
    def of(cls, record: Record, line: int) -> Moment:
        return cls(record.uptime, record.wall, line)

    def until(self, later: Moment) -> float:
        """Seconds from here to `later`; infinity when they are of different boots or cannot be compared."""
        if self.uptime is not None and later.uptime is not None:
            passed = later.uptime - self.uptime
            return passed if passed > -1.0 else math.inf
        if self.wall is not None and later.wall is not None:
            passed = later.wall - self.wall
            if passed < -_YEAR_SECONDS / 2:
                passed += _YEAR_SECONDS
            return abs(passed)
        return 0.0 if later.line - self.line <= NEIGHBOURS else math.inf
