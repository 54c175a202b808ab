"""Judging the values of an object by its schema, with the API server's words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sickbay.api.structural.limits import broken_limits
from sickbay.api.structural.lists import duplicates, old_item
from sickbay.api.structural.paths import child, item
from sickbay.api.structural.rules import broken_rules, has_rules
from sickbay.api.structural.shape import RESOURCE_FIELDS, Schema, field_schema
from sickbay.api.structural.violation import BLOCKING, DUPLICATE, REQUIRED, TYPE, UNCHECKED, Violation, invalid, type_of


def validate(schema: Schema, obj: Any, old: Any = None) -> list[Violation]:
    """Everything wrong with a pruned and defaulted resource; `old` is its stored version on update, None on create.

    As on the server, a part that an update leaves as it was is not judged again, so that a schema that became stricter
    does not lock existing objects.
    """
    found = list(_validate(schema, obj, old, "", resource=True))
    if not any(violation.reason in BLOCKING for violation in found):
        return [*found, *broken_rules(schema, obj, old)]
    return [*found, UNCHECKED] if has_rules(schema) else found


def _validate(schema: Schema, value: Any, old: Any, path: str, resource: bool = False) -> Iterator[Violation]:
    if old is not None and value == old:
        return
    if value is None and schema.get("nullable"):
        return
    wrong = _wrong_type(schema, value)
    if wrong:
        wanted = schema.get("type") or "integer,string"
        message = f'Invalid value: "{wrong}": {path} in body must be of type {wanted}: "{wrong}"'
        yield Violation(path, TYPE, message, value, "type", wanted)
        return
    yield from broken_limits(schema, value, path)
    if isinstance(value, dict):
        yield from _object(schema, value, old, path, resource)
    elif isinstance(value, list):
        yield from _list(schema, value, old, path)
    yield from _combinations(schema, value, path)


def _object(schema: Schema, value: dict[str, Any], old: Any, path: str, resource: bool) -> Iterator[Violation]:
    for key in schema.get("required") or ():
        if key not in value:
            yield Violation(child(path, key), REQUIRED, "Required value", None, "required")
    before = old if isinstance(old, dict) else {}
    for key, below in value.items():
        if resource and key in RESOURCE_FIELDS:
            continue
        found = field_schema(schema, key)
        if found:
            yield from _validate(found, below, before.get(key), child(path, key))


def _list(schema: Schema, value: list[Any], old: Any, path: str) -> Iterator[Violation]:
    for index, key in duplicates(schema, value):
        message = f"Duplicate value: {json.dumps(key, separators=(',', ':'))}"
        yield Violation(item(path, index), DUPLICATE, message, key, "x-kubernetes-list-type")
    items = schema.get("items")
    if not items:
        return
    for index, element in enumerate(value):
        yield from _validate(items, element, old_item(schema, element, old), item(path, index))


def _wrong_type(schema: Schema, value: Any) -> str:
    """The type the value has, when the schema wants another; empty when it fits."""
    found = type_of(value)
    if schema.get("x-kubernetes-int-or-string"):
        return "" if found in ("integer", "string") else found
    wanted = schema.get("type")
    if wanted is None or found == wanted or (wanted == "number" and found == "integer"):
        return ""
    if wanted == "integer" and found == "number" and float(value).is_integer():
        return ""
    return found


def _combinations(schema: Schema, value: Any, path: str) -> Iterator[Violation]:
    """allOf, anyOf, oneOf and not, which in a structural schema only add limits to the same value."""
    for part in schema.get("allOf") or ():
        yield from _validate(part, value, None, path)
    any_of = [_fits(part, value) for part in schema.get("anyOf") or ()]
    if any_of and not any(any_of):
        yield invalid(path, value, "must validate at least one schema (anyOf)", "anyOf", schema["anyOf"])
    one_of = [_fits(part, value) for part in schema.get("oneOf") or ()]
    if one_of and sum(one_of) != 1:
        yield invalid(path, value, "must validate one and only one schema (oneOf)", "oneOf", schema["oneOf"])
    if "not" in schema and _fits(schema["not"], value):
        yield invalid(path, value, "must not validate the schema (not)", "not", schema["not"])


def _fits(part: Schema, value: Any) -> bool:
    return not any(_validate(part, value, None, ""))
