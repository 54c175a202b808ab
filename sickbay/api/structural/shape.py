"""The shape of an object: which fields a schema knows, and which it fills in."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from sickbay.api.structural.paths import child, item

Schema = dict[str, Any]

RESOURCE_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
"""Known in every resource, whatever its schema says."""


_ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}


class Unknown(NamedTuple):
    """A field the schema does not know, and the fields it knows in its place."""

    path: str
    value: Any
    known: tuple[str, ...]


def prune(schema: Schema, obj: Any) -> Any:
    """A copy of a resource without the fields its schema does not know."""
    return _prune(schema, obj, resource=True)


def unknown_fields(schema: Schema, obj: Any) -> list[Unknown]:
    """The fields that `prune` drops: what strict validation refuses."""
    return list(_unknown(schema, obj, "", resource=True))


def default(schema: Schema, obj: Any) -> Any:
    """A copy in which absent fields have their defaults.

    A null where the schema does not allow it counts as absent: it becomes the default, or goes.
    """
    if isinstance(obj, dict):
        return _default_object(schema, obj)
    if isinstance(obj, list):
        items = schema.get("items") or {}
        return [default(items, element) for element in obj]
    return obj


def properties_of(schema: Schema) -> dict[str, Schema]:
    properties: dict[str, Schema] = schema.get("properties") or {}
    return properties


def value_schema(schema: Schema) -> Schema | None:
    """The schema of a map's values; empty for a map of anything, None where the object is no map."""
    additional = schema.get("additionalProperties")
    if additional is True:
        return {}
    return additional if isinstance(additional, dict) else None


def keeps_unknown(schema: Schema) -> bool:
    return schema.get("x-kubernetes-preserve-unknown-fields") is True


def field_schema(schema: Schema, key: str) -> Schema | None:
    """The schema of one field or map value; empty where anything goes, None where the field is unknown."""
    known = properties_of(schema).get(key)
    if known is not None:
        return known
    values = value_schema(schema)
    if values is not None:
        return values
    return _ANYTHING if keeps_unknown(schema) else None


def _prune(schema: Schema, obj: Any, resource: bool = False) -> Any:
    if isinstance(obj, list):
        items = schema.get("items")
        return [_prune(items, element) for element in obj] if items else copy.deepcopy(obj)
    if not isinstance(obj, dict):
        return obj
    resource = resource or schema.get("x-kubernetes-embedded-resource") is True
    kept = {}
    for key, value in obj.items():
        below = field_schema(schema, key)
        if resource and key in RESOURCE_FIELDS:
            kept[key] = copy.deepcopy(value)
        elif below is not None:
            kept[key] = _prune(below, value)
    return kept


def _unknown(schema: Schema, obj: Any, path: str, resource: bool = False) -> Iterator[Unknown]:
    if isinstance(obj, list):
        for index, element in enumerate(obj):
            yield from _unknown(schema.get("items") or _ANYTHING, element, item(path, index))
    if not isinstance(obj, dict):
        return
    resource = resource or schema.get("x-kubernetes-embedded-resource") is True
    for key, value in obj.items():
        if resource and key in RESOURCE_FIELDS:
            continue
        below = field_schema(schema, key)
        if below is None:
            yield Unknown(child(path, key), value, tuple(properties_of(schema)))
        else:
            yield from _unknown(below or _ANYTHING, value, child(path, key))


def _default_object(schema: Schema, obj: dict[str, Any]) -> dict[str, Any]:
    properties = properties_of(schema)
    filled = {}
    for key, value in obj.items():
        below = field_schema(schema, key) or {}
        if value is None and key in properties and not below.get("nullable"):
            continue
        filled[key] = default(below, value)
    for key, below in properties.items():
        if key not in filled and "default" in below:
            filled[key] = default(below, copy.deepcopy(below["default"]))
    return filled
