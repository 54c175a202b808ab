"""Patches of the three kinds, as functions from the old object to the new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sickbay.apiserver import jsonpatch, mergepatch, strategic
from sickbay.apiserver.errors import (
    Obj,
    StatusError,
    Undecodable,
    bad_request,
    internal,
    unprocessable,
    unsupported_media_type,
)
from sickbay.apiserver.openapi.mergekeys import shape_of
from sickbay.apiserver.resources import ResourceType

JSON, MERGE, STRATEGIC = "json", "merge", "strategic"

_FOR_CUSTOM = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")


def patcher(kind: ResourceType, body: Any, patch_type: str) -> Callable[[Obj], Obj]:
    """The function raises StatusError where the patch does not apply; making it does for a kind it is not for."""

    def change(old: Obj) -> Obj:
        try:
            return _patched(kind, body, patch_type, old)
        except jsonpatch.PatchFailed:
            raise unprocessable() from None
        except jsonpatch.PatchTooLong as error:
            raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {error}") from None
        except jsonpatch.PatchMalformed as error:
            raise bad_request(f"error decoding patch: {error}") from None
        except strategic.PatchMisfit as error:
            raise Undecodable(str(error)) from None
        except strategic.PatchMalformed as error:
            raise internal(str(error)) from None

    if patch_type == STRATEGIC and kind.custom is not None:
        raise unsupported_media_type(_FOR_CUSTOM)
    return change


def _patched(kind: ResourceType, body: Any, patch_type: str, old: Obj) -> Obj:
    if body is None and patch_type != MERGE:
        return old
    if patch_type == JSON:
        new = jsonpatch.apply(old, body)
    elif not isinstance(body, dict):
        raise bad_request(f"error decoding patch: a {patch_type} patch is an object")
    elif patch_type == STRATEGIC:
        # What kind the object is does not belong to what is merged.
        fields = {key: value for key, value in body.items() if key not in ("kind", "apiVersion")}
        new = strategic.apply(shape_of(kind.group, kind.version, kind.kind), old, fields)
    else:
        new = mergepatch.merge(old, body)
    if not isinstance(new, dict):
        raise unprocessable()
    return new
