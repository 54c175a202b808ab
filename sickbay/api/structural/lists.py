"""Lists that are sets or maps: what makes two items the same one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sickbay.api.structural.shape import Schema, properties_of


def duplicates(schema: Schema, items: list[Any]) -> Iterator[tuple[int, Any]]:
    """Index and key of each item that repeats an earlier one, in lists declared as set or map."""
    seen: list[Any] = []
    for index, element in enumerate(items):
        key = _identity(schema, element)
        if key is None:
            return
        if key in seen:
            yield index, key
        seen.append(key)


def old_item(schema: Schema, element: Any, old: Any) -> Any:
    """The same item in the old list, where the list is a map; None in atomic lists, whose items have no identity."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return None
    key = _identity(schema, element)
    return next((before for before in old if _identity(schema, before) == key), None)


def _identity(schema: Schema, element: Any) -> Any:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return element
        case "map" if isinstance(element, dict):
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            properties = properties_of(schema.get("items") or {})
            return {key: element.get(key, properties.get(key, {}).get("default")) for key in keys}
    return None
