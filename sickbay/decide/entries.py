"""Which faults reach the entries of a rule, what would be done for them, and what of it cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sickbay.api.actions import ACTIONS, needs_empty_node
from sickbay.api.fault_type import FaultType
from sickbay.api.repair_rule import RepairRule, RuleEntry
from sickbay.api.words import ApprovalTimeout, Step
from sickbay.decide.actionable import wants_repair


def matching(entry: RuleEntry, types: Mapping[str, FaultType]) -> set[str]:
    """Names of the fault types that the entry matches and that ask anything of a node."""
    return {name for name, fault in types.items() if wants_repair(fault) and _matches(entry, name, fault)}


def _matches(entry: RuleEntry, name: str, fault: FaultType) -> bool:
    spec = fault.spec
    return entry.faults.matches(name, spec.class_ or "", spec.severity or "", spec.labels or {})


def reached(entries: Iterable[RuleEntry], types: Mapping[str, FaultType]) -> Iterator[tuple[RuleEntry, set[str]]]:
    """Each entry with the fault types that come to it: those that it matches and no earlier one does."""
    earlier: set[str] = set()
    for entry in entries:
        found = matching(entry, types)
        yield entry, found - earlier
        earlier |= found


def acts(entry: RuleEntry, faults: Iterable[str], types: Mapping[str, FaultType]) -> set[str]:
    """Names of the remedies that Repair may come to; none where the entry has no Repair."""
    repair = entry.step(Step.REPAIR)
    if repair is None:
        return set()
    return {repair.action} if repair.action else {r.action for f in faults for r in types[f].spec.remedy or ()}


def emptying(actions: Iterable[str]) -> list[str]:
    """Those that take the whole node down, in alphabetical order; one that this version does not know counts."""
    return sorted(action for action in actions if action not in ACTIONS or needs_empty_node(action))


def skips_into_act(entry: RuleEntry, faults: Iterable[str], types: Mapping[str, FaultType]) -> str:
    """Why the entry is invalid: silence before its Quarantine would leave that out, and a node in service would go
    down. "" when it is not. The API server refuses the like before a Drain; what Repair comes to it cannot know.
    """
    quarantine = entry.step(Step.QUARANTINE)
    gate = quarantine.approval if quarantine is not None else None
    if gate is None or gate.on_timeout != ApprovalTimeout.SKIP or entry.step(Step.DRAIN) is not None:
        return ""
    node_wide = emptying(acts(entry, faults, types))
    if not node_wide:
        return ""
    return (
        f"onTimeout Skip would go to {', '.join(node_wide)} without Quarantine; "
        "use Escalate or Abort on Quarantine, or a Repair that leaves the node running"
    )


def invalid(rule: RepairRule, types: Mapping[str, FaultType]) -> dict[str, str]:
    """Names of the entries that cannot be followed as they stand, with the reason and the remedy."""
    said = {entry.name: skips_into_act(entry, faults, types) for entry, faults in reached(rule.spec.rules, types)}
    return {name: text for name, text in said.items() if text}
