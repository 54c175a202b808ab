"""What a Node shows that would end a job: faults that the catalogue repairs by taking device or node down.

The catalogue's fault types (built in, with the FaultType objects over them) say which conditions are faults at all and
what they ask for. A fault that is only recorded, or whose remedy is the restart of the application (an illegal address,
a teardown's XID 45), convicts no node. One that can wait for the job's end does not either: it had not hurt the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any

import msgspec
import yaml

from sickbay.api.actions import ACTIONS
from sickbay.api.conditiontest import ConditionTest
from sickbay.api.core import Node
from sickbay.api.fault_type import FaultType
from sickbay.api.patches import apply_merge
from sickbay.api.pattern import Pattern, PatternError
from sickbay.clock import parse_time

BEFORE, AFTER = timedelta(minutes=10), timedelta(minutes=5)
"""The attribution window around a failure (Meta, arXiv 2410.21680)."""
NETWORK = ("nic.", "nvlink.", "nvswitch.", "gpu.nvlink")
"""Fault types of the fabric: enough to name the node of a job that only stands still."""


@dataclass(frozen=True)
class Sign:
    """One fault that a node shows now."""

    fault: str
    since: datetime | None
    decisive: bool
    """It would have ended a job on this node."""
    message: str = ""

    @property
    def of_network(self) -> bool:
        return self.fault.startswith(NETWORK)


@dataclass(frozen=True)
class _Test:
    fault: str
    test: ConditionTest
    decisive: bool


class Signs:
    """All conditions that are faults, by type. A fault type that cannot be read is left out."""

    def __init__(self, overrides: Iterable[Mapping[str, Any]] = ()) -> None:
        builtin = _builtin()
        merged = dict(builtin)
        for override in overrides:
            name = override["metadata"]["name"]
            base = merged.get(name, {"metadata": {"name": name}, "spec": {}})
            merged[name] = {**base, "spec": apply_merge(base.get("spec") or {}, override.get("spec") or {})}
        self._tests: dict[str, list[_Test]] = {}
        for name, obj in sorted(merged.items()):
            for type_, test in _builtin_tests(name) if obj is builtin.get(name) else _tests(name, obj):
                self._tests.setdefault(type_, []).append(test)

    def of(self, node: Node) -> list[Sign]:
        """The faults the node shows now, those that end jobs first."""
        found: dict[str, Sign] = {}
        for condition in node.conditions:
            for test in self._tests.get(condition.type, ()):
                if test.fault not in found and test.test.holds(condition.status, condition.reason):
                    since = moment(condition.last_transition_time)
                    found[test.fault] = Sign(test.fault, since, test.decisive, condition.message or condition.reason)
        return sorted(found.values(), key=lambda sign: (not sign.decisive, sign.fault))


def in_window(since: datetime | None, failed_at: datetime) -> bool:
    """Whether a fault that is there now belongs to a failure: it began at the latest five minutes after it.

    One that began long before has been there all the time, so it fired within the window too.
    """
    return since is None or since <= failed_at + AFTER


def _tests(name: str, obj: Mapping[str, Any]) -> list[tuple[str, _Test]]:
    try:
        fault = msgspec.convert(dict(obj), FaultType)
        found = []
        for match in fault.spec.match or ():
            if match.condition is not None:
                asked = match.condition
                test = ConditionTest(asked.status or "True", _pattern(asked.reason), _pattern(asked.not_reason))
                found.append((asked.type, _Test(name, test, _decisive(fault))))
        return found
    except (msgspec.ValidationError, PatternError):
        return []


def _pattern(text: str | None) -> Pattern | None:
    return Pattern.compile(text) if text else None


@cache
def _builtin_tests(name: str) -> list[tuple[str, _Test]]:
    """The same for a built-in entry as it is, read once in a process."""
    return _tests(name, _builtin()[name])


def _decisive(fault: FaultType) -> bool:
    spec = fault.spec
    if spec.severity not in ("Error", "Critical") or (spec.urgency or "Now") != "Now" or spec.remedy is None:
        return False
    known = [ACTIONS[rung.action] for rung in spec.remedy if rung.action in ACTIONS]
    return not spec.remedy or any(action.disruptive or action.parks for action in known)


def moment(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None


@cache
def _builtin() -> dict[str, dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries = {}
    for file in resources.files("sickbay.catalogue").iterdir():
        if not file.name.endswith((".yaml", ".yml")):
            continue
        for document in yaml.load_all(file.read_text(encoding="utf-8"), Loader=loader):
            if document and document.get("kind") == "FaultType":
                entries[document["metadata"]["name"]] = document
    return entries
