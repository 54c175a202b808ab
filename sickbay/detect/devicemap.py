"""Which device sits on which PCI address.

The kernel names a device by its bus address, people and schedulers by its UUID. NVML knows both, and so do the driver's
own lines (`NVRM: GPU at PCI:0000:3b:00: GPU-...`). Once a GPU has fallen off the bus nobody can tell any more, so what
was learned is kept on disk and outlives the GPU, the agent and the boot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from sickbay.detect.group import bus_of

_FUNCTION = re.compile(r"\.([0-7])")


class Device(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A GPU that was seen. `links`: most NVLinks it ever had up; `serial`: as the board carries it."""

    pci: str
    uuid: str = ""
    index: int | None = None
    serial: str = ""
    links: int = 0


def address(device: str | None) -> str:
    """A device's PCI address in one spelling, `0000:3b:00.0`; "" where the name is no PCI address."""
    bus = bus_of(device)
    if not bus or device is None:
        return ""
    function = _FUNCTION.search(device)
    return f"{bus}.{function[1] if function else '0'}"


class DeviceMap:
    """See the module. A bus address is compared without its function: a GPU has one."""

    def __init__(self, devices: Iterable[Device] = ()) -> None:
        self._by_bus: dict[str, Device] = {}
        self.news = 0
        """Counts what was learned that had not been known."""
        for device in devices:
            self.learn(device)

    def learn(self, device: Device) -> bool:
        """Note a device; True when that is news. What the new sighting does not say stays as it was known."""
        bus = bus_of(device.pci)
        if not bus:
            return False
        device, old = msgspec.structs.replace(device, pci=address(device.pci)), self._by_bus.get(bus)
        if old is not None and device.uuid in ("", old.uuid):
            device = Device(
                pci=device.pci,
                uuid=old.uuid,
                index=old.index if device.index is None else device.index,
                serial=device.serial or old.serial,
                links=max(device.links, old.links),
            )
        self._by_bus[bus] = device
        if device == old:
            return False
        self.news += 1
        return True

    def at(self, device: str | None) -> Device | None:
        """The GPU on this address, whatever else the name says (function, MIG instance)."""
        return self._by_bus.get(bus_of(device))

    def named(self, uuid: str) -> Device | None:
        return next((device for device in self._by_bus.values() if uuid and device.uuid == uuid), None)

    def all(self) -> list[Device]:
        return sorted(self._by_bus.values(), key=lambda device: device.pci)
