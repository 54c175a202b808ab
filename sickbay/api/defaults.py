"""The part of docs/defaults.md that the API itself knows: fields and remedies, and why their defaults are those."""

from __future__ import annotations

from collections.abc import Iterator

from sickbay.api import reference
from sickbay.api.actions import ACTIONS
from sickbay.api.duration import format_duration
from sickbay.api.reasons import BY_STEP, REASONS

KINDS = ("RepairPool", "RepairRule", "FaultType", "Hold", "RecoveryPolicy")
"""The kinds that people write."""
_UNITS = {"duration": "duration", "count or %": "count or %", "integer": "count"}


class ReasonError(Exception):
    """Defaults and reasons do not fit together."""


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """Kind, field, default, unit and reason of every default. Raises ReasonError."""
    known = set()
    for kind in KINDS:
        for field in reference.fields(kind):
            key = f"{kind} {field.path}"
            default = _default(field)
            if not field.path.startswith("spec.") or (not default and key not in REASONS):
                continue
            if key not in REASONS:
                raise ReasonError(f"{key} has the default {default} and no reason; add one to sickbay/api/reasons.py")
            known.add(key)
            yield kind, field.path, default or "0", _UNITS.get(field.type, ""), REASONS[key]
    left = sorted(REASONS.keys() - known)
    if left:
        raise ReasonError(f"{left[0]} has a reason and no default; remove it from sickbay/api/reasons.py")


def _default(field: reference.Field) -> str:
    """The default as it reads; a boolean that says nothing is false."""
    if field.default or field.required:
        return field.default
    return "false" if field.type == "boolean" and not field.path.startswith("spec.isolateDevice") else ""


def markdown() -> str:
    """The tables of fields and remedies."""
    lines: list[str] = []
    at = ""
    for kind, path, default, unit, reason in rows():
        if kind != at:
            lines += ["", f"## {kind}", "", "| field | default | unit | reason |", "|---|---|---|---|"]
            at = kind
        lines.append(f"| `{path}` | `{default}` | {unit} | {reason} |")
    return "\n".join([*lines, *_by_step(), *_remedies(), ""])


def _by_step() -> Iterator[str]:
    yield from ("", "## Where absence has a meaning", "", "| field | stands for | unit | reason |", "|---|---|---|---|")
    for path, default, unit, reason in BY_STEP:
        yield f"| `{path}` | `{default}` | {unit} | {reason} |"


def _remedies() -> Iterator[str]:
    yield from (
        "",
        "## Remedies",
        "",
        "How long one attempt may take, how long Validate may take after it, and how long the node must stay well. A",
        "rung, a rule or a fault type may say otherwise. All are durations; they grow with what the remedy takes down.",
        "",
        "| remedy | takes down | attempt | Validate gives up after | soak | asks people first |",
        "|---|---|---|---|---|---|",
    )
    for name, action in ACTIONS.items():
        spans = (format_duration(span) for span in (action.timeout, action.ceiling, action.soak))
        times = " | ".join(f"`{span}`" for span in spans)
        asks = "unless localDataDisposable" if action.asks_first else ""
        yield f"| {name} | {action.scope or 'nothing'} | {times} | {asks} |"
