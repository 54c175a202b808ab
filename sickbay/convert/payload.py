"""Reading JSON that somebody else has written: a surprise is an `Undecodable` that names the place, never a crash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from sickbay.convert.notice import Undecodable

BODY_MAX = 1024 * 1024
"""Bytes of one payload."""
ENTRIES_MAX = 10_000
"""Entries of one list: more machines than any such list can speak of."""
TEXT_MAX = 512
"""Characters that are kept of a text."""


def decode(body: bytes | str) -> Any:
    """JSON as plain data. Raises Undecodable; an HTML page or a proxy's excuse is no answer."""
    if len(body) > BODY_MAX:
        raise Undecodable(f"{len(body)} bytes: more than {BODY_MAX} are not read")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Undecodable(f"not JSON: {str(error)[:200]}") from None


def mapping(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Undecodable(f"{where} must be an object, not {type(value).__name__}")
    return value


def entries(value: object, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a list with their places. An absent list is none: whoever must tell that apart asks first."""
    if value is None:
        return
    if not isinstance(value, list):
        raise Undecodable(f"{where} must be a list, not {type(value).__name__}")
    if len(value) > ENTRIES_MAX:
        raise Undecodable(f"{where} has {len(value)} entries: more than {ENTRIES_MAX} are not read")
    for index, item in enumerate(value):
        yield f"{where}[{index}]", mapping(item, f"{where}[{index}]")


def text(value: object) -> str:
    """A text or number as text, cut to what is kept; "" for anything else."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    cleaned = "".join(c if c.isprintable() and not 0xD800 <= ord(c) <= 0xDFFF else " " for c in str(value))
    return cleaned.strip()[:TEXT_MAX]


def needed(obj: dict[str, Any], key: str, where: str) -> str:
    found = text(obj.get(key))
    if not found:
        raise Undecodable(f"{where}.{key} is missing or no text")
    return found
