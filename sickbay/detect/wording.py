"""Words for people: reasons and messages of conditions and Events.

A message says what is wrong and where, within a fixed length. It is for reading only: whoever needs the devices reads
the annotation (peers that packed a list of 50 devices into the message ended with separators and dots).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sickbay.detect.items import Item

if TYPE_CHECKING:
    from sickbay.detect.ledger import Mark

MESSAGE_MAX = 512
"""Characters. The API server takes 32 KiB; a person takes one line."""
_NAMED = 4
"""Devices that are named in a message."""
_DEVICE_MAX, _DETAIL_MAX = 64, 120

_CODE = re.compile(r"(?:gpu\.(?P<kind>xid)|nvswitch\.(?P<switch>sxid))\.(?P<number>\d+)")
_CLEARED = {
    "Rebooted": "not seen again since the reboot",
    "Reset": "the device was reset and is clean",
    "Replaced": "the device was replaced",
    "Recovered": "the source reports it as well again",
}


def reason(fault: str, item: Item) -> str:
    """The code as a word, `XID79`, `SXID20034`; the condition's own type where there is no code."""
    match = _CODE.match(fault)
    if match is None:
        return item.condition
    return f"{'SXID' if match['switch'] else 'XID'}{match['number']}"


def standing(item: Item, marks: Sequence[Mark]) -> str:
    """What is wrong, and on which devices."""
    what = item.meaning or item.name
    details = sorted({mark.detail[:_DETAIL_MAX] for mark in marks if mark.detail})
    if details:
        what += f": {details[0]}"
    named = sorted({_device(mark) for mark in marks if mark.device or mark.uuid})
    if named:
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        what += f" on {', '.join(named[:_NAMED])}{more}"
    return f"{what} ({item.name})"[:MESSAGE_MAX]


def cleared(item: Item, why: str) -> str:
    return f"{item.meaning or item.name}: {_CLEARED.get(why, 'over')} ({item.name})"[:MESSAGE_MAX]


def blind(broken: Iterable[tuple[str, str]]) -> str:
    """Which sources cannot be read, and why."""
    return "; ".join(f"{name}: {why}" for name, why in sorted(broken))[:MESSAGE_MAX]


def _device(mark: Mark) -> str:
    name = mark.device[:_DEVICE_MAX]
    if not mark.uuid:
        return name
    index = f"GPU {mark.index} " if mark.index is not None else ""
    return f"{index}{name or mark.pci} ({mark.uuid[:_DEVICE_MAX]})"
