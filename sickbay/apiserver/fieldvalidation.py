"""`fieldValidation`: what happens to fields that a kind does not know, and to those that stand twice in a body.

Unknown fields are always dropped, and of two the last counts. Strict refuses the request instead (kubectl asks for
that), Warn says so in a Warning header and is what counts where nothing is asked for, Ignore says nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sickbay.api.structural import unknown_fields
from sickbay.apiserver.calls import Call
from sickbay.apiserver.errors import Cause, Obj, StatusError, bad_request, invalid
from sickbay.apiserver.openapi.decoding import kind_type, object_meta, unknown_paths
from sickbay.apiserver.resources import Served

STRICT, WARN, IGNORE = "Strict", "Warn", "Ignore"
Headers = tuple[tuple[bytes, bytes], ...]


def _unknown(view: Served, obj: Obj) -> Iterator[str]:
    metadata = obj.get("metadata")
    if view.type.custom is not None:
        yield from (found.path for found in unknown_fields(view.type.custom.schema, obj))
        if isinstance(metadata, dict):
            yield from unknown_paths(object_meta(), metadata, "metadata")
        return
    go_type = kind_type(view.group, view.version, view.type.kind)
    if go_type is not None:
        yield from unknown_paths(go_type, obj)


class _Pairs(list[tuple[str, Any]]):
    """An object as it stands in the text, names that occur twice included."""


def _doubled(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            below = f"{path}.{key}" if path else key
            if key in seen:
                yield below
            seen.add(key)
            yield from _doubled(item, below)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _doubled(item, f"{path}[{index}]")


_NAME = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*:')
"""A name in a JSON text; now and then what stands within a text looks like one, which costs a closer look."""


def doubled_fields(body: bytes) -> list[str]:
    """Paths of the fields that stand twice in a JSON text, which has been read without an error before."""
    names = _NAME.findall(body)
    if len(set(names)) == len(names):
        return []
    try:
        return list(dict.fromkeys(_doubled(json.loads(body, object_pairs_hook=_Pairs))))
    except (ValueError, RecursionError):
        return []  # YAML or protobuf, or nested more deeply than anything that is served


def check_fields(call: Call, view: Served, body: Any, options: str) -> Headers:
    """Warning headers for the answer. Raises StatusError: where Strict, 400 (422 for a patch) for what is wrong with
    fields; 422, which names the kind of `options`, for another word.

    What a JSON patch adds is seen only once it is applied; there unknown fields are dropped without a word.
    """
    asked = call.query.text("fieldValidation") or WARN
    if asked not in (STRICT, WARN, IGNORE):
        message = f'Unsupported value: "{asked}": supported values: "", "Ignore", "Strict", "Warn"'
        raise invalid(options, "meta.k8s.io", "", [Cause("FieldValueNotSupported", message, "fieldValidation")])
    if asked == IGNORE:
        return ()
    found = [f'duplicate field "{path}"' for path in doubled_fields(call.body)]
    if isinstance(body, dict):
        found = [f'unknown field "{path}"' for path in _unknown(view, _without_directives(call, body))] + found
    if found and asked == STRICT:
        raise _refused(call, view, found)
    return tuple((b"warning", _warning(text)) for text in found)


def _warning(text: str) -> bytes:
    return f'299 - "{text.replace(chr(34), chr(92) + chr(34))}"'.encode("ascii", "backslashreplace")


def _without_directives(call: Call, body: Any) -> Any:
    """A strategic merge patch without what tells how to merge."""
    if not call.content_type.startswith("application/strategic"):
        return body
    if isinstance(body, dict):
        return {key: _without_directives(call, item) for key, item in body.items() if not key.startswith("$")}
    return [_without_directives(call, item) for item in body] if isinstance(body, list) else body


def _refused(call: Call, view: Served, found: list[str]) -> StatusError:
    kind = view.type.kind
    why = "strict decoding error: " + ", ".join(found)
    if call.method == "PATCH":
        cause = Cause("FieldValueInvalid", f'Invalid value: "the patch": {why}', "patch")
        return invalid("", "", "", [cause])
    return bad_request(f'{kind} in version "{view.version}" cannot be handled as a {kind}: {why}')
