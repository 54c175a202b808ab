"""A configuration laid over an object, and the removal of fields. Neither changes what it is given."""

from __future__ import annotations

from typing import Any

from sickbay.apiserver.apply.fieldset import Fields, item_key, value_key
from sickbay.apiserver.apply.typed import Merge, Typed


def merged(place: Typed, live: Any, config: Any) -> Any:
    """The object with what the configuration says; everything else stays."""
    if place.merges_by_field(config):
        result = dict(live) if isinstance(live, dict) else {}
        for key, value in config.items():
            result[key] = merged(place.child(key), result.get(key), value)
        return result
    if place.merge is Merge.ITEMS and isinstance(config, list):
        return _merged_items(place, live if isinstance(live, list) else [], config)
    if place.merge is Merge.SET and isinstance(config, list):
        present = live if isinstance(live, list) else []
        return [*present, *(item for item in config if item not in present)]
    return config


def _merged_items(place: Typed, live: list[Any], config: list[Any]) -> list[Any]:
    wanted = {item_key(place, item): item for item in config}
    result = []
    for item in live:
        key = item_key(place, item)
        result.append(merged(place.item, item, wanted.pop(key)) if key in wanted else item)
    return [*result, *wanted.values()]


def removed(place: Typed, live: Any, gone: Fields, kept: Fields) -> Any:
    """The object without the members of `gone`. What is left empty goes too, unless it is in `kept`, as somebody's."""
    if isinstance(live, dict):
        result = dict(live)
        for element, below in gone.items():
            key = element.removeprefix("f:")
            if element == "." or key not in result:
                continue
            left = removed(place.child(key), result[key], below, kept.get(element) or {}) if below else None
            if left or element in kept:
                result[key] = left
            else:
                del result[key]
        return result
    if isinstance(live, list):
        return _removed_items(place, live, gone, kept)
    return live


def _removed_items(place: Typed, live: list[Any], gone: Fields, kept: Fields) -> list[Any]:
    keys = value_key if place.merge is Merge.SET else lambda item: item_key(place, item)
    result = []
    for item in live:
        key = keys(item)
        below = gone.get(key)
        if below is None:
            result.append(item)
        elif below and ("." not in below or key in kept):
            result.append(removed(place.item, item, below, kept.get(key) or {}))
    return result
