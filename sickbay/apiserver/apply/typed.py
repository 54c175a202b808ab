"""How the parts of an object merge under apply, as its schema's `x-kubernetes-list-type` and `-map-type` say."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any

from sickbay.apiserver.openapi.schemas import OBJECT_META, PREFIX, Schema, definitions, name_of, referred
from sickbay.apiserver.resources import ResourceType


class Merge(Enum):
    FIELDS = "fields"
    """Field by field, or key by key."""
    ITEMS = "items"
    """A list whose items have keys."""
    SET = "set"
    """A list of scalars that is a set."""
    WHOLE = "whole"
    """One value: a scalar, an atomic list or map."""


class Typed:
    """One place in an object. Places the schema does not describe merge as plain JSON: maps by key, lists whole."""

    __slots__ = ("_children", "_schema", "keys", "merge")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._children: dict[str, Typed] = {}
        self.keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.merge = _merge_of(schema)

    def child(self, name: str) -> Typed:
        found = self._children.get(name)
        if found is None:
            found = self._children[name] = Typed(self._field_schema(name))
        return found

    def _field_schema(self, name: str) -> Schema:
        known = (self._schema.get("properties") or {}).get(name)
        if known is None:
            values = self._schema.get("additionalProperties")
            known = values if isinstance(values, dict) else {}
        return resolved(known)

    @property
    def item(self) -> Typed:
        """The place of one item of a keyed list."""
        found = self._children.get("")
        if found is None:
            found = self._children[""] = Typed(resolved(self._schema.get("items") or {}))
        return found

    def merges_by_field(self, value: Any) -> bool:
        """Whether a value here is taken apart; what has no schema is, when it is an object."""
        return self.merge is Merge.FIELDS and isinstance(value, dict)


def _merge_of(schema: Schema) -> Merge:
    if schema.get("type") == "array":
        kinds = {"map": Merge.ITEMS, "set": Merge.SET}
        return kinds.get(schema.get("x-kubernetes-list-type", ""), Merge.WHOLE)
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    return Merge.WHOLE if atomic or schema.get("type", "object") != "object" else Merge.FIELDS


def resolved(schema: Schema) -> Schema:
    """A schema with what it refers to; extensions of the reference's own place win."""
    for part in (schema, *(schema.get("allOf") or ())):
        if name := referred(part):
            return {**definitions().get(name, {}), **{key: value for key, value in schema.items() if key[:2] == "x-"}}
    return schema


@lru_cache(maxsize=256)
def _built_in(group: str, version: str, kind: str) -> Typed:
    return Typed(definitions().get(name_of(group, version, kind) or "", {}))


def typed(kind: ResourceType) -> Typed:
    """The root of a kind."""
    if kind.custom is None:
        return _built_in(kind.group, kind.version, kind.kind)
    schema = kind.custom.schema
    metadata = {"$ref": PREFIX + OBJECT_META}
    return Typed({**schema, "properties": {**(schema.get("properties") or {}), "metadata": metadata}})
