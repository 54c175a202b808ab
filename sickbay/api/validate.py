"""Judging manifests without an API server: `sickbay check`, scenario files, rules at load.

The judgement is that of the CRDs, by the same schemas and rules, with what the server's strict mode adds (unknown
fields) and what CEL cannot afford there: bounds between two durations, regular expressions and CEL expressions that do
not compile. What depends on other objects or on the size of a pool is the controller's to judge.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any, NamedTuple

from sickbay.api import names
from sickbay.api.beyond_schema import further_problems
from sickbay.api.crds import schemas
from sickbay.api.duration import PATTERN as DURATION_PATTERN
from sickbay.api.kinds import OWN, Kind
from sickbay.api.quantity import PERCENT_PATTERN
from sickbay.api.structural import Violation, default, prune, unknown_fields
from sickbay.api.structural import validate as judge
from sickbay.clock import rfc3339

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SHOWN = 80
"""Characters of a value shown to people."""


class Problem(NamedTuple):
    """One thing wrong with a manifest, and what to do about it."""

    path: str
    value: Any
    message: str
    remedy: str

    def __str__(self) -> str:
        shown = "" if self.value is None else f" ({_shorten(self.value)})"
        return f"{self.path}{shown}: {self.message}; {self.remedy}"


def validate(kind: str | Kind[Any], obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Problem]:
    """Everything wrong with a manifest of one of our kinds, in no particular order; empty when it is good.

    `old` is the stored version, for the rules about changes. Raises KeyError for a kind that is not ours.
    """
    kind = kind if isinstance(kind, str) else kind.kind
    if kind not in schemas():
        raise KeyError(f"{kind!r} is no kind of {names.API_VERSION}; there are {', '.join(schemas())}")
    schema, plain = schemas()[kind], _json(obj)
    problems = [*_identity(kind, plain)]
    for field in unknown_fields(schema, plain):
        problems.append(Problem(field.path, field.value, "unknown field", _spelling(field.path, field.known)))
    filled = default(schema, prune(schema, plain))
    before = default(schema, prune(schema, _json(old))) if old is not None else None
    violations = judge(schema, filled, before)
    problems += [_problem(violation, schema) for violation in _telling(violations)]
    if not violations:
        problems += [Problem(*found) for found in further_problems(kind, filled)]
    return problems


def _identity(kind: str, obj: Mapping[str, Any]) -> Iterator[Problem]:
    wanted = {"apiVersion": names.API_VERSION, "kind": kind}
    for key, value in wanted.items():
        if obj.get(key) != value:
            yield Problem(key, obj.get(key), f"not {value}", f"write {key}: {value}")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        yield Problem("metadata", metadata, "required", "give the object a name: metadata: {name: ...}")
        return
    name = metadata.get("name", metadata.get("generateName"))
    if not isinstance(name, str) or not name:
        yield Problem("metadata.name", name, "required", "give the object a name")
    elif "name" in metadata and (len(name) > 253 or not _NAME.fullmatch(name)):
        remedy = "use at most 253 lower case letters, digits, '-' and '.', with a letter or digit at both ends"
        yield Problem("metadata.name", name, "not a legal name", remedy)
    namespaced = next(own.namespaced for own in OWN if own.kind == kind)
    if not namespaced and metadata.get("namespace"):
        yield Problem("metadata.namespace", metadata["namespace"], f"{kind} is cluster-scoped", "remove it")


def _telling(violations: list[Violation]) -> list[Violation]:
    """Without what only follows from the others: rules left out, or without a value for what is wrong already."""
    following = ("unchecked", "rule without value")
    return [violation for violation in violations if violation.keyword not in following] or violations


def _problem(violation: Violation, schema: Mapping[str, Any]) -> Problem:
    if violation.keyword == "rule":
        message, _, remedy = violation.limit["message"].partition("; ")
        return Problem(violation.path, violation.value, message, remedy)
    text = _remedy(violation)
    if violation.keyword == "type" and violation.limit == "string" and isinstance(violation.value, bool | int | float):
        text = _as_text(violation.value, _schema_at(schema, violation.path)) or text
    return Problem(violation.path, violation.value, _message(violation), text)


def _as_text(value: bool | float, wanted: Mapping[str, Any]) -> str:
    """What to write for a string that YAML took for a truth value or a number, since it has no quotes; "" = unknown."""
    words = [str(word) for word in wanted.get("enum") or () if word]
    for written in (str(value), json.dumps(value)):
        if not words or written in words:
            break
    else:
        return f"write one of {', '.join(words)}"
    if wanted.get("pattern") == DURATION_PATTERN:
        number = not isinstance(value, bool) and value > 0
        return f"write a duration with its unit, such as {value}m or {value}s" if number else _form(DURATION_PATTERN)
    return f'write "{written if words else json.dumps(value)}", in quotes'


def _schema_at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The part of a schema that judges what stands at a path; empty where the path holds keys of a map with dots."""
    found: Any = schema
    for key in re.findall(r"[^.\[\]]+", path):
        below = (found.get("properties") or {}).get(key)
        found = found.get("items") if key.isdigit() else below or found.get("additionalProperties")
        if not isinstance(found, Mapping):
            return {}
    return dict(found)


def _message(violation: Violation) -> str:
    match violation.keyword:
        case "required":
            return "required"
        case "enum":
            return "unknown word"
        case "type":
            return "wrong type"
        case "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minimum" | "maximum":
            return "out of bounds"
        case "x-kubernetes-list-type":
            return "given twice"
    if violation.keyword == "rule without value":
        return violation.message.removeprefix('Invalid value: "object": ')
    return "wrong form"


def _remedy(violation: Violation) -> str:
    limit = violation.limit
    match violation.keyword:
        case "required":
            return "add it"
        case "enum":
            return _spelling(str(violation.value), [str(word) for word in limit if word], "write one of")
        case "type":
            return f"write {_article(str(limit).replace(',', ' or '))}"
        case "pattern":
            return _form(limit)
        case "format":
            return "write a time like 2026-11-29T12:00:00Z" if limit == "date-time" else f"write a {limit}"
        case "maxLength":
            return f"use at most {limit} characters"
        case "minLength":
            return "give it a value" if limit == 1 else _form(DURATION_PATTERN)
        case "maxItems" | "maxProperties":
            return f"give at most {limit}"
        case "minItems":
            return f"give at least {limit}"
        case "minimum":
            return f"use at least {limit}"
        case "maximum":
            return f"use at most {limit}"
        case "x-kubernetes-list-type":
            return "give each only once"
    return "see the reference of the kind"


def _form(pattern: str) -> str:
    if pattern == DURATION_PATTERN:
        return "write a duration like 90s, 30m, 1h30m or 7d, largest unit first"
    if pattern == PERCENT_PATTERN:
        return "write a count, or a whole percentage such as 20%"
    return f"write something that matches {pattern}"


def _article(wanted: str) -> str:
    return f"an {wanted}" if wanted[0] in "aeio" else f"a {wanted}"


def _spelling(given: str, known: Any, otherwise: str = "remove it, or use one of") -> str:
    word = given.rpartition(".")[2]
    near = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), near, n=1)
    if found:
        return f"did you mean {near[found[0]]}?"
    return f"{otherwise} {', '.join(known)}" if known else "remove it"


def _json(value: Any) -> Any:
    """As JSON would have it: YAML loaders make dates of unquoted times."""
    if isinstance(value, Mapping):
        return {str(key): _json(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_json(element) for element in value]
    if isinstance(value, datetime):
        return rfc3339(value) if value.tzinfo else value.isoformat()
    return value.isoformat() if isinstance(value, date) else value


def _shorten(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
