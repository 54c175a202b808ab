"""Label and field selectors, in their text form and as `metav1.LabelSelector`.

A selector is parsed once into a predicate over objects. Fields that a resource cannot select by are an error that
names them, as on the real server: a selector that quietly matches everything is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sickbay.apiserver.errors import Obj, StatusError, bad_request

Labels = Mapping[str, Any]
Predicate = Callable[[Obj], bool]

_SET = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)\s*$")
_EQUAL = re.compile(r"^\s*(?P<key>[^\s!=<>,()]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s=!,()]*)\s*$")
_EXISTS = re.compile(r"^\s*(?P<absent>!?)\s*(?P<key>[^\s!=<>,()]+)\s*$")
_NAME = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on the labels. `values` is empty for Exists and DoesNotExist."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        bound = next(iter(self.values))
        if value is None or not value.lstrip("-").isdigit():
            return False
        return int(value) > int(bound) if self.operator == "Gt" else int(value) < int(bound)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Read `a=b,c!=d,e in (f,g),!h`. Raises StatusError(400) for what is no selector."""
    return tuple(_parse_requirement(part, text) for part in _split(text) if part.strip())


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return parts


def _parse_requirement(part: str, text: str) -> Requirement:
    if found := _SET.match(part):
        operator = "In" if found["operator"] == "in" else "NotIn"
        return Requirement(found["key"], operator, frozenset(v.strip() for v in found["values"].split(",")))
    if found := _EQUAL.match(part):
        return _comparison(found["key"], found["operator"], found["value"], text)
    if found := _EXISTS.match(part):
        return Requirement(found["key"], "DoesNotExist" if found["absent"] else "Exists")
    raise bad_request(f"unable to parse requirement: found '{part.strip()}' in selector '{text}'")


def _comparison(key: str, sign: str, value: str, text: str) -> Requirement:
    if sign in "<>" and not value.lstrip("-").isdigit():
        raise bad_request(f"unable to parse selector '{text}': for 'Gt', 'Lt' operators, the value must be an integer")
    if not _NAME.match(value):
        raise bad_request(f"unable to parse selector '{text}': values: Invalid value: \"{value}\" is no label value")
    operator = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}[sign]
    return Requirement(key, operator, frozenset({value}))


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
    """Read `metadata.name=a,status.phase!=Failed`. Raises StatusError(400) for what is no selector."""
    return tuple(_parse_term(part, text) for part in text.split(",") if part)


def _parse_term(part: str, text: str) -> FieldTerm:
    for sign, equal in (("!=", False), ("==", True), ("=", True)):
        path, found, value = part.partition(sign)
        if found:
            return FieldTerm(path, equal, value)
    raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")


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
