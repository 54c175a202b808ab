"""What of a fault type's matches can be accepted and then never be seen."""

from __future__ import annotations

from collections.abc import Iterator

from sickbay.api import entries
from sickbay.api.fault_type import FaultType

Said = tuple[bool, str, str]
"""Whether it is an error, the path, and the words."""


def matches(found: FaultType) -> Iterator[Said]:
    """Of a merged type. An empty list over a built-in entry is how that one is switched off, and is not mentioned."""
    if found.spec.match is not None and not found.spec.match and found.metadata.name not in entries.merged(()):
        yield False, "spec.match", "empty: nothing is ever recognised as this fault; give a match"
    for i, match in enumerate(found.spec.match or ()):
        if match.event is not None and match.event.count == 0:
            yield True, f"spec.match[{i}].event.count", "0: no event is needed for it; use at least 1"
