"""Lists: selection, and pages that all show one moment however much is written between them.

A continue token names the revision of the first page and the key to go on from. Later pages show the objects as they
were at that revision, rebuilt from the history; when the history no longer reaches back the token has expired (410).
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from dataclasses import dataclass

from sickbay.apiserver.errors import StatusError, bad_request, expired
from sickbay.apiserver.resources import ResourceType, Served
from sickbay.apiserver.selectors import (
    FieldTerm,
    field_predicate,
    label_predicate,
    parse_fields,
    parse_labels,
    unsupported_field,
)
from sickbay.apiserver.table import Entry, Filter, Table

_TOKEN_VERSION = "meta.k8s.io/v1"
_EVERY_KIND = ("metadata.name", "metadata.namespace")


def selection(
    kind: ResourceType, namespace: str = "", labels: str = "", fields: str = "", view: Served | None = None
) -> Filter:
    """Raises StatusError(400) for a selector that cannot be read, or a field the kind cannot be selected by."""
    requirements = parse_labels(labels)
    terms = tuple(_resolved(kind, term, view) for term in parse_fields(fields))
    return Filter(
        namespace if kind.namespaced else "",
        label_predicate(requirements) if requirements else None,
        field_predicate(terms, kind.fields) if terms else None,
        terms,
    )


def _resolved(kind: ResourceType, term: FieldTerm, view: Served | None) -> FieldTerm:
    renamed = view.renamed_fields if view is not None else {}
    path = renamed.get(term.path, term.path)
    known = path in kind.fields and term.path not in renamed.values()
    if known or path in _EVERY_KIND:
        return FieldTerm(path, term.equal, term.value)
    if kind.kind == "Job":
        raise bad_request(f'field label "{term.path}" not supported for Job')
    if not kind.fields and kind.custom is None:
        raise bad_request(f'"{term.path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    raise unsupported_field(term.path)


def check_kept(table: Table, revision: int) -> None:
    """Raises StatusError(410) when changes after `revision` may have been forgotten."""
    if revision < table.compacted:
        raise expired(f"too old resource version: {revision} ({table.compacted + 1})")


def too_large(revision: int, current: int) -> StatusError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    return StatusError(504, "Timeout", message, details={"causes": [cause]}, retry_after=1)


@dataclass(frozen=True, slots=True)
class Page:
    entries: list[Entry]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


def encode_token(revision: int, key: str) -> str:
    text = json.dumps({"v": _TOKEN_VERSION, "rv": revision, "start": key})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_token(token: str) -> tuple[int, str]:
    """Raises StatusError(400)."""
    try:
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, revision, start = str(content.get("v", "")), int(content.get("rv", 0)), str(content.get("start", ""))
    except (ValueError, TypeError, AttributeError):
        raise _no_token("it was not issued by this server") from None
    if version != _TOKEN_VERSION:
        raise _no_token(f"server does not recognize this encoded version {version}")
    if not start or ".." in start.split("/"):
        raise _no_token(start)
    return revision, start


def _no_token(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def page(table: Table, current: int, chosen: Filter, limit: int = 0, token: str = "", exact: int = 0) -> Page:
    """One page of at most `limit` entries (all, when 0). `exact` asks for the state at a revision.

    Raises StatusError(410) when the token's or the asked moment is no longer kept.
    """
    if not token and not limit and not exact:
        return Page(table.select(chosen), current)
    revision, start = decode_token(token) if token else (exact or current, "")
    if revision < table.compacted and revision != current:
        raise (
            _expired_token()
            if token
            else expired(f"The resourceVersion for the provided list is too old: {revision} ({table.compacted + 1})")
        )
    if revision > current:
        raise too_large(revision, current)
    entries = table.entries if revision == current else table.at(revision)
    keys = table.sorted_keys() if revision == current else sorted(entries)
    return _cut([entries[key] for key in keys[bisect_right(keys, start) if start else 0 :]], chosen, limit, revision)


def _cut(candidates: list[Entry], chosen: Filter, limit: int, revision: int) -> Page:
    taken: list[Entry] = []
    for index, entry in enumerate(candidates):
        if not chosen.matches(entry.obj):
            continue
        taken.append(entry)
        if limit and len(taken) == limit and index + 1 < len(candidates):
            unfiltered = chosen.labels is None and chosen.fields is None
            rest = sum(chosen.matches(other.obj) for other in candidates[index + 1 :]) if unfiltered else None
            if rest == 0:
                break
            return Page(taken, revision, encode_token(revision, entry.key), rest)
    return Page(taken, revision)


def _expired_token() -> StatusError:
    message = (
        "The provided continue parameter is too old to display a consistent list result. You must start a new list"
        " without the continue parameter."
    )
    return expired(message)
