"""What of a rule can be accepted and then never work, or take more with it than its author may think."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sickbay.api.actions import ACTIONS
from sickbay.api.duration import parse_duration
from sickbay.api.repair_rule import RepairRule, RuleEntry
from sickbay.api.words import DrainTimeout, Step
from sickbay.decide import entries
from sickbay.decide.catalogue import Catalogue

Said = tuple[bool, str, str]
"""Whether it is an error, the path, and the words."""


def rule(found: RepairRule, known: Catalogue) -> Iterator[Said]:
    """All that is to be said of a rule's entries."""
    for i, (entry, faults) in enumerate(entries.reached(found.spec.rules, known.types)):
        path = f"spec.rules[{i}]"
        yield from unknown(f"{path}.faults.names", entry.faults.names, known, "it never matches")
        matching = entries.matching(entry, known.types)
        if matching and not faults:
            yield False, path, f"entry {entry.name} is never reached: earlier entries match all of it"
        elif not matching and not entry.faults.names:
            yield False, path, f"entry {entry.name} matches no fault type that asks for a repair"
        yield from _irreversible(path, entry, faults, known)
        yield from _left_behind(path, entry, faults, known)
        yield from _endless(path, entry)
        invalid = entries.skips_into_act(entry, faults, known.types)
        if invalid:
            yield True, f"{path}.procedure", invalid


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
