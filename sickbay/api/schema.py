"""The OpenAPI schema of a struct: the one source of the CRDs, of offline validation and of the reference.

Descriptions, limits, enumerations, defaults and CEL rules stand beside the fields in the structs; this file only
knows how to write them down as a structural schema.

Defaults: a field's own default is the schema's too, where it says something (a word, a number other than 0, true).
Only specs have them, since an empty status is not yet written; and never FaultType, whose absent fields are filled from
the built-in entry of the same name.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from sickbay.api.base import CorePart, Part, Rule
from sickbay.api.meta import ObjectMeta

Schema = dict[str, Any]

_SCALARS: dict[Any, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}
_EXTENSIONS = {
    "list_type": "x-kubernetes-list-type",
    "list_map_keys": "x-kubernetes-list-map-keys",
    "int_or_string": "x-kubernetes-int-or-string",
}
_ORDER = ("description", "type", "default", "enum")
"""Keywords that come first, so that a manifest reads well."""


def resource_schema(struct: type[Any], *, defaults: bool = True) -> Schema:
    """The openAPIV3Schema of a kind. `defaults` says whether its spec has any."""
    schema: Schema = {"description": summary(struct), "type": "object", "properties": {}, "required": ["spec"]}
    properties = schema["properties"]
    properties["apiVersion"] = {"type": "string", "maxLength": 317, "description": "Version of the API of this object"}
    properties["kind"] = {"type": "string", "maxLength": 63, "description": "Kind of this object"}
    properties["metadata"] = {"type": "object"}
    hints = get_type_hints(struct, include_extras=True)
    for name in ("spec", "status"):
        properties[name] = field_schema(hints[name], defaults=defaults and name == "spec")
    return schema


def struct_schema(struct: type[Any], *, defaults: bool) -> Schema:
    """The schema of a struct that is part of an object."""
    schema: Schema = {"description": summary(struct), "type": "object", "properties": {}}
    hints = get_type_hints(struct, include_extras=True)
    required = []
    for field in msgspec.structs.fields(struct):
        below = field_schema(hints[field.name], defaults=defaults)
        extra = extras(hints[field.name])
        if extra.get("required"):
            required.append(field.encode_name)
        elif defaults:
            _set_default(below, field, extra.get("default"))
        schema["properties"][field.encode_name] = _ordered(below)
    if required:
        schema["required"] = required
    if struct.RULES:
        schema["x-kubernetes-validations"] = [_rule(rule) for rule in struct.RULES]
    return schema


def field_schema(hint: Any, *, defaults: bool) -> Schema:
    """The schema of a type as it stands in an annotation."""
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        schema = field_schema(inner, defaults=defaults)
        for meta in metas:
            if isinstance(meta, msgspec.Meta):
                schema.update(_keywords(meta))
        return _ordered(schema)
    if get_origin(hint) in (Union, types.UnionType):
        return _union_schema(hint, defaults)
    if get_origin(hint) is list:
        return {"type": "array", "items": field_schema(get_args(hint)[0], defaults=defaults)}
    if get_origin(hint) is dict:
        return {"type": "object", "additionalProperties": field_schema(get_args(hint)[1], defaults=defaults)}
    if hint is ObjectMeta:
        return {"type": "object"}
    if isinstance(hint, type) and issubclass(hint, Part | CorePart):
        return struct_schema(hint, defaults=defaults)
    return {"type": _SCALARS[hint]}


def extras(hint: Any) -> dict[str, Any]:
    """What `says` kept beside the schema: required and default."""
    merged: dict[str, Any] = {}
    if get_origin(hint) is Annotated:
        for meta in get_args(hint)[1:]:
            if isinstance(meta, msgspec.Meta):
                merged.update({key: value for key, value in (meta.extra or {}).items() if value})
    return merged


def summary(struct: type[Any]) -> str:
    """The first paragraph of a struct's docstring, on one line."""
    text = (struct.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(text.split())


def _union_schema(hint: Any, defaults: bool) -> Schema:
    members = [member for member in get_args(hint) if member is not type(None)]
    if len(members) == 1:
        return field_schema(members[0], defaults=defaults)
    if set(members) == {int, str}:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    raise TypeError(f"no structural schema for {hint}")


def _keywords(meta: msgspec.Meta) -> Schema:
    words = {_EXTENSIONS.get(key, key): value for key, value in (meta.extra_json_schema or {}).items()}
    if meta.description:
        words["description"] = meta.description
    return words


def _set_default(schema: Schema, field: Any, given: Any) -> None:
    if given is ...:
        return
    if given is not None:
        schema["default"] = given
    elif field.default is not msgspec.NODEFAULT and field.default not in (None, "", 0, False):
        schema["default"] = field.default
    elif schema.get("type") == "object" and _has_defaults(schema) and field.default is msgspec.NODEFAULT:
        schema["default"] = {}


def _has_defaults(schema: Schema) -> bool:
    return any("default" in below for below in schema.get("properties", {}).values()) and not schema.get("required")


def _rule(rule: Rule) -> Schema:
    schema: Schema = {"rule": rule.rule, "message": rule.message}
    if rule.field:
        schema["fieldPath"] = rule.field
    if rule.optional_old_self:
        schema["optionalOldSelf"] = True
    return schema


def _ordered(schema: Schema) -> Schema:
    first = {key: schema[key] for key in _ORDER if key in schema}
    return first | {key: value for key, value in schema.items() if key not in first}
