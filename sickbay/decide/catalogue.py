"""Fault types in force: the built-in catalogue with `FaultType` objects merged over it, field by field.

A type that is not complete after the merge, or whose expression does not compile, is set aside with the reason and
never matches: a mistake in one entry must not make a node look sick, nor blind the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import msgspec

from sickbay.api import entries
from sickbay.api.cel import CelError, Program
from sickbay.api.conditiontest import ConditionTest
from sickbay.api.duration import parse_duration
from sickbay.api.fault_type import FaultType
from sickbay.api.names import condition_type
from sickbay.api.pattern import REMEDY, Pattern, PatternError

REQUIRED = ("class", "severity", "scope", "match", "remedy", "clearsBy")


@dataclass(frozen=True)
class Catalogue:
    """All usable fault types, indexed for a node's conditions."""

    version: str
    types: Mapping[str, FaultType]
    by_condition: Mapping[str, list[tuple[str, ConditionTest]]]
    by_cel: list[tuple[str, Program]]
    problems: Mapping[str, str] = field(default_factory=dict)
    """Why a type is set aside, by its name."""

    own: frozenset[str] = frozenset()
    """Types that people added: no built-in entry has their name."""

    def get(self, name: str) -> FaultType | None:
        return self.types.get(name)


def build(overrides: Iterable[Mapping[str, Any]] = ()) -> Catalogue:
    """The catalogue with these FaultType objects (as plain objects) merged over the built-in entries."""
    version, merged = entries.builtin()[0], entries.merged(overrides)
    builtin = entries.builtin()[1]
    types: dict[str, FaultType] = {}
    problems: dict[str, str] = {}
    by_condition: dict[str, list[tuple[str, ConditionTest]]] = {}
    by_cel: list[tuple[str, Program]] = []
    for name in sorted(merged):
        try:
            ready = _ready_builtin(name) if merged[name] is builtin.get(name) else _ready(name, merged[name])
        except (ValueError, CelError, msgspec.ValidationError) as err:
            problems[name] = str(err)
            continue
        types[name] = ready.entry
        for condition, test in ready.tests:
            by_condition.setdefault(condition, []).append((name, test))
        by_cel.extend((name, program) for program in ready.programs)
    own = frozenset(types) - builtin.keys()
    return Catalogue(version, types, by_condition, by_cel, problems, own)


class _Ready(NamedTuple):
    """One type, read and checked, with what finds it on a node."""

    entry: FaultType
    tests: list[tuple[str, ConditionTest]]
    programs: list[Program]


def _ready(name: str, obj: Mapping[str, Any]) -> _Ready:
    entry = _usable(name, obj)
    return _Ready(entry, *_matchers(name, entry))


@cache
def _ready_builtin(name: str) -> _Ready:
    """The same for a built-in entry as it is: nobody changes those, so they are read once in a process."""
    return _ready(name, entries.builtin()[1][name])


def _usable(name: str, obj: Mapping[str, Any]) -> FaultType:
    spec = obj.get("spec") or {}
    missing = [key for key in REQUIRED if spec.get(key) is None]
    if missing:
        raise ValueError(f"FaultType {name}: spec.{missing[0]} is missing; no built-in entry of this name provides it")
    if spec["scope"] == "Domain" and not spec.get("domain"):
        raise ValueError(f"FaultType {name}: spec.domain is empty; scope Domain needs the topology label of the domain")
    entry = msgspec.convert(dict(obj), FaultType)
    for field_, text in _durations(entry):
        try:
            parse_duration(text or "0s")
        except ValueError as err:
            raise ValueError(f"FaultType {name}: spec.{field_}: {err}") from None
    return entry


def _durations(entry: FaultType) -> Iterable[tuple[str, str | None]]:
    """Every duration of the entry with its place: one that cannot be read must be found here, not in mid-repair."""
    spec = entry.spec
    yield "for", spec.for_
    yield "ceiling", spec.ceiling
    for number, rung in enumerate(spec.remedy or ()):
        yield f"remedy[{number}].timeout", rung.timeout
    if spec.validation is not None:
        yield "validation.ceiling", spec.validation.ceiling
        yield "validation.soak", spec.validation.soak


def _matchers(name: str, entry: FaultType) -> tuple[list[tuple[str, ConditionTest]], list[Program]]:
    tests: list[tuple[str, ConditionTest]] = []
    programs: list[Program] = []
    for number, match in enumerate(entry.spec.match or ()):
        if match.condition is not None:
            place, test = f"FaultType {name}: spec.match[{number}].condition", match.condition
            reasons = _reason(test.reason, f"{place}.reason"), _reason(test.not_reason, f"{place}.notReason")
            tests.append((test.type, ConditionTest(test.status or "True", *reasons)))
        elif match.cel is None:
            # Events, other objects and alerts: convert makes the condition of the type's name of them.
            tests.append((condition_type(name), ConditionTest("True", None)))
        if match.cel:
            programs.append(Program.compile(match.cel, ["node"]))
    return tests, programs


def _reason(pattern: str | None, place: str) -> Pattern | None:
    try:
        return Pattern.compile(pattern) if pattern else None
    except PatternError as error:
        raise ValueError(f"{place}: {pattern!r} is not a regular expression: {error}; {REMEDY}") from None
