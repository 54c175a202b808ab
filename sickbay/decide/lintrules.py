"""What of a rule can be accepted and then never work, or take more with it than its author may think."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sickbay.api import names
from sickbay.api.actions import ACTIONS
from sickbay.api.duration import parse_duration
from sickbay.api.repair_rule import RepairRule, RuleEntry
from sickbay.api.words import DrainTimeout, Step
from sickbay.decide import entries, lintsteps
from sickbay.decide.actionable import wants_repair
from sickbay.decide.catalogue import Catalogue

Said = tuple[bool, str, str]
"""Whether it is an error, the path, and the words."""


PREFIXES = tuple(names.APPROVAL_PREFIXES)


def rule(found: RepairRule, known: Catalogue) -> Iterator[Said]:
    """All that is to be said of a rule's entries."""
    prefix = found.spec.approval_prefix
    if prefix not in PREFIXES and any(step.approval for entry in found.spec.rules for step in entry.procedure):
        text = f"{prefix} is none of {', '.join(PREFIXES)}: the controller has to be told with --approval-prefix or"
        yield False, "spec.approvalPrefix", f"{text} --approval-forms, or the gates of this rule cannot be asked"
    for i, (entry, faults) in enumerate(entries.reached(found.spec.rules, known.types)):
        path = f"spec.rules[{i}]"
        yield from unknown(f"{path}.faults.names", entry.faults.names, known, "it never matches")
        matching = entries.matching(entry, known.types)
        if matching and not faults:
            yield False, path, f"entry {entry.name} is never reached: earlier entries match all of it"
        elif not matching:
            yield from _idle(path, entry, known)
        yield from _irreversible(path, entry, faults, known)
        yield from _left_behind(path, entry, faults, known)
        yield from _endless(path, entry)
        yield from lintsteps.steps(path, entry, faults, known)
        invalid = entries.skips_into_act(entry, faults, known.types)
        if invalid:
            yield True, f"{path}.procedure", invalid


def _idle(path: str, entry: RuleEntry, known: Catalogue) -> Iterator[Said]:
    """An entry that no fault comes to. Of names that nobody knows something is said already."""
    named = [name for name in entry.faults.names if name in known.types]
    for name in named:
        if not wants_repair(known.types[name]):
            yield False, f"{path}.faults.names", f"{name} asks for no repair of the node: the entry does nothing for it"
        elif not entry.faults.matches(name, *_keys(known, name)):
            yield False, f"{path}.faults", f"{name} is left out by the other keys: all that are given must match"
    if not entry.faults.names:
        yield False, path, f"entry {entry.name} matches no fault type that asks for a repair"


def _keys(known: Catalogue, name: str) -> tuple[str, str, dict[str, str]]:
    spec = known.types[name].spec
    return spec.class_ or "", spec.severity or "", spec.labels or {}


def unknown(path: str, names: Iterable[str], known: Catalogue, so: str) -> Iterator[Said]:
    """Names of fault types that nobody knows, and what follows from that."""
    for name in names:
        if name not in known.types:
            yield False, path, f"{name} is no fault type of the catalogue or of these files: {so}"


def _irreversible(path: str, entry: RuleEntry, faults: set[str], known: Catalogue) -> Iterator[Said]:
    repair = entry.step(Step.REPAIR)
    if repair is None or repair.approval is not None:
        return
    risky = sorted(a for a in entries.acts(entry, faults, known.types) if ACTIONS[a].asks_first)
    if risky:
        text = f"{', '.join(risky)} cannot be undone and has no gate here: people are asked unless localDataDisposable"
        yield False, f"{path}.procedure", text


def _left_behind(path: str, entry: RuleEntry, faults: set[str], known: Catalogue) -> Iterator[Said]:
    drain = entry.step(Step.DRAIN)
    if drain is None or drain.on_timeout != DrainTimeout.CONTINUE:
        return
    node_wide = entries.emptying(entries.acts(entry, faults, known.types))
    if node_wide:
        text = "Drain goes on when its time is over (onTimeout Continue): what is left on the node dies with it in "
        remedy = "use Escalate or RollBack unless that is meant"
        yield False, f"{path}.procedure", f"{text}{', '.join(node_wide)}; {remedy}"


def _endless(path: str, entry: RuleEntry) -> Iterator[Said]:
    validate = entry.step(Step.VALIDATE)
    if validate is None or validate.soak is None or validate.ceiling is None:
        return
    if parse_duration(validate.soak) > parse_duration(validate.ceiling):
        text = f"soak {validate.soak} is above the ceiling {validate.ceiling}: no validation can pass; raise ceiling"
        yield True, f"{path}.procedure", text
