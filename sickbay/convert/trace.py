"""What a condition made from Events says about its own evidence: the last of it, and the boot in which it stood.

It stands at the end of the condition's message, where people can read it and where it outlives the Events and any
restart of ours: `... (last 2027-03-01T08:00:00Z, boot 3f2a...)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from sickbay.api.core import NodeCondition
from sickbay.clock import parse_time, rfc3339_micro

_TAIL = re.compile(r"\(last (\S+), boot (\S*)\)$")


@dataclass(frozen=True, slots=True)
class Trace:
    last: datetime | None = None
    boot: str = ""

    def __str__(self) -> str:
        return f"(last {rfc3339_micro(self.last) if self.last is not None else '-'}, boot {self.boot})"


def is_from_events(condition: NodeCondition) -> bool:
    return _TAIL.search(condition.message) is not None


def read(condition: NodeCondition | None) -> Trace:
    """An empty one where the condition has none that can be read."""
    found = _TAIL.search(condition.message) if condition is not None else None
    if found is None:
        return Trace()
    try:
        return Trace(parse_time(found[1]), found[2])
    except ValueError:
        return Trace(None, found[2])
