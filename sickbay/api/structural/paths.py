"""JSON paths in the form API servers and people write them: `spec.rules[0].faults`, `metadata.labels[app.io/name]`."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def child(path: str, key: str) -> str:
    """The path of a field or map key below `path`; the root is the empty path."""
    if not _WORD.fullmatch(key):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def item(path: str, index: int) -> str:
    return f"{path}[{index}]"
