"""Whether a node condition is what a FaultType's `match.condition` means: decide and the job loop ask the same."""

from __future__ import annotations

from dataclasses import dataclass

from sickbay.api.pattern import Pattern


@dataclass(frozen=True, slots=True)
class ConditionTest:
    """Status must be equal; the reason must match `reason` and not `not_reason`, where they are given."""

    status: str
    reason: Pattern | None
    not_reason: Pattern | None = None

    def holds(self, status: str, reason: str) -> bool:
        if status != self.status or (self.not_reason is not None and self.not_reason.found_in(reason)):
            return False
        return self.reason is None or self.reason.found_in(reason)
