"""Selectors as predicates: label selectors (`labelselectors` reads their text), `metav1.LabelSelector`, and fields.

A selector is parsed once into a predicate over objects. Fields that a resource cannot select by are an error that
names them, as on the real server: a selector that quietly matches everything is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sickbay.apiserver.errors import Obj, StatusError, bad_request
from sickbay.apiserver.labelselectors import Labels, Requirement, parse_labels

Predicate = Callable[[Obj], bool]

__all__ = ["Requirement", "parse_labels"]


def label_predicate(requirements: Sequence[Requirement]) -> Predicate:
    def matches(obj: Obj) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(requirement.matches(labels) for requirement in requirements)

    return matches


def selector_requirements(selector: Mapping[str, Any] | None) -> tuple[Requirement, ...] | None:
    """The requirements of a `metav1.LabelSelector`; None for a null selector, which matches nothing.

    An empty selector gives no requirements and so matches everything.
    """
    if selector is None:
        return None
    equal = [Requirement(key, "In", frozenset({value})) for key, value in (selector.get("matchLabels") or {}).items()]
    expressions = [
        Requirement(entry["key"], entry["operator"], frozenset(entry.get("values") or ()))
        for entry in selector.get("matchExpressions") or ()
    ]
    return (*equal, *expressions)


def selector_matches(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Whether a `metav1.LabelSelector` selects these labels."""
    requirements = selector_requirements(selector)
    return requirements is not None and all(requirement.matches(labels) for requirement in requirements)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    path: str
    equal: bool
    value: str


def parse_fields(text: str) -> tuple[FieldTerm, ...]:
    """Read `metadata.name=a,status.phase!=Failed`; a backslash keeps a comma, an equals sign or itself in a value.

    Raises StatusError(400) for what is no selector.
    """
    return tuple(_parse_term(part, text) for part in _FIELD_PART.findall(text) if part)


_FIELD_PART = re.compile(r"(?:\\.|[^,\\])*")
_VALUE_PART = re.compile(r"\\(.?)|([,=])", re.DOTALL)


def _parse_term(part: str, text: str) -> FieldTerm:
    for sign, equal in (("!=", False), ("==", True), ("=", True)):
        path, found, value = part.partition(sign)
        if found:
            return FieldTerm(path, equal, _VALUE_PART.sub(_unescaped, value))
    raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")


def _unescaped(found: re.Match[str]) -> str:
    if found[2]:
        raise bad_request(f"invalid field selector: unescaped character in value: {ord(found[2])}")
    if found[1] not in ("\\", ",", "="):
        raise bad_request(f"invalid field selector: invalid escape sequence: \\{found[1]}")
    return found[1]


def field_value(obj: Obj, path: str) -> str:
    """The text a field selector compares: "" for what is absent, `true`/`false` for booleans."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def field_predicate(terms: Sequence[FieldTerm], defaults: Mapping[str, str]) -> Predicate:
    """`defaults` gives the text of fields that compare as something while absent (`spec.unschedulable` as `false`)."""

    def matches(obj: Obj) -> bool:
        return all(
            ((field_value(obj, term.path) or defaults.get(term.path, "")) == term.value) == term.equal for term in terms
        )

    return matches


def unsupported_field(path: str) -> StatusError:
    return bad_request(f"field label not supported: {path}")
