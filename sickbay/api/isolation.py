"""The annotation `sickbay.dev/isolate`: which cards of a node its agent shall take out of service.

Written by execute from decide's grant, read by the agent. A value that cannot be read is no grant.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sickbay.api import names
from sickbay.api.core import Node

_DECODER = msgspec.json.Decoder(list[str])


def read_isolation(node: Node) -> frozenset[str]:
    text = node.annotations.get(names.ISOLATE)
    if not text:
        return frozenset()
    try:
        return frozenset(_DECODER.decode(text))
    except msgspec.DecodeError:
        return frozenset()


def write_isolation(devices: Iterable[str]) -> str | None:
    """The annotation's value, in a stable order; None where it should not be there."""
    ordered = sorted(devices)
    return msgspec.json.encode(ordered).decode() if ordered else None
