"""The text form of label selectors: `a=b,c!=d,e in (f,g),!h,i>5`.

Read as apimachinery's own parser does (pkg/labels/selector.go), texts of refusals included. A selector that is read
generously selects more than was meant, and a DELETE of many takes one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sickbay.apiserver.errors import StatusError, bad_request
from sickbay.apiserver.metadata import label_value_problems, qualified_name_problems, quoted

Labels = Mapping[str, Any]

_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_SIGNS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt", "in": "In", "notin": "NotIn"}
_SPECIAL = frozenset(["=", "==", "!=", "!", "<", ">", "(", ")", ","])
_MAX_NUMBER = 1 << 63


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
        if value is None or not is_number(value):
            return False
        return int(value) > int(bound) if self.operator == "Gt" else int(value) < int(bound)


def is_number(text: str) -> bool:
    """Whether a text is a number of 64 bits."""
    return re.fullmatch(r"[+-]?[0-9]{1,19}", text) is not None and -_MAX_NUMBER <= int(text) < _MAX_NUMBER


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Raises StatusError(400) for what is no selector."""
    return _Reader(text).selector()


class _Reader:
    """The text as tokens, and a place among them. "" is the end."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), ""]
        self._at = 0

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _take(self) -> str:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _is_name(self) -> bool:
        return bool(self._next) and self._next not in _SPECIAL

    def selector(self) -> tuple[Requirement, ...]:
        found: list[Requirement] = []
        while self._next:
            if not self._is_name() and self._next != "!":
                raise _unexpected(self._next, "!, identifier, or 'end of string'")
            found.append(self._requirement())
            after = self._take()
            if not after:
                break
            if after != ",":
                raise _unexpected(after, "',' or 'end of string'")
            if not self._is_name() and self._next != "!":
                raise _unexpected(self._next, "identifier after ','")
        return tuple(found)

    def _requirement(self) -> Requirement:
        absent = self._next == "!"
        if absent:
            self._take()
        if not self._is_name():
            raise _unreadable(f"found '{self._next}', expected: identifier")
        key = self._take()
        _check("<nil>", key, qualified_name_problems(key))
        if absent or self._next in ("", ","):
            return Requirement(key, "DoesNotExist" if absent else "Exists")
        sign = self._take()
        if sign not in _SIGNS:
            listed = "in, notin, =, ==, !=, gt, lt"
            raise _unreadable(f"found '{sign}', expected: {listed}")
        values = self._listed() if sign in ("in", "notin") else self._value()
        return _checked(Requirement(key, _SIGNS[sign], frozenset(values)), values)

    def _value(self) -> list[str]:
        if self._next in ("", ","):
            return [""]
        if not self._is_name():
            raise _unreadable(f"found '{self._next}', expected: identifier")
        return [self._take()]

    def _listed(self) -> list[str]:
        """`(a, b)`; what is missing between commas is the empty value."""
        if self._take() != "(":
            raise _unreadable(f"found '{self._tokens[self._at - 1]}' expected: '('")
        values: list[str] = []
        while True:
            values.append(self._take() if self._is_name() else "")
            after = self._take()
            if after == ")":
                return values
            if after != ",":
                raise _unreadable(f"found '{after}', expected: ',' or ')'")


def _checked(requirement: Requirement, values: list[str]) -> Requirement:
    if requirement.operator in ("Gt", "Lt"):
        for index, value in enumerate(values):
            if not is_number(value):
                _check(f"values[{index}]", value, ("for 'Gt', 'Lt' operators, the value must be an integer",))
    for index, value in enumerate(values):
        _check(f"values[{index}][{requirement.key}]", value, label_value_problems(value))
    return requirement


def _check(place: str, value: str, problems: tuple[str, ...]) -> None:
    if problems:
        raise _unreadable(f"{place}: Invalid value: {quoted(value)}: {'; '.join(problems)}")


def _unreadable(why: str) -> StatusError:
    return bad_request(f"unable to parse requirement: {why}")


def _unexpected(token: str, expected: str) -> StatusError:
    return bad_request(f"found '{token}', expected: {expected}")
