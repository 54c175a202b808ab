"""What changes when one catalogue takes the place of another: entry by entry, field by field, and what it comes to.

Two catalogues differ harmlessly (a text), or so that nodes are repaired that were left alone before. The latter is
said in words (`Change.effects`), and `overrides` gives the setting with which a pool only observes such entries first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sickbay.api.fault_type import FaultType
from sickbay.decide.actionable import wants_repair
from sickbay.decide.arbitration import CLASSES, SEVERITIES, strength

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
NAMES_MAX = 128
"""Names that one selector takes (RepairPool, spec.overrides[].faults.names)."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of an entry. Empty text where it is not given."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Change:
    """One entry that differs."""

    fault: str
    kind: str
    """added, removed or changed."""
    effects: list[str] = field(default_factory=list)
    """What it comes to, in words; empty when nothing is decided differently."""
    fields: list[FieldChange] = field(default_factory=list)

    @property
    def acts_more(self) -> bool:
        """Nodes may be treated that were left alone before, or more strongly than before."""
        return any(effect in _MORE for effect in self.effects)


REPAIRS, REPAIRS_NO_MORE = "asks for a repair now", "asks for no repair any more"
STRONGER, WEAKER, OTHER = "begins with a stronger remedy", "begins with a weaker remedy", "other remedies"
RANKS_HIGHER, RANKS_LOWER = "ranks higher", "ranks lower"
MATCHES, PROOF, URGENCY = "recognised otherwise", "proven gone otherwise", "other urgency"
_MORE = frozenset({REPAIRS, STRONGER, OTHER, RANKS_HIGHER, MATCHES, URGENCY})


def diff(old: Mapping[str, FaultType], new: Mapping[str, FaultType]) -> list[Change]:
    """All entries that differ, by name."""
    found = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        fields = list(_fields(before, after))
        if not fields:
            continue
        kind = ADDED if before is None else REMOVED if after is None else CHANGED
        found.append(Change(name, kind, list(_effects(before, after)), fields if kind == CHANGED else []))
    return found


def overrides(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """`RepairPool.spec.overrides` under which a pool only observes the entries that act more than before."""
    names = [change.fault for change in changes if change.acts_more]
    chunks = [names[i : i + NAMES_MAX] for i in range(0, len(names), NAMES_MAX)]
    return [{"faults": {"names": chunk}, "mode": "Observe"} for chunk in chunks]


def entries(documents: Iterable[Mapping[str, Any]]) -> dict[str, FaultType]:
    """FaultTypes by name. Raises ValueError naming the one that cannot be read."""
    found = {}
    for document in documents:
        meta = document.get("metadata")
        name = meta.get("name") if isinstance(meta, Mapping) else None
        if not isinstance(name, str) or not name:
            raise ValueError("a FaultType has no metadata.name; give it one")
        try:
            found[name] = msgspec.convert(dict(document), FaultType)
        except msgspec.ValidationError as error:
            raise ValueError(f"FaultType {name}: {error}") from None
    return found


def _effects(old: FaultType | None, new: FaultType | None) -> Iterator[str]:
    before, after = old is not None and wants_repair(old), new is not None and wants_repair(new)
    if before != after:
        yield REPAIRS if after else REPAIRS_NO_MORE
    if old is None or new is None or not after:
        return
    if before and old.spec.remedy != new.spec.remedy:
        change = strength(new) - strength(old)
        yield STRONGER if change > 0 else WEAKER if change < 0 else OTHER
    if (ranks := (_rank(old), _rank(new)))[0] != ranks[1]:
        yield RANKS_HIGHER if ranks[1] > ranks[0] else RANKS_LOWER
    if (old.spec.match, old.spec.for_) != (new.spec.match, new.spec.for_):
        yield MATCHES
    if old.spec.clears_by != new.spec.clears_by:
        yield PROOF
    if (old.spec.urgency or "Now") != (new.spec.urgency or "Now"):
        yield URGENCY


def _rank(fault: FaultType) -> tuple[int, int]:
    return CLASSES.get(fault.spec.class_ or "", 0), SEVERITIES.get(fault.spec.severity or "", 0)


def _fields(old: FaultType | None, new: FaultType | None) -> Iterator[FieldChange]:
    """The fields of the spec that differ; a list is compared as a whole, because its order matters."""
    before, after = dict(_flat(old)), dict(_flat(new))
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            yield FieldChange(path, before.get(path, ""), after.get(path, ""))


def _flat(fault: FaultType | None) -> Iterator[tuple[str, str]]:
    if fault is not None:
        yield from _below("", msgspec.to_builtins(fault.spec))


def _below(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _below(f"{path}.{key}" if path else key, each)
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
