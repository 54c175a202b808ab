"""Sets of fields in the FieldsV1 form: nested maps whose keys are path elements.

    f:name      a field            k:{"k":"a"}   the item of a keyed list            v:"x"   an item of a set
    .           the place itself, beside its parts

A key that leads to an empty map is a member; others lead to members below. None of the functions changes its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sickbay.apiserver.apply.typed import Merge, Typed

Fields = dict[str, Any]
Path = tuple[str, ...]


def item_key(place: Typed, item: Any) -> str:
    """The path element of an item of a keyed list."""
    named = {key: item.get(key) for key in place.keys if isinstance(item, dict) and key in item}
    return "k:" + _text(named)


def value_key(value: Any) -> str:
    """The path element of an item of a set."""
    return "v:" + _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def fields_of(place: Typed, value: Any) -> Fields:
    """The members that a value sets below a place; empty for a value that is one member itself."""
    if place.merges_by_field(value):
        return {f"f:{key}": fields_of(place.child(key), below) for key, below in value.items()}
    if place.merge is Merge.ITEMS and isinstance(value, list):
        return {item_key(place, item): {".": {}, **fields_of(place.item, item)} for item in value}
    if place.merge is Merge.SET and isinstance(value, list):
        return {value_key(item): {} for item in value}
    return {}


def changed(place: Typed, new: Any, old: Any) -> Fields | None:
    """The members whose values differ between two states; None when nothing does, empty for the place itself."""
    if new is old or new == old:
        return None
    if not (_is_taken_apart(place, new) and _is_taken_apart(place, old)):
        return {}
    before, after = dict(_parts(place, old)), dict(_parts(place, new))
    found: Fields = {}
    for key in after.keys() | before.keys():
        if key not in before or key not in after:
            below, value = after.get(key) or before[key]
            found[key] = fields_of(below, value)
        elif (difference := changed(after[key][0], after[key][1], before[key][1])) is not None:
            found[key] = difference
    return found


def _is_taken_apart(place: Typed, value: Any) -> bool:
    if place.merge in (Merge.ITEMS, Merge.SET):
        return isinstance(value, list)
    return place.merges_by_field(value)


def _parts(place: Typed, value: Any) -> Iterator[tuple[str, tuple[Typed, Any]]]:
    if isinstance(value, dict):
        yield from ((f"f:{key}", (place.child(key), below)) for key, below in value.items())
    elif place.merge is Merge.ITEMS:
        yield from ((item_key(place, item), (place.item, item)) for item in value)
    else:
        yield from ((value_key(item), (place.item, item)) for item in value)


def union(one: Fields, other: Fields) -> Fields:
    result = dict(one)
    for key, below in other.items():
        result[key] = union(result[key], below) if key in result else below
    return result


def without(one: Fields, other: Fields) -> Fields:
    """The members of one set that are not in the other."""
    result: Fields = {}
    for key, below in one.items():
        if key not in other:
            result[key] = below
        elif below and (rest := without(below, other[key])):
            result[key] = rest
    return result


def cut(one: Fields, taken: Fields) -> Fields:
    """A set without what has been replaced: a member of `taken` takes everything below it along."""
    result: Fields = {}
    for key, below in one.items():
        if key not in taken:
            result[key] = below
        elif taken[key] and (not below or (rest := cut(below, taken[key]))):
            result[key] = rest if below else below
    return result


def common(one: Fields, other: Fields) -> Fields:
    """The members that are in both sets."""
    result: Fields = {}
    for key in one.keys() & other.keys():
        if not one[key] and not other[key]:
            result[key] = {}
        elif shared := common(one[key], other[key]):
            result[key] = shared
    return result


def members(fields: Fields, path: Path = ()) -> Iterator[Path]:
    """The paths of all members."""
    for key, below in fields.items():
        if not below:
            yield path if key == "." else (*path, key)
        else:
            yield from members(below, (*path, key))


def contains(fields: Fields, path: Path) -> bool:
    """Whether a path is a member, or leads to members."""
    for key in path:
        if key not in fields:
            return False
        fields = fields[key]
    return True


def shown(path: Path) -> str:
    """A path as conflicts name it: `.spec.list[k="a"].v`."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            named = json.loads(rest)
            text += "[" + ",".join(f"{key}={_text(value)}" for key, value in named.items()) + "]"
        else:
            text += f"[={rest}]"
    return text


def value_at(place: Typed, value: Any, path: Path) -> Any:
    """The value of a member in an object; None where it is absent."""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f" and isinstance(value, dict):
            place, value = place.child(rest), value.get(rest)
        elif isinstance(value, list):
            name = value_key if kind == "v" else lambda item, place=place: item_key(place, item)  # type: ignore[misc]
            value = next((item for item in value if name(item) == element), None)
            place = place.item
        else:
            return None
    return value
