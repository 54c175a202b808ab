"""What an API server refuses an object for."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Violation(NamedTuple):
    """One cause of a refusal. `<path>: <message>` is the text kube-apiserver gives."""

    path: str
    reason: str
    """Cause as the API names it: FieldValueRequired, FieldValueInvalid, FieldValueNotSupported, ..."""
    message: str
    value: Any = None
    keyword: str = ""
    """What in the schema says so: required, type, enum, pattern, format, maxLength, ..., or rule for a CEL rule."""
    limit: Any = None
    """The keyword's argument in the schema: the words of an enum, the pattern, the maximum, the rule."""


REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
UNSUPPORTED = "FieldValueNotSupported"
DUPLICATE = "FieldValueDuplicate"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
TYPE = "FieldValueTypeInvalid"
FORBIDDEN = "FieldValueForbidden"

ROOT = "<nil>"
"""The path of the object itself, as the server writes it."""

BLOCKING = frozenset({REQUIRED, UNSUPPORTED, TOO_LONG, TOO_MANY, TYPE})
"""While one of these stands CEL rules are not evaluated: they may rely on what is missing."""

UNCHECKED = Violation(
    ROOT,
    INVALID,
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
    keyword="unchecked",
)
"""The server's note that it left the rules out."""


def invalid(path: str, value: Any, what: str, keyword: str, limit: Any) -> Violation:
    shown = json.dumps(value) if isinstance(value, str | int | float) else f'"{type_of(value)}"'
    return Violation(path, INVALID, f"Invalid value: {shown}: {path} in body {what}", value, keyword, limit)


def type_of(value: Any) -> str:
    """The JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return type(value).__name__
