"""What is wrong with this node: which fault items stand, on which devices, since when. Pure; written to the Node by
others.

One condition type per item. A condition is present once its item was ever bad; it is True while at least one device is
marked and turns False when the last mark goes. A repeated finding changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import msgspec

from sickbay.api import names
from sickbay.api.core import Node, NodeCondition
from sickbay.api.devices import DeviceFaults, read_devices
from sickbay.detect import wording
from sickbay.detect.devicemap import DeviceMap, address
from sickbay.detect.group import bus_of
from sickbay.detect.items import Item, by_condition, item

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
NOT_OURS = frozenset({"job.suspect", "node.hardware-suspected", "kernel.deadlock", "gpu.foreign-fatal"})
"""Items that others report: an agent never writes, adopts or clears them."""
ANNOUNCED = "infra."
"""What providers announce is convert's to write and to clear."""


class Mark(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One item on one device."""

    item: str
    device: str = ""
    """As the source names it, with the MIG instance where there is one; "" = the node as a whole."""
    pci: str = ""
    uuid: str = ""
    index: int | None = None
    serial: str = ""
    code: str = ""
    """Reason of the condition."""
    detail: str = ""
    since: str = ""
    """When it was first reported, RFC 3339."""
    boot: str = ""
    """Boot in which it was last seen; "" = not known."""

    @property
    def key(self) -> str:
        return key_of(self.device)


def key_of(device: str) -> str:
    """What tells the devices of one item apart: the address in one spelling, with the MIG instance; else the name."""
    pci = address(device)
    return f"{pci}{device.partition(' ')[2]}" if pci else device


@dataclass(frozen=True, slots=True)
class Wanted:
    """A condition as it should stand on the Node. `since` is when its status began."""

    type: str
    status: str
    reason: str
    message: str
    since: str
    critical: bool


@dataclass(slots=True)
class _Entry:
    item: Item
    marks: dict[str, Mark] = field(default_factory=dict)
    since: str = ""
    reason: str = ""
    """Why it is False."""


class Ledger:
    """See the module. `boot_id` is the running boot."""

    def __init__(self, boot_id: str) -> None:
        self.boot_id = boot_id
        self._entries: dict[str, _Entry] = {}

    # --- changes

    def confirm(self, item_name: str, device: str) -> bool:
        """True when the finding stands already: then it is only noted that this boot has seen it too."""
        entry = self._entries.get(item_name)
        old = entry.marks.get(key_of(device)) if entry is not None else None
        if old is None:
            return False
        old.boot = self.boot_id
        return True

    def mark(self, mark: Mark) -> bool:
        """Note a finding; True when it is news."""
        if self.confirm(mark.item, mark.device):
            return False
        entry = self._entries.setdefault(mark.item, _Entry(item(mark.item)))
        if not entry.marks:
            entry.since = mark.since
        entry.marks[mark.key] = mark
        return True

    def clear(self, over: Callable[[Mark], bool], reason: str, now: str) -> list[Mark]:
        """Take away the marks for which `over` holds; `reason` is a word for why. Returns them."""
        gone: list[Mark] = []
        for entry in self._entries.values():
            ending = [mark for mark in entry.marks.values() if over(mark)]
            for mark in ending:
                del entry.marks[mark.key]
            if ending and not entry.marks:
                entry.since, entry.reason = now, reason
            gone += ending
        return gone

    def identify(self, devices: DeviceMap) -> bool:
        """Name the GPUs of marks that were made before their UUID was known; True when there were any."""
        changed = False
        for mark in self.marks():
            known = devices.at(mark.device) if mark.pci and not mark.uuid else None
            if known is not None and known.uuid and _of_gpu(mark.item):
                mark.uuid, mark.index, mark.serial = known.uuid, known.index, known.serial
                changed = True
        return changed

    def adopt(self, node: Node, saved: Iterable[Mark], written: Collection[str]) -> None:
        """Take over what the Node says that we reported before; `written`: items of which we know that we did.

        The Node decides what stands, the saved marks add what it does not carry. Marks of this boot of which the Node
        has never heard (it was created anew) stand too. Conditions of others may share a type with ours; they differ
        in their reasons.
        """
        kept = list(saved)
        for condition in node.conditions:
            known = by_condition().get(condition.type)
            if known is not None and known.name not in NOT_OURS and not known.name.startswith(ANNOUNCED):
                mine = [mark for mark in kept if mark.item == known.name]
                self._adopt(condition, known, mine, read_devices(node), known.name in written)
        for mark in kept:
            absent = node.condition(item(mark.item).condition) is None
            if absent and mark.boot == self.boot_id:
                self.mark(mark)

    def _adopt(
        self, condition: NodeCondition, known: Item, mine: list[Mark], listed: list[DeviceFaults], written: bool
    ) -> None:
        """A condition that reads Unknown was set so by somebody who missed us; then what was saved decides."""
        status, word = condition.status, condition.reason
        own = names.agents_own(condition.type, word)
        devices = _marks_of(known.name, listed)
        entry = _Entry(known, since=condition.last_transition_time or "")
        if (status == TRUE and (own or mine)) or (status == UNKNOWN and (mine or devices)):
            for mark in mine or devices or [Mark(item=known.name)]:
                entry.marks[mark.key] = mark
                mark.code = mark.code or (word if own else known.condition)
                mark.since = mark.since or entry.since
            if status == UNKNOWN:
                entry.since = min(mark.since for mark in entry.marks.values())
            self._entries[known.name] = entry
        elif written and status in (FALSE, UNKNOWN):
            entry.reason = word if status == FALSE else "Recovered"
            self._entries[known.name] = entry

    # --- what stands

    @property
    def written(self) -> list[str]:
        """Items that have a condition."""
        return sorted(self._entries)

    @property
    def standing(self) -> set[str]:
        """Items that are marked on at least one device."""
        return {name for name, entry in self._entries.items() if entry.marks}

    def marks(self) -> list[Mark]:
        return [mark for entry in self._entries.values() for mark in entry.marks.values()]

    def marks_of(self, item_name: str, device: str = "") -> list[Mark]:
        """The item's marks, on this device where one is named."""
        entry, bus = self._entries.get(item_name), bus_of(device)
        marks = entry.marks.values() if entry is not None else ()
        return [mark for mark in marks if not bus or bus_of(mark.device) == bus]

    def stands(self, item_name: str, device: str = "") -> bool:
        return bool(self.marks_of(item_name, device))

    def wanted(self) -> list[Wanted]:
        """Every condition, in a stable order."""
        return [_wanted(self._entries[name]) for name in sorted(self._entries)]

    def devices(self) -> list[DeviceFaults]:
        """Devices with a PCI address that have faults, for the annotation."""
        found: dict[str, DeviceFaults] = {}
        for mark in self.marks():
            if not mark.pci:
                continue
            entry = found.setdefault(mark.pci, DeviceFaults(pci=mark.pci, since=mark.since))
            entry.uuid, entry.index = entry.uuid or mark.uuid, mark.index if entry.index is None else entry.index
            entry.faults = sorted({*entry.faults, mark.item})
            entry.since = min(entry.since, mark.since)
        return list(found.values())


def _wanted(entry: _Entry) -> Wanted:
    known, marks = entry.item, list(entry.marks.values())
    critical = known.severity == "Critical"
    if not marks:
        message = wording.cleared(known, entry.reason)
        return Wanted(known.condition, FALSE, entry.reason or "Recovered", message, entry.since, critical)
    codes = sorted({mark.code for mark in marks if mark.code})
    reason = codes[0] if codes else known.condition
    return Wanted(known.condition, TRUE, reason, wording.standing(known, marks), entry.since, critical)


def _marks_of(name: str, listed: Iterable[DeviceFaults]) -> list[Mark]:
    return [
        Mark(item=name, device=d.pci, pci=d.pci, uuid=d.uuid, index=d.index, since=d.since)
        for d in listed
        if d.pci and name in d.faults
    ]


def _of_gpu(name: str) -> bool:
    return name.startswith(("gpu.", "nvlink.", "pcie."))
