"""The annotation `sickbay.dev/devices`: which devices of a node have faults.

Written by the agent of the node, read by decide. A value that cannot be read is an empty list here: the faults
themselves stand in the node's conditions, and a fault without a device is a fault of the node.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sickbay.api.core import Node

DEVICES_KEY = "sickbay.dev/devices"


class DeviceFaults(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One device with at least one fault."""

    uuid: str = ""
    pci: str = ""
    index: int | None = None
    faults: list[str] = []
    """Ids of fault types, sorted."""
    since: str = ""


_DECODER = msgspec.json.Decoder(list[DeviceFaults])


def read_devices(node: Node) -> list[DeviceFaults]:
    text = node.annotations.get(DEVICES_KEY)
    if not text:
        return []
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError:
        return []


def write_devices(devices: Iterable[DeviceFaults]) -> str:
    """The annotation's value, in a stable order, so that repetition writes nothing."""
    ordered = sorted(devices, key=lambda d: (d.pci, d.uuid))
    return msgspec.json.encode(ordered).decode()
