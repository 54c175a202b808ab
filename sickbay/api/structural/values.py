"""Judging the values of an object by its schema, with the API server's words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from sickbay.api.structural import rules
from sickbay.api.structural.formats import INTEGER_RANGES, READERS
from sickbay.api.structural.lists import duplicates, old_item
from sickbay.api.structural.paths import child, item
from sickbay.api.structural.shape import RESOURCE_FIELDS, Schema, field_schema, properties_of, value_schema


class Violation(NamedTuple):
    """One thing an API server refuses an object for."""

    path: str
    reason: str
    """Cause as the API names it: FieldValueRequired, FieldValueInvalid, FieldValueNotSupported, ..."""
    message: str


REQUIRED, INVALID, UNSUPPORTED = "FieldValueRequired", "FieldValueInvalid", "FieldValueNotSupported"
DUPLICATE, TOO_LONG, TOO_MANY, TYPE = (
    "FieldValueDuplicate",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)

_BLOCKING = frozenset({REQUIRED, TOO_LONG, TOO_MANY, TYPE})
"""While one of these stands CEL rules are not evaluated: they may rely on what is missing."""


def validate(schema: Schema, obj: Any, old: Any = None) -> list[Violation]:
    """Everything wrong with a pruned and defaulted resource; `old` is its stored version on update, None on create.

    As on the server, a part that an update leaves as it was is not judged again, so that a schema that became stricter
    does not lock existing objects.
    """
    found = list(_validate(schema, obj, old, "", resource=True))
    if not any(violation.reason in _BLOCKING for violation in found):
        found += [Violation(*failure) for failure in rules.failures(schema, obj, old)]
    return found


def _validate(schema: Schema, value: Any, old: Any, path: str, resource: bool = False) -> Iterator[Violation]:
    if old is not None and value == old:
        return
    if value is None and schema.get("nullable"):
        return
    wrong = _wrong_type(schema, value)
    if wrong:
        where = path or "<nil>"
        yield Violation(
            path, TYPE, f'Invalid value: "{wrong}": {where} in body must be of type {_expected(schema)}: "{wrong}"'
        )
        return
    yield from _limits(schema, value, path)
    if isinstance(value, dict):
        yield from _validate_object(schema, value, old, path, resource)
    elif isinstance(value, list):
        yield from _validate_list(schema, value, old, path)
    yield from _combinations(schema, value, path)


def _validate_object(schema: Schema, value: dict[str, Any], old: Any, path: str, resource: bool) -> Iterator[Violation]:
    for key in schema.get("required") or ():
        if key not in value:
            yield Violation(child(path, key), REQUIRED, "Required value")
    before = old if isinstance(old, dict) else {}
    for key, below in value.items():
        if resource and key in RESOURCE_FIELDS:
            continue
        found = field_schema(schema, key)
        if found:
            yield from _validate(found, below, before.get(key), child(path, key))


def _validate_list(schema: Schema, value: list[Any], old: Any, path: str) -> Iterator[Violation]:
    for index, key in duplicates(schema, value):
        yield Violation(item(path, index), DUPLICATE, f"Duplicate value: {json.dumps(key, separators=(',', ':'))}")
    items = schema.get("items")
    if not items:
        return
    for index, element in enumerate(value):
        yield from _validate(items, element, old_item(schema, element, old), item(path, index))


def _wrong_type(schema: Schema, value: Any) -> str:
    """The type the value has, when the schema wants another; empty when it fits."""
    found = _type_of(value)
    if schema.get("x-kubernetes-int-or-string"):
        return "" if found in ("integer", "string") else found
    wanted = schema.get("type")
    if wanted is None or found == wanted or (wanted == "number" and found == "integer"):
        return ""
    if wanted == "integer" and found == "number" and float(value).is_integer():
        return ""
    return found


def _expected(schema: Schema) -> str:
    return "integer or string" if schema.get("x-kubernetes-int-or-string") else str(schema.get("type"))


def _type_of(value: Any) -> str:
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


def _limits(schema: Schema, value: Any, path: str) -> Iterator[Violation]:
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        supported = ", ".join(json.dumps(word) for word in allowed)
        yield Violation(path, UNSUPPORTED, f"Unsupported value: {json.dumps(value)}: supported values: {supported}")
    if isinstance(value, str):
        yield from _text_limits(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_limits(schema, value, path)
    elif isinstance(value, list):
        yield from _size_limits(schema, len(value), path, "Items", "items")
    elif isinstance(value, dict):
        yield from _size_limits(schema, len(value), path, "Properties", "properties")


def _text_limits(schema: Schema, value: str, path: str) -> Iterator[Violation]:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if longest is not None and len(value) > longest:
        yield Violation(path, TOO_LONG, f"Too long: may not be more than {longest} bytes")
    if shortest is not None and len(value) < shortest:
        yield _invalid(path, value, f"should be at least {shortest} chars long")
    pattern, form = schema.get("pattern"), schema.get("format")
    if pattern is not None and not _pattern(pattern).search(value):
        yield _invalid(path, value, f"should match '{pattern}'")
    reader = READERS.get(form) if isinstance(form, str) else None
    if reader is not None:
        try:
            reader(value)
        except ValueError:
            yield _invalid(path, value, f"must be of type {form}: {json.dumps(value)}")


def _number_limits(schema: Schema, value: float, path: str) -> Iterator[Violation]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        than = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield _invalid(path, value, f"should be {than} {low}")
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        than = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield _invalid(path, value, f"should be {than} {high}")
    step = schema.get("multipleOf")
    if step and value % step:
        yield _invalid(path, value, f"should be a multiple of {step}")
    bounds = INTEGER_RANGES.get(schema.get("format") or "")
    if bounds and not bounds[0] <= value <= bounds[1]:
        yield _invalid(path, value, f"must be of type {schema['format']}: {json.dumps(value)}")


def _size_limits(schema: Schema, size: int, path: str, what: str, word: str) -> Iterator[Violation]:
    most, least = schema.get(f"max{what}"), schema.get(f"min{what}")
    if most is not None and size > most:
        yield Violation(path, TOO_MANY, f"Too many: {size}: must have at most {most} items")
    if least is not None and size < least:
        yield _invalid(path, size, f"should have at least {least} {word}")


def _invalid(path: str, value: Any, what: str) -> Violation:
    return Violation(path, INVALID, f"Invalid value: {json.dumps(value)}: {path} in body {what}")


def _combinations(schema: Schema, value: Any, path: str) -> Iterator[Violation]:
    """allOf, anyOf, oneOf and not, which in a structural schema only add limits to the same value."""
    if schema.get("x-kubernetes-int-or-string"):
        return
    for part in schema.get("allOf") or ():
        yield from _validate_part(part, value, path)
    fits = [not any(_validate_part(part, value, path)) for part in schema.get("anyOf") or ()]
    if fits and not any(fits):
        yield _invalid(path, _type_of(value), "must validate at least one schema (anyOf)")
    fits = [not any(_validate_part(part, value, path)) for part in schema.get("oneOf") or ()]
    if fits and sum(fits) != 1:
        yield _invalid(path, _type_of(value), "must validate one and only one schema (oneOf)")
    if "not" in schema and not any(_validate_part(schema["not"], value, path)):
        yield _invalid(path, _type_of(value), "must not validate the schema (not)")


def _validate_part(part: Schema, value: Any, path: str) -> Iterator[Violation]:
    """A part names no types of its own below the first level: unknown keys are simply not its business."""
    if properties_of(part) or value_schema(part) is not None or part.get("required"):
        yield from _validate({"type": "object", **part}, value, None, path)
    else:
        yield from _validate(part, value, None, path)


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    """RE2's meaning: `$` is the end of the text, never before a final line break, and classes are ASCII."""
    if text.endswith("$") and not text.endswith("\\$"):
        text = text[:-1] + r"\Z"
    return re.compile(text, re.ASCII)
