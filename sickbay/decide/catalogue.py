"""Fault types in force: the built-in catalogue with `FaultType` objects merged over it, field by field.

A type that is not complete after the merge, or whose expression does not compile, is set aside with the reason and
never matches: a mistake in one entry must not make a node look sick, nor blind the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import msgspec
import yaml

from sickbay.api.cel import CelError, Program
from sickbay.api.duration import parse_duration
from sickbay.api.fault_type import FaultType
from sickbay.api.patches import apply_merge

REQUIRED = ("class", "severity", "scope", "match", "remedy", "clearsBy")


@dataclass(frozen=True)
class ConditionTest:
    """`match.condition`, ready to run."""

    status: str
    reason: re.Pattern[str] | None

    def holds(self, status: str, reason: str) -> bool:
        return status == self.status and (self.reason is None or self.reason.search(reason) is not None)


@dataclass(frozen=True)
class Catalogue:
    """All usable fault types, indexed for a node's conditions."""

    version: str
    types: Mapping[str, FaultType]
    by_condition: Mapping[str, list[tuple[str, ConditionTest]]]
    by_cel: list[tuple[str, Program]]
    problems: Mapping[str, str] = field(default_factory=dict)
    """Why a type is set aside, by its name."""

    def get(self, name: str) -> FaultType | None:
        return self.types.get(name)


@cache
def _builtin() -> tuple[str, dict[str, dict[str, Any]]]:
    """Version and entries of the catalogue inside the package, as plain objects."""
    version, entries = "", {}
    folder = resources.files("sickbay.catalogue")
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if not file.name.endswith((".yaml", ".yml")):
            continue
        for document in yaml.load_all(file.read_text(encoding="utf-8"), Loader=_LOADER):
            if not document:
                continue
            if document.get("kind") == "FaultType":
                entries[document["metadata"]["name"]] = document
            elif "version" in document:
                version = str(document["version"])
    return version, entries


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def build(overrides: Iterable[Mapping[str, Any]] = ()) -> Catalogue:
    """The catalogue with these FaultType objects (as plain objects) merged over the built-in entries."""
    version, builtin = _builtin()
    merged: dict[str, dict[str, Any]] = dict(builtin)
    for override in overrides:
        name = override["metadata"]["name"]
        base = merged.get(name, {"metadata": {"name": name}, "spec": {}})
        spec = apply_merge(base.get("spec") or {}, override.get("spec") or {})
        merged[name] = {**base, "spec": spec}
    types: dict[str, FaultType] = {}
    problems: dict[str, str] = {}
    by_condition: dict[str, list[tuple[str, ConditionTest]]] = {}
    by_cel: list[tuple[str, Program]] = []
    for name in sorted(merged):
        try:
            entry = _usable(name, merged[name])
            tests, programs = _matchers(name, entry)
        except (ValueError, CelError, re.error, msgspec.ValidationError) as err:
            problems[name] = str(err)
            continue
        types[name] = entry
        for condition, test in tests:
            by_condition.setdefault(condition, []).append((name, test))
        by_cel.extend((name, program) for program in programs)
    return Catalogue(version, types, by_condition, by_cel, problems)


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
    for match in entry.spec.match or ():
        if match.condition is not None:
            pattern = match.condition.reason
            compiled = None if pattern in (None, "", "^.*$") else re.compile(pattern)
            tests.append((match.condition.type, ConditionTest(match.condition.status or "True", compiled)))
        if match.cel:
            programs.append(Program.compile(match.cel, ["node"]))
    return tests, programs
