"""The difference between two JSON objects as a merge patch (RFC 7386).

Controllers change a typed copy of an object and write only what changed, so that two layers that own different
fields of one status never overwrite each other.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def merge_diff(old: Json, new: Json) -> Json:
    """The smallest merge patch that turns `old` into `new`. Empty when they are equal. Lists are replaced whole."""
    patch: Json = {}
    for key in old.keys() - new.keys():
        patch[key] = None
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            inner = merge_diff(before, value)
            if inner:
                patch[key] = inner
        elif before != value or key not in old:
            patch[key] = value
    return patch


def apply_merge(target: Any, patch: Any) -> Any:
    """`target` with the merge patch applied; neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    result: Json = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge(result.get(key), value)
    return result
