"""CEL rules of a schema (x-kubernetes-validations), evaluated where they stand.

What a rule sees is the server's view: fields named like CEL's own words are escaped (`self.__for__`), unknown fields
do not exist, and of metadata only the name. One thing differs: text with a time format stays text, since the library
takes no timestamps from outside; a rule that writes `timestamp(self.until)` means the same on both sides. A rule with
`oldSelf` is judged on updates only, and only where the old value can be told: never inside atomic lists. A rule without
a value is a violation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sickbay.api.cel import CelError, Program, Variables
from sickbay.api.structural.lists import old_item
from sickbay.api.structural.paths import child, item
from sickbay.api.structural.shape import RESOURCE_FIELDS, Schema, field_schema, properties_of, value_schema
from sickbay.api.structural.violation import FORBIDDEN, INVALID, ROOT, Violation, type_of

_OLD_SELF = re.compile(r"\boldSelf\b")
_NO_KEY = re.compile(r'Key not found in map : "(.*)"')
_WORDS = (
    "true false null in as break const continue else for function if import let loop package namespace return var "
    "void while"
)
_RESERVED = frozenset(re.findall(r"\w+", _WORDS))


def has_rules(schema: Schema) -> bool:
    """Whether the schema has a rule anywhere."""
    if schema.get("x-kubernetes-validations"):
        return True
    below = [*properties_of(schema).values(), schema.get("items"), value_schema(schema)]
    return any(has_rules(part) for part in below if part)


def broken_rules(schema: Schema, obj: Any, old: Any = None) -> Iterator[Violation]:
    """Every rule of the schema that a resource breaks."""
    yield from _walk(schema, obj, old, "", resource=True)


def _walk(schema: Schema, value: Any, old: Any, path: str, resource: bool = False) -> Iterator[Violation]:
    if value is None:
        return
    unchanged = old is not None and value == old
    declared = schema.get("x-kubernetes-validations") or ()
    if unchanged:
        declared = [rule for rule in declared if _OLD_SELF.search(rule["rule"])]
    if declared:
        yield from _judge(declared, schema, value, old, path, resource)
    if unchanged:
        return
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for key, below in value.items():
            found = None if resource and key in RESOURCE_FIELDS else field_schema(schema, key)
            if found:
                yield from _walk(found, below, before.get(key), child(path, key))
    elif isinstance(value, list) and schema.get("items"):
        for index, element in enumerate(value):
            yield from _walk(schema["items"], element, old_item(schema, element, old), item(path, index))


def _judge(
    declared: Sequence[dict[str, Any]], schema: Schema, value: Any, old: Any, path: str, resource: bool
) -> Iterator[Violation]:
    seen = _seen(schema, value, resource)
    alone = Variables(self=seen)
    paired = Variables(self=seen, oldSelf=_seen(schema, old, resource)) if old is not None else None
    for rule in declared:
        text, variables = rule["rule"], alone
        if _OLD_SELF.search(text):
            if rule.get("optionalOldSelf"):
                text = f"cel.bind(oldSelf, {'optional.of(oldSelf)' if paired else 'optional.none()'}, {text})"
            elif paired is None:
                continue
            variables = paired or alone
        keyword = "rule"
        try:
            message = "" if Program.compile(text, variables.names).holds(variables) else _message(rule, variables)
        except CelError as error:
            keyword = "rule without value"
            message = f'Invalid value: "{type_of(value)}": {_reason(error)} evaluating rule: {_fallback(rule)}'
        if message:
            where = rule.get("fieldPath", "")
            here = (path + where).lstrip(".") or ROOT
            yield Violation(here, rule.get("reason", INVALID), message, _below(value, where), keyword, rule)


def _message(rule: dict[str, Any], variables: Variables) -> str:
    """What the server says of a rule that does not hold; it shows values other than objects and lists."""
    text = _fallback(rule)
    if "messageExpression" in rule:
        try:
            said = Program.compile(rule["messageExpression"], variables.names).evaluate_in(variables)
        except CelError:
            said = None
        if isinstance(said, str) and said.strip():
            text = said
    if rule.get("reason") == FORBIDDEN:
        return f"Forbidden: {text}"
    value = variables.values["self"]
    shown = "" if isinstance(value, dict | list) else f"{json.dumps(value)}: "
    return f"Invalid value: {shown}{text}"


def _fallback(rule: dict[str, Any]) -> str:
    return str(rule.get("message") or f"failed rule: {rule['rule']}")


def _reason(error: CelError) -> str:
    missing = _NO_KEY.search(str(error))
    return f"no such key: {missing[1]}" if missing else str(error)


def _below(value: Any, where: str) -> Any:
    """The value at a fieldPath; None where it, or something on the way, is absent."""
    for key in where.split(".")[1:]:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _seen(schema: Schema, value: Any, resource: bool = False) -> Any:
    """The value as CEL sees it."""
    if isinstance(value, dict):
        return _seen_object(schema, value, resource)
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_seen(items, element) for element in value]
    if schema.get("type") == "number" and isinstance(value, int):
        return float(value)
    return value


def _seen_object(schema: Schema, value: dict[str, Any], resource: bool) -> dict[str, Any]:
    values = value_schema(schema)
    if values is not None and not properties_of(schema):
        return {key: _seen(values, below) for key, below in value.items()}
    seen = {}
    if resource:
        metadata = value.get("metadata") or {}
        seen["metadata"] = {key: metadata[key] for key in ("name", "generateName") if key in metadata}
        seen.update({key: value[key] for key in ("apiVersion", "kind") if key in value})
    for key, below in properties_of(schema).items():
        if key in value and not (resource and key in RESOURCE_FIELDS):
            seen[escape(key)] = _seen(below, value[key])
    return seen


def escape(name: str) -> str:
    """The name of a declared field inside CEL."""
    if name in _RESERVED:
        return f"__{name}__"
    name = name.replace("__", "__underscores__")
    return name.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")
