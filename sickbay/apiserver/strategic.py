"""Strategic merge patch, after k8s.io/apimachinery/pkg/util/strategicpatch.

A merge patch that knows which lists are keyed: `status.conditions` merges by `type`, containers by `name`. Directives:
`$patch` (replace, delete, merge), `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`, `$retainKeys`.
The result shares unchanged parts with the original; neither argument is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sickbay.apiserver.openapi.mergekeys import ATOMIC, Shape

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE_PRIMITIVE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"

Obj = dict[str, Any]


class PatchMalformed(Exception):
    """The patch contradicts itself or lacks a merge key."""


class PatchMisfit(PatchMalformed):
    """The patch has another value where the kind has an object."""


def apply(shape: Shape, original: Obj, patch: Obj) -> Obj:
    """The patched object. Raises PatchMalformed."""
    return _merge_object(original, patch, shape)


def _merge_object(original: Obj, patch: Obj, shape: Shape) -> Obj:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchMalformed(f"Unknown patch type: {directive}")
    result = dict(original)
    if _RETAIN in patch:
        retained = _directive_list(patch, _RETAIN)
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key in (_PATCH, _RETAIN):
            continue
        if key.startswith(_DELETE_PRIMITIVE):
            field = key.removeprefix(_DELETE_PRIMITIVE)
            gone = _directive_list(patch, key)
            result[field] = [item for item in result.get(field) or [] if item not in gone]
            continue
        if key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            _check_order(_directive_list(patch, key), shape.child(field))
            if field not in patch and isinstance(result.get(field), list):
                result[field] = _ordered(result[field], value, result[field], shape.child(field))
            continue
        _merge_field(result, original, key, value, shape.child(key), patch.get(_ORDER + key))
    return result


def _directive_list(patch: Obj, directive: str) -> list[Any]:
    value = patch[directive]
    if not isinstance(value, list):
        raise PatchMisfit(f"{directive} is a list, not {value!r}")
    return value


def _check_order(order: list[Any], shape: Shape) -> None:
    """An order names items as the list does: by merge key, or by themselves."""
    for item in order:
        named = item.get(shape.key) if shape.key and isinstance(item, dict) else item
        if isinstance(named, dict | list) or isinstance(item, dict) != bool(shape.key):
            raise PatchMisfit(f"{item!r} is no item of the list that is put in order")


def _merge_field(result: Obj, original: Obj, key: str, value: Any, shape: Shape, order: list[Any] | None) -> None:
    current = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict) and not shape.replace:
        result[key] = _merge_object(current if isinstance(current, dict) else {}, value, shape)
    elif isinstance(value, list) and isinstance(current, list) and (shape.key or shape.primitive):
        result[key] = _merge_list(current, value, shape, order)
    elif isinstance(value, list):
        result[key] = [_clean(item) for item in value if not _is_directive(item)]
    else:
        result[key] = _clean(value)


def _is_directive(item: Any) -> bool:
    """Whether an item of a list is there for what it says alone: `$patch: replace`, or an item to be deleted."""
    return isinstance(item, dict) and (set(item) == {_PATCH} or item.get(_PATCH) == "delete")


def _clean(value: Any) -> Any:
    """A value taken over from a patch, without its directives."""
    if isinstance(value, dict):
        return _merge_object({}, value, ATOMIC)
    return value


def _merge_list(original: list[Any], patch: list[Any], shape: Shape, order: list[Any] | None) -> list[Any]:
    if shape.primitive:
        if any(isinstance(item, dict | list) for item in patch):
            raise PatchMisfit("cannot merge objects into a list of texts")
        merged = [*original, *(item for item in dict.fromkeys(patch) if item not in original)]
        return _ordered(merged, order if order is not None else patch, original, shape)
    replaces = any(isinstance(item, dict) and item.get(_PATCH) == "replace" for item in patch)
    if replaces:
        return [item for item in patch if _PATCH not in item]
    merged = list(original)
    for item in patch:
        if not isinstance(item, dict):
            raise PatchMisfit(f"cannot merge {item!r} into a list of objects")
        _merge_item(merged, item, shape)
    kept = [item for item in patch if item.get(_PATCH) != "delete"]
    return _ordered(merged, order if order is not None else kept, original, shape)


def _merge_item(merged: list[Any], item: Obj, shape: Shape) -> None:
    if shape.key not in item:
        raise PatchMalformed(f"map: {item} does not contain declared merge key: {shape.key}")
    wanted = item[shape.key]
    if isinstance(wanted, dict | list):
        raise PatchMisfit(f"the merge key {shape.key} is no {wanted!r}")
    position = next((index for index, other in enumerate(merged) if other.get(shape.key) == wanted), -1)
    if item.get(_PATCH) == "delete":
        merged[:] = [other for other in merged if other.get(shape.key) != item[shape.key]]
    elif position < 0:
        merged.append(_merge_object({}, item, shape))
    else:
        merged[position] = _merge_object(merged[position], item, shape)


def _places(items: list[Any], key: str) -> Callable[[Any], int]:
    """A function from an item to its place among `items`, by its merge key or by itself; -1 when it has none."""
    places: dict[Any, int] = {}
    for index, item in enumerate(items):
        places.setdefault(item.get(key) if key else item, index)
    return lambda item: places.get(item.get(key) if key else item, -1)


def _ordered(merged: list[Any], wanted: list[Any], original: list[Any], shape: Shape) -> list[Any]:
    """Items that the patch names come in its order, the others keep the server's, interleaved as upstream does it."""

    in_patch, in_server = _places(wanted, shape.key), _places(original, shape.key)
    named = sorted((item for item in merged if in_patch(item) >= 0), key=in_patch)
    others = sorted((item for item in merged if in_patch(item) < 0), key=in_server)
    result: list[Any] = []
    while named and others:
        left, right = in_server(others[0]), in_server(named[0])
        result.append(others.pop(0) if 0 <= left < right else named.pop(0))
    return [*result, *others, *named]
