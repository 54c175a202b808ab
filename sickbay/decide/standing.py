"""What Sickbay says on the objects that people write: conditions of fault types and rules.

FaultType    Valid, MatchesTooMany, ExpressionFailed
RepairRule   Valid, EntriesReachable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from sickbay.api import names
from sickbay.api.fault_type import FaultType
from sickbay.api.meta import Condition
from sickbay.api.repair_rule import RepairRule, RuleEntry
from sickbay.clock import rfc3339
from sickbay.decide import entries, polarity

Said = tuple[str, bool, str, str]
"""Type, whether it is True, reason, message."""


def of_type(obj: Mapping[str, Any], problem: str, too_many: str, failing: Mapping[str, str]) -> list[Said]:
    """Of a FaultType. `failing`: nodes on which its expression fails, with the error."""
    valid = (names.VALID, not problem, "Incomplete" if problem else "AsExpected", problem)
    guard = (
        names.MATCHES_TOO_MANY,
        bool(too_many),
        "MatchesTooMany" if too_many else "Confirmed" if polarity.confirmed(obj) else "AsExpected",
        too_many,
    )
    if not failing:
        return [valid, guard, (names.EXPRESSION_FAILED, False, "AsExpected", "")]
    node = min(failing)
    more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
    text = f"on node {node}{more}: {failing[node]}; there it matches nothing"
    return [valid, guard, (names.EXPRESSION_FAILED, True, "ExpressionFailed", text)]


def of_rule(rule: RepairRule, types: Mapping[str, FaultType], prefix: Callable[[RepairRule], str]) -> list[Said]:
    """Of a RepairRule."""
    if not prefix(rule):
        prefix_name = rule.spec.approval_prefix
        valid = _invalid("UnknownPrefix", f"approvalPrefix {prefix_name!r} is not configured (--approval-prefix)")
    elif invalid := entries.invalid(rule, types):
        valid = _invalid("InvalidEntry", ". ".join(f"entry {name}: {text}" for name, text in invalid.items()))
    else:
        valid = (names.VALID, True, "AsExpected", "")
    hidden = unreachable(rule.spec.rules, types)
    text = "never reached, since earlier entries match all of it: " + ", ".join(hidden) if hidden else ""
    return [
        valid,
        (names.ENTRIES_REACHABLE, not hidden, "Unreachable" if hidden else "AsExpected", text),
    ]


def _invalid(reason: str, message: str) -> Said:
    return names.VALID, False, reason, message


def unreachable(rules: Iterable[RuleEntry], types: Mapping[str, FaultType]) -> list[str]:
    """Entries that no fault can reach because earlier ones match all that they match."""
    reached = entries.reached(rules, types)
    return [entry.name for entry, faults in reached if not faults and entries.matching(entry, types)]


def status(obj: Mapping[str, Any], said: Iterable[Said], now: datetime) -> dict[str, Any] | None:
    """The status as it has to be; None when it says all of this already."""
    generation, old = obj["metadata"].get("generation", 0), obj.get("status") or {}
    before = {c["type"]: c for c in old.get("conditions") or ()}
    wanted = [_condition(before.get(kind), kind, holds, why, text, generation, now) for kind, holds, why, text in said]
    kinds = {each["type"] for each in wanted}
    conditions = [c for c in old.get("conditions") or () if c["type"] not in kinds] + wanted
    if conditions == list(old.get("conditions") or ()) and old.get("observedGeneration") == generation:
        return None
    return {"observedGeneration": generation, "conditions": conditions}


def _condition(
    old: Mapping[str, Any] | None, kind: str, holds: bool, reason: str, message: str, generation: int, now: datetime
) -> dict[str, Any]:
    word = "True" if holds else "False"
    since = old.get("lastTransitionTime") if old is not None and old.get("status") == word else rfc3339(now)
    made = Condition(
        type=kind,
        status=word,
        observed_generation=generation,
        last_transition_time=since,
        reason=reason,
        message=message[:4096],
    )
    plain: dict[str, Any] = msgspec.to_builtins(made)
    return plain
