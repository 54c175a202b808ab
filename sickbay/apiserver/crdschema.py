"""What makes the schema of a definition invalid: it must be structural, and objects must be judged by it.

After apiextensions' validation and `structuralschema`. A schema that is taken though it makes no sense fails every
request to its objects; the real server refuses the definition. CEL is only read here: what its fields are is found when
an object is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sickbay.api import structural
from sickbay.api.cel import CelError, Program
from sickbay.apiserver.errors import Cause
from sickbay.apiserver.metadata import as_json, invalid_value, required, unsupported_value

Schema = dict[str, Any]

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES, _MAP_TYPES = ("atomic", "set", "map"), ("granular", "atomic")
_JUNCTORS = ("allOf", "anyOf", "oneOf")
_OWN_METADATA = {"name", "generateName"}
_NOT_IN_JUNCTORS = ("type", "default", "title", "nullable", "additionalProperties")
PRESERVES, INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"


def _forbidden(field: str, why: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def check_schema(schema: Any, field: str) -> list[Cause]:
    """Every fault of one version's `openAPIV3Schema`, which stands at `field`."""
    if not isinstance(schema, dict):
        return [required(field)]
    if not schema.get("type"):
        return [required(f"{field}.type", "must not be empty at the root")]
    if schema["type"] != "object":
        why = "must be object at the root"
        return [invalid_value(f"{field}.type", schema["type"], why)]
    causes = list(_check(schema, field, root=True))
    # Values can be judged only by a schema that is one.
    return causes or list(_check_values(schema, field))


def _check(schema: Schema, field: str, *, root: bool = False) -> Iterator[Cause]:
    yield from _check_type(schema, field)
    yield from _check_keywords(schema, field)
    for key, below, place in _parts(schema, field):
        if root and key == "metadata":
            yield from _check_metadata(below, place)
        elif not isinstance(below, dict):
            yield invalid_value(place, as_json(below), "must be a schema")
        else:
            yield from _check(below, place)
    yield from _check_lists(schema, field)
    for word in (*_JUNCTORS, "not"):
        branches = schema.get(word)
        for index, branch in enumerate(branches if isinstance(branches, list) else [branches] if branches else []):
            place = f"{field}.{word}" if word == "not" else f"{field}.{word}[{index}]"
            yield from _check_branch(branch, place)


def _parts(schema: Schema, field: str) -> Iterator[tuple[str, Any, str]]:
    """Schemas of fields, values and items below one."""
    for key, below in (schema.get("properties") or {}).items():
        yield key, below, f"{field}.properties[{key}]"
    values = schema.get("additionalProperties")
    if values not in (None, True, False):
        yield "", values, f"{field}.additionalProperties"
    if schema.get("items") is not None and not isinstance(schema["items"], list):
        yield "", schema["items"], f"{field}.items"


def _check_type(schema: Schema, field: str) -> Iterator[Cause]:
    kind = schema.get("type", "")
    if schema.get(INT_OR_STRING):
        if kind:
            yield _forbidden(f"{field}.type", "must be empty if x-kubernetes-int-or-string is true")
    elif not kind:
        if not schema.get(PRESERVES):
            yield required(f"{field}.type", "must not be empty for specified object fields")
    elif kind not in TYPES:
        yield unsupported_value(f"{field}.type", kind, *TYPES)


def _check_keywords(schema: Schema, field: str) -> Iterator[Cause]:
    if schema.get("$ref"):
        yield _forbidden(f"{field}.$ref", "$ref is not supported")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield _forbidden(f"{field}.uniqueItems", why)
    if schema.get("additionalProperties") is False:
        yield _forbidden(f"{field}.additionalProperties", "additionalProperties cannot be set to false")
    elif schema.get("additionalProperties") and schema.get("properties"):
        why = "additionalProperties and properties are mutual exclusive"
        yield _forbidden(f"{field}.additionalProperties", why)
    for word in ("pattern",):
        try:
            re.compile(schema.get(word) or "")
        except re.error as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield invalid_value(f"{field}.{word}", schema[word], why)
    if schema.get(PRESERVES) is False:
        why = "must be true or undefined"
        yield invalid_value(f"{field}.{PRESERVES}", schema[PRESERVES], why)


def _check_lists(schema: Schema, field: str) -> Iterator[Cause]:
    kind, items = schema.get("x-kubernetes-list-type"), schema.get("items")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    if isinstance(items, list):
        yield _forbidden(f"{field}.items", "items must be a schema object and not an array")
        return
    if schema.get("type") == "array" and items is None:
        yield required(f"{field}.items", "must be specified")
    if kind not in (None, *_LIST_TYPES):
        yield unsupported_value(f"{field}.x-kubernetes-list-type", kind, *_LIST_TYPES)
    if schema.get("x-kubernetes-map-type") not in (None, *_MAP_TYPES):
        yield unsupported_value(f"{field}.x-kubernetes-map-type", schema["x-kubernetes-map-type"], *_MAP_TYPES)
    if kind == "map":
        if not keys:
            why = "must not be empty if x-kubernetes-list-type is map"
            yield required(f"{field}.x-kubernetes-list-map-keys", why)
        properties = items.get("properties") or {} if isinstance(items, dict) else {}
        if isinstance(items, dict) and items.get("type") != "object":
            why = "must be object if parent array's x-kubernetes-list-type is map"
            yield invalid_value(f"{field}.items.type", items.get("type", ""), why)
        for index, key in enumerate(keys):
            if key not in properties:
                why = "entries must all be names of item properties"
                yield invalid_value(f"{field}.x-kubernetes-list-map-keys[{index}]", key, why)
    elif keys:
        yield _forbidden(f"{field}.x-kubernetes-list-map-keys", "must not be set if x-kubernetes-list-type is not map")


def _check_metadata(schema: Any, field: str) -> Iterator[Cause]:
    properties = schema.get("properties") or {} if isinstance(schema, dict) else {}
    if not isinstance(schema, dict) or schema.get("type") != "object" or properties.keys() - _OWN_METADATA:
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield _forbidden(field, why)


def _check_branch(branch: Any, field: str) -> Iterator[Cause]:
    """A schema within allOf, anyOf, oneOf or not only narrows values; it does not say what they are."""
    if not isinstance(branch, dict):
        yield invalid_value(field, as_json(branch), "must be a schema")
        return
    for word in _NOT_IN_JUNCTORS:
        if branch.get(word) and not (word == "type" and branch[word] in ("integer", "string")):
            yield _forbidden(f"{field}.{word}", "must be empty to be structural")
    for _, below, place in _parts(branch, field):
        yield from _check_branch(below, place)


def _check_values(schema: Schema, field: str) -> Iterator[Cause]:
    """Defaults that objects of the schema could not have, and rules that cannot be read."""
    if "default" in schema:
        for found in structural.validate({"type": "object", "properties": {"it": schema}}, {"it": schema["default"]}):
            yield Cause(found.reason, found.message, f"{field}.default")
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        yield from _check_rule(rule.get("rule") or "", f"{field}.x-kubernetes-validations[{index}].rule")
    for _, below, place in _parts(schema, field):
        yield from _check_values(below, place)


def _check_rule(text: str, field: str) -> Iterator[Cause]:
    if not text.strip():
        yield required(field)
        return
    try:
        Program.compile(text, frozenset({"self", "oldSelf"}))
    except CelError as error:
        yield invalid_value(field, text, f"compilation failed: {error}")
