"""Node selector terms, as node affinities of pods and volumes have them (core/v1 NodeSelectorTerm)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fits(term: Mapping[str, Any], name: str, labels: Mapping[str, str]) -> bool:
    """All that a term asks of a node holds; one that asks for nothing selects nothing."""
    expressions, on_fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not on_fields:
        return False
    fields = {"metadata.name": name}
    return all(_holds(each, labels) for each in expressions) and all(_holds(each, fields) for each in on_fields)


def _holds(asked: Mapping[str, Any], of: Mapping[str, str]) -> bool:
    """One requirement; an operator that nobody knows holds nowhere."""
    has, values = of.get(asked.get("key", "")), [str(value) for value in asked.get("values") or ()]
    match asked.get("operator"):
        case "In":
            return has in values
        case "NotIn":
            return has not in values
        case "Exists":
            return has is not None
        case "DoesNotExist":
            return has is None
        case "Gt" | "Lt" as operator:
            return _beyond(has, values, operator)
    return False


def _beyond(has: str | None, values: list[str], operator: str) -> bool:
    try:
        one, other = int(has or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return one > other if operator == "Gt" else one < other
