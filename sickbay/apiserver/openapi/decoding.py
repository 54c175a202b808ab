"""What kube-apiserver's decoder does to an object of a built-in kind: drop what its type does not know, refuse what
does not fit.

Unknown fields and nulls vanish, a text where a number belongs is a bad request. Without this a misspelt field would be
kept here and lost on a real server. Parts that are shared with the stored version have been decoded before and are
not looked at, so a patch costs what it touches.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from sickbay.apiserver.errors import Obj, StatusError, Undecodable
from sickbay.apiserver.openapi.scalars import Scalar, scalar_of
from sickbay.apiserver.openapi.schemas import OBJECT_META, Schema, definitions, name_of, referred


class Type:
    """A Go type as its schema describes it: a scalar, a list, a map, a struct, or open to anything."""

    __slots__ = ("fields", "is_struct", "items", "properties", "scalar", "values")

    def __init__(self, schema: Schema, name: str = "") -> None:
        self.scalar: Scalar | None = scalar_of(schema, name)
        self.items: Type | None = None
        self.values: Type | None = None
        self.properties: dict[str, Schema] = {}
        self.fields: dict[str, Type] = {}
        """Fields whose types have been asked for."""
        kind = schema.get("type")
        if self.scalar is not None:
            pass
        elif kind == "object" and schema.get("properties"):
            self.properties = schema["properties"]
        elif kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            self.values = type_of(schema["additionalProperties"])
        elif kind == "array":
            self.items = type_of(schema.get("items") or {})
        self.is_struct = bool(self.properties)

    def field(self, name: str) -> Type | None:
        """None for a field the struct does not have."""
        found = self.fields.get(name)
        if found is None and name in self.properties:
            found = self.fields[name] = type_of(self.properties[name])
        return found


@lru_cache(maxsize=1024)
def _named(name: str) -> Type:
    return Type(definitions().get(name, {}), name)


def type_of(schema: Schema) -> Type:
    """The type of a property: its own, or the one it refers to."""
    for part in (schema, *(schema.get("allOf") or ())):
        if name := referred(part):
            return _named(name)
    return Type(schema)


def kind_type(group: str, version: str, kind: str) -> Type | None:
    """The type of a built-in kind; None where no schema was recorded."""
    name = name_of(group, version, kind)
    return None if name is None else _named(name)


def decoded(kind: Type, what: str, obj: Obj, old: Obj | None = None) -> Obj:
    """The object as its Go type would hold it, sharing what it can with `obj`. Raises StatusError(400).

    `what` begins the message: `Node in version "v1"`. Metadata is left to its own rules.
    """
    before = old or {}
    result = dict(obj)
    for key, item in obj.items():
        if key in _HEAD:
            continue
        field = kind.field(key)
        if field is None or item is None:
            del result[key]
            continue
        try:
            result[key] = _value(field, item, before.get(key))
        except _Misfit as misfit:
            raise _refusal(what, misfit.below(key)) from None
    return result


def decoded_metadata(what: str, metadata: Any, old: Obj | None = None) -> Obj:
    """The same for `metadata`, which is of one type whatever the kind. None is an empty one."""
    if metadata is None:
        return {}
    try:
        found: Obj = _value(_named(OBJECT_META), metadata, old)
    except _Misfit as misfit:
        raise _refusal(what, misfit.below("metadata")) from None
    return found


def object_meta() -> Type:
    """The type of `metadata`."""
    return _named(OBJECT_META)


_HEAD = frozenset({"metadata", "kind", "apiVersion"})


class _Misfit(Exception):
    """A value that does not fit; the path is put together on the way up, where it costs nothing unless needed."""

    def __init__(self, needs: str, value: Any) -> None:
        super().__init__(needs)
        shown = repr(value)
        self.text = f"{needs} is needed, not {shown if len(shown) < 60 else shown[:60] + '...'}"
        self.path = ""

    def below(self, key: str | int) -> _Misfit:
        step = f"[{key}]" if isinstance(key, int) else key
        dot = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{step}{dot}{self.path}"
        return self


def _refusal(what: str, misfit: _Misfit) -> StatusError:
    kind = what.partition(" ")[0]
    return Undecodable(f"{what} cannot be handled as a {kind}: {misfit.path}: {misfit.text}")


def _value(kind: Type, value: Any, old: Any) -> Any:
    if value is old:
        return value
    scalar = kind.scalar
    if scalar is not None:
        if type(value) is scalar.exact or scalar.fits(value):
            return value
        raise _Misfit(scalar.needs, value)
    if kind.is_struct:
        return _struct(kind, value, old if isinstance(old, dict) else {})
    if kind.items is not None:
        return _list(kind.items, value, old)
    if kind.values is not None:
        return _map(kind.values, value, old)
    return value


def _struct(kind: Type, value: Any, old: Obj) -> Any:
    if not isinstance(value, dict):
        raise _Misfit("an object", value)
    result: Obj | None = None
    for key, item in value.items():
        field = kind.fields.get(key) or kind.field(key)
        if field is None or item is None:
            result = dict(value) if result is None else result
            del result[key]
            continue
        scalar = field.scalar
        if scalar is not None:
            if type(item) is scalar.exact or item is old.get(key) or scalar.fits(item):
                continue
            raise _Misfit(scalar.needs, item).below(key)
        try:
            kept = _value(field, item, old.get(key))
        except _Misfit as misfit:
            raise misfit.below(key) from None
        if kept is not item:
            result = dict(value) if result is None else result
            result[key] = kept
    return value if result is None else result


def _list(items: Type, value: Any, old: Any) -> Any:
    if not isinstance(value, list):
        raise _Misfit("a list", value)
    scalar = items.scalar
    if value is old or (scalar is not None and all(type(item) is scalar.exact for item in value)):
        return value
    before = old if isinstance(old, list) else ()
    result: list[Any] | None = None
    for index, item in enumerate(value):
        try:
            kept = _value(items, _zero(items) if item is None else item, before[index] if index < len(before) else None)
        except _Misfit as misfit:
            raise misfit.below(index) from None
        if kept is not item:
            result = list(value) if result is None else result
            result[index] = kept
    return value if result is None else result


def _zero(kind: Type) -> Any:
    """What a null in a list or a map becomes."""
    if kind.is_struct:
        return {}
    exact = kind.scalar.exact if kind.scalar is not None else None
    return None if exact is None else exact()


def _map(values: Type, value: Any, old: Any) -> Any:
    if not isinstance(value, dict):
        raise _Misfit("a map", value)
    before = old if isinstance(old, dict) else {}
    result: Obj | None = None
    for key, item in value.items():
        if values.scalar is not None and type(item) is values.scalar.exact:
            continue
        kept = _zero(values) if item is None else item
        if kept is None:
            result = dict(value) if result is None else result
            del result[key]
            continue
        try:
            kept = _value(values, kept, before.get(key))
        except _Misfit as misfit:
            raise misfit.below(key) from None
        if kept is not item:
            result = dict(value) if result is None else result
            result[key] = kept
    return value if result is None else result


def unknown_paths(kind: Type, obj: Any, path: str = "") -> Iterator[str]:
    """Paths of the fields that `decoded` drops because the type does not know them."""
    held = kind.items or kind.values
    if held is not None and held.scalar is not None:
        return
    if isinstance(obj, list) and kind.items is not None:
        for index, item in enumerate(obj):
            yield from unknown_paths(kind.items, item, f"{path}[{index}]")
    elif isinstance(obj, dict) and kind.values is not None:
        for key, item in obj.items():
            yield from unknown_paths(kind.values, item, f"{path}.{key}")
    elif isinstance(obj, dict) and kind.is_struct:
        for key, item in obj.items():
            below, field = f"{path}.{key}" if path else key, kind.field(key)
            if field is None:
                yield below
            elif field.scalar is None:
                yield from unknown_paths(field, item, below)
