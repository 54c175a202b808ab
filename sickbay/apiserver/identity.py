"""Whether a body is of the kind and version its path names.

Built-in kinds take both from the path where the body has none; custom resources must bring them.
"""

from __future__ import annotations

from sickbay.apiserver.errors import Cause, Obj, bad_request, invalid
from sickbay.apiserver.resources import Served


def check_identity(view: Served, obj: Obj) -> None:
    """Fill in kind and apiVersion, or raise StatusError (400, 422) saying what does not fit."""
    kind, version = view.type.kind, view.api_version
    for field in ("kind", "apiVersion"):
        if not isinstance(obj.get(field), str | None):
            why = f"{field}: a text is needed, not {obj[field]!r}"
            raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {why}")
    if view.type.custom is None:
        for field, value in (("kind", kind), ("apiVersion", version)):
            if not obj.get(field):
                obj[field] = value
        given = obj["kind"], obj["apiVersion"]
        if given != (kind, version):
            raise bad_request(
                f'{given[0]} in version "{given[1]}" cannot be handled as a {kind}: the path names {kind} in version'
                f' "{version}"'
            )
        return
    for field, name in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not obj.get(field):
            raise bad_request(
                f"the object provided is unrecognized (must be of type {kind}): Object '{name}' is missing"
            )
    if obj["apiVersion"] != version:
        raise bad_request(
            f"the API version in the data ({obj['apiVersion']}) does not match the expected API version ({version})"
        )
    if obj["kind"] != kind:
        cause = Cause("FieldValueInvalid", f'Invalid value: "{obj["kind"]}": must be {kind}', "kind")
        raise invalid(obj["kind"], view.group, (obj.get("metadata") or {}).get("name", ""), [cause])
