"""`fieldValidation`: what happens to fields that a kind does not know.

They are always dropped. Strict refuses the request instead, Warn says so in a Warning header, Ignore says nothing.
kubectl asks for Strict. Without the parameter nothing is said: clients that do not ask do not listen.
"""

from __future__ import annotations

from sickbay.api.structural import unknown_fields
from sickbay.apiserver.errors import Cause, Obj, bad_request, invalid
from sickbay.apiserver.openapi.decoding import kind_type, unknown_paths
from sickbay.apiserver.requests import Query
from sickbay.apiserver.resources import Served

STRICT, WARN, IGNORE = "Strict", "Warn", "Ignore"
Headers = tuple[tuple[bytes, bytes], ...]


def _unknown(view: Served, obj: Obj) -> list[str]:
    if view.type.custom is not None:
        return [found.path for found in unknown_fields(view.type.custom.schema, obj)]
    go_type = kind_type(view.group, view.version, view.type.kind)
    return [] if go_type is None else list(unknown_paths(go_type, obj))


def check_fields(query: Query, view: Served, obj: Obj) -> Headers:
    """Warning headers for the answer. Raises StatusError: 400 for unknown fields where Strict, 422 for another word."""
    asked = query.text("fieldValidation")
    if asked not in ("", STRICT, WARN, IGNORE):
        message = f'Unsupported value: "{asked}": supported values: "Ignore", "Warn", "Strict"'
        cause = Cause("FieldValueNotSupported", message, "fieldValidation")
        raise invalid("CreateOptions", "meta.k8s.io", "", [cause])
    if asked not in (STRICT, WARN):
        return ()
    unknown = [f'unknown field "{path}"' for path in _unknown(view, obj)]
    if unknown and asked == STRICT:
        kind = view.type.kind
        raise bad_request(
            f'{kind} in version "{view.version}" cannot be handled as a {kind}: strict decoding error: '
            + ", ".join(unknown)
        )
    return tuple((b"warning", f'299 - "{text.replace(chr(34), chr(92) + chr(34))}"'.encode()) for text in unknown)
