"""Reading the text of a body: JSON, or YAML where a client may send it, into plain JSON values.

What is nested more deeply than anything Kubernetes has, and a YAML text that grows a thousandfold as it is read, are
refused here, before anything walks through them.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

MAX_DEPTH = 128
"""Levels of objects and lists in each other; a schema that describes schemas comes to some thirty."""
MAX_NODES = 300_000
"""Values in a YAML text with its aliases filled in; a body of 3 MiB cannot name more by itself."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


class TooMuch(ValueError):
    """The text is well-formed, and nested too deeply or too large."""


def read_json(text: bytes) -> Any:
    """Raises ValueError with the place of the mistake."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise TooMuch(_TOO_DEEP) from None
    # Most bodies have fewer brackets than levels are allowed.
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH:
        check_depth(value)
    return value


def read_yaml(text: bytes) -> Any:
    """Reads JSON as well, which is what most clients send as YAML. Raises ValueError."""
    try:
        return read_json(text)
    except TooMuch:
        raise
    except ValueError:
        pass
    try:
        value = yaml.load(text, _LOADER)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise TooMuch(_TOO_DEEP) from None
    check_depth(value)
    # YAML knows more types than JSON: a bare date, a number as a key.
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ValueError(f"the text is no JSON: {error}") from None


def check_depth(value: Any, above: int = 0) -> None:
    """Raises ValueError for what is nested too deeply, or is too much; `above` levels lie over it.

    Walks level by level, without recursion.
    """
    level, left = [value], MAX_NODES
    for _ in range(MAX_DEPTH - above):
        level = [
            below
            for part in level
            if isinstance(part, dict | list)
            for below in (part.values() if isinstance(part, dict) else part)
        ]
        if not level:
            return
        left -= len(level)
        if left < 0:
            raise TooMuch(f"more than {MAX_NODES} values")
    if any(isinstance(part, dict | list) for part in level):
        raise TooMuch(_TOO_DEEP)
