"""The field reference of the API (docs/api.md), written from the schemas of the CRDs.

What the reference says and what the API server enforces are therefore the same. A contract file lists the fields that
v1alpha1 began with; they stay with their types and defaults, and the reference tells apart what was added since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sickbay.api import crds, names
from sickbay.api.duration import PATTERN as DURATION_PATTERN
from sickbay.api.schema import Schema

HEAD = f"""\
# API reference: `{names.API_VERSION}`

Generated from the structs in `sickbay/api` by `python -m sickbay.api.generate`; a test keeps it current.
`kubectl explain` shows the same text.

Durations are written like `90s`, `30m`, `1h30m` or `7d` (units d, h, m, s, ms, largest first, whole numbers).
*count or %* is a whole number, or a whole percentage of the nodes as text (`"20%"`). Times are RFC 3339. A `null`
reads as absent. *Conditions* are `{{type, status, observedGeneration, lastTransitionTime, reason, message}}`, one for
each type; a *label selector* is Kubernetes' own, `{{matchLabels, matchExpressions}}`. `[]` stands for each item of a
list, `{{}}` for each value of a map. A word in a status that is in no list here comes from a newer version: leave the
object alone and tell people.
"""

_SELECTOR = {"matchLabels", "matchExpressions"}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind."""

    path: str
    type: str
    default: str
    required: bool
    meaning: str

    @property
    def line(self) -> str:
        """As it stands in a contract file, below its kind: path, type and default."""
        return " | ".join((self.path, self.type, "required" if self.required else self.default))


def markdown(contract: Iterable[str] = ()) -> str:
    """The whole reference. `contract`: lines `<Kind> | <path> | <type> | <default>` of the fields there were first."""
    known = {tuple(line.split(" | ")[:2]) for line in contract}
    parts = [HEAD]
    added = []
    for definition in crds.DEFINITIONS:
        kind = definition.kind.kind
        found = list(fields(kind))
        parts.append(_section(definition, found))
        added += [(kind, field) for field in found if known and (kind, field.path) not in known]
    if added:
        parts.append(_additions(added))
    return "\n".join(parts)


def fields(kind: str) -> Iterator[Field]:
    """Every field of a kind below spec and status, in order."""
    properties = crds.schemas()[kind]["properties"]
    for name in ("spec", "status"):
        yield from _below(name, properties[name])


def _below(path: str, schema: Schema) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, below in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        yield Field(here, _type(below), _default(below), name in required, below.get("description", ""))
        yield from _inside(here, below)


def _inside(path: str, schema: Schema) -> Iterator[Field]:
    if _is_selector(schema) or _is_conditions(schema):
        return
    if "items" in schema:
        yield from _inside(f"{path}[]", schema["items"])
    elif "additionalProperties" in schema:
        yield from _inside(f"{path}{{}}", schema["additionalProperties"])
    elif "properties" in schema:
        yield from _below(path, schema)


def _type(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "count or %"
    if "enum" in schema:
        return " / ".join(word for word in schema["enum"] if word)
    if schema.get("pattern") == DURATION_PATTERN:
        return "duration"
    if schema.get("format") == "date-time":
        return "time"
    if _is_selector(schema):
        return "label selector"
    if _is_conditions(schema):
        return "conditions"
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema['items'])}, max {schema['maxItems']}"
        case "object" if "additionalProperties" in schema:
            return f"map to {_type(schema['additionalProperties'])}"
    return str(schema.get("type"))


def _is_selector(schema: Schema) -> bool:
    return set(schema.get("properties", ())) == _SELECTOR


def _is_conditions(schema: Schema) -> bool:
    return schema.get("x-kubernetes-list-map-keys") == ["type"]


def _default(schema: Schema) -> str:
    given = schema.get("default")
    if given is None or given == {}:
        return ""
    return ", ".join(map(str, given)) if isinstance(given, list) else str(given)


def _section(definition: crds.Definition, found: list[Field]) -> str:
    kind = definition.kind
    schema = crds.schemas()[kind.kind]
    scope = "namespaced" if kind.namespaced else "cluster-scoped"
    lines = [
        f"## {kind.kind}",
        "",
        schema["description"],
        "",
        f"`{kind.plural}`, short `{definition.short}`, {scope}.",
        "",
    ]
    if not definition.defaults:
        lines += ["Nothing here has a default: absent fields are taken from the built-in entry of the same name.", ""]
    lines += ["| field | type | default | meaning |", "|---|---|---|---|"]
    lines += [_row(field) for field in found]
    rules = list(dict.fromkeys(rule["message"] for rule in _rules(schema)))
    if rules:
        lines += ["", "The API server refuses it when", ""]
        lines += [f"- {rule}" for rule in rules]
    return "\n".join([*lines, ""])


def _row(field: Field) -> str:
    default = "*required*" if field.required else f"`{field.default}`" if field.default else ""
    cells = (f"`{field.path}`", field.type, default, field.meaning)
    return "| " + " | ".join(_text(cell) for cell in cells) + " |"


def _text(cell: str) -> str:
    """Safe inside a table: outside of code `<` would begin a tag."""
    return cell.replace("|", "\\|") if cell.startswith("`") else cell.replace("|", "\\|").replace("<", "&lt;")


def _rules(schema: Schema) -> Iterator[dict[str, Any]]:
    yield from schema.get("x-kubernetes-validations", ())
    below = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for part in below:
        if part:
            yield from _rules(part)


def _additions(added: list[tuple[str, Field]]) -> str:
    lines = ["## Added since", "", "Fields that came after the first version of the contract:", ""]
    lines += [f"- {kind} `{field.path}`: {field.meaning}" for kind, field in added]
    return "\n".join([*lines, ""])
