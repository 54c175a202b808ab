"""What is wrong with an object although its schema and rules accept it.

CEL on the API server cannot read our durations or compile expressions; this can. The controller reports the same
findings in condition Valid, so that an object applied past `sickbay check` is caught as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from sickbay.api.cel import CelError, Program
from sickbay.api.duration import parse_duration
from sickbay.api.pattern import REMEDY, Pattern, PatternError

Finding = tuple[str, Any, str, str]
"""Path, value, message, remedy."""


def further_problems(kind: str, obj: dict[str, Any]) -> Iterator[Finding]:
    """Findings about a defaulted object that its schema accepts."""
    spec = obj.get("spec") or {}
    if kind == "RepairRule":
        yield from _rule(spec)
    elif kind == "FaultType":
        yield from _fault(spec)
    elif kind == "RecoveryPolicy":
        yield from _policy(spec)


def _rule(spec: dict[str, Any]) -> Iterator[Finding]:
    for r, entry in enumerate(spec["rules"]):
        for s, step in enumerate(entry["procedure"]):
            path = f"spec.rules[{r}].procedure[{s}]"
            yield from _grace(step.get("options") or {}, f"{path}.options.grace")
            yield from _reminders(step.get("approval") or {}, f"{path}.approval.reminders")


def _grace(options: dict[str, Any], path: str) -> Iterator[Finding]:
    grace = options.get("grace")
    if grace and parse_duration(grace["min"]) > parse_duration(grace["max"]):
        yield path, grace, "min is above max", "raise max or lower min"


def _reminders(approval: dict[str, Any], path: str) -> Iterator[Finding]:
    reminders = approval.get("reminders") or []
    spans = [parse_duration(text) for text in reminders]
    if any(later <= sooner for sooner, later in pairwise(spans)):
        yield path, reminders, "not in rising order", "sort them, each only once"


def _fault(spec: dict[str, Any]) -> Iterator[Finding]:
    for m, match in enumerate(spec.get("match") or ()):
        path = f"spec.match[{m}]"
        for key in ("reason", "notReason"):
            pattern = (match.get("condition") or {}).get(key)
            if pattern is not None:
                yield from _pattern(pattern, f"{path}.condition.{key}")
        if "cel" in match:
            yield from _expression(match["cel"], "node", f"{path}.cel", "bool")
        if "object" in match:
            yield from _expression(match["object"]["cel"], "object", f"{path}.object.cel", "bool")
            yield from _expression(match["object"]["node"], "object", f"{path}.object.node", "string")


def _policy(spec: dict[str, Any]) -> Iterator[Finding]:
    for p, phase in enumerate(spec["hang"].get("phases") or ()):
        for key in ("from", "to"):
            yield from _pattern(phase.get(key) or "", f"spec.hang.phases[{p}].{key}")


def _pattern(text: str, path: str) -> Iterator[Finding]:
    try:
        Pattern.compile(text)
    except PatternError as error:
        yield path, text, f"not a regular expression: {error}", REMEDY


_WANTED = {"bool": "a condition, such as `== 'x'` behind it", "string": "a text, the name of a node"}


def _expression(text: str, variable: str, path: str, wanted: str) -> Iterator[Finding]:
    """`wanted`: the type of its value, which it must at least be able to have."""
    try:
        found = Program.compile(text, [variable]).result
    except CelError as error:
        yield path, text, str(error), f"correct it; it may use the variable {variable}"
        return
    if found not in (wanted, "dyn"):
        yield path, text, f"its value is of type {found}, never {wanted}", f"make it {_WANTED[wanted]}"
