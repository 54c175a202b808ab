"""How the parts of a built-in kind merge under a strategic merge patch.

Read from `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` of the recorded schemas: conditions merge by
type, containers by name, finalizers as a set. A list without a strategy is atomic: the patch replaces it whole;
`spec.taints` and `spec.tolerations` are such lists.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sickbay.apiserver.openapi.schemas import Schema, definitions, name_of, referred


class Shape:
    """What a strategic merge needs to know of one value; fields are looked at when they are asked for."""

    __slots__ = ("_children", "_properties", "key", "primitive", "replace")

    def __init__(self, schema: Schema) -> None:
        strategies = str(schema.get("x-kubernetes-patch-strategy", "")).split(",")
        inner = _resolved(schema)
        is_list = inner.get("type") == "array"
        merges = is_list and "merge" in strategies
        self.key: str = schema.get("x-kubernetes-patch-merge-key", "") if merges else ""
        """Merge key of a list of objects."""
        self.primitive = merges and not self.key
        """A list of scalars that merges as a set."""
        self.replace = not is_list and "replace" in strategies
        """An object that a patch replaces instead of merging into."""
        held = _resolved(inner.get("items") or {}) if is_list else inner
        self._properties: dict[str, Schema] = held.get("properties") or {}
        self._children: dict[str, Shape] = {}

    def child(self, name: str) -> Shape:
        """The shape of a field of this object, or of the items of this list."""
        found = self._children.get(name)
        if found is None:
            schema = self._properties.get(name)
            found = self._children[name] = ATOMIC if schema is None else Shape(schema)
        return found


def _resolved(schema: Any) -> Schema:
    for part in (schema, *(schema.get("allOf") or ())):
        if name := referred(part):
            return definitions().get(name, {})
    found: Schema = schema
    return found


ATOMIC = Shape({})


@lru_cache(maxsize=256)
def shape_of(group: str, version: str, kind: str) -> Shape:
    """The shape of a built-in kind; one without a schema has atomic fields only."""
    name = name_of(group, version, kind)
    return ATOMIC if name is None else Shape(definitions()[name])
