"""The agent on a hollow machine: the machine's kernel log, driver and services as the real agent's sources.

What an agent keeps on the disk of its host is kept here per machine, over restarts and boots.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cache, partial
from weakref import WeakKeyDictionary

from sickbay.detect.agent import Agent, AgentOptions, Parts
from sickbay.detect.gpus import GpuReport, GpuStatus
from sickbay.detect.judge import Trust
from sickbay.detect.rhythm import Rhythm
from sickbay.detect.saved import MemoryStore
from sickbay.detect.source import BATCH, Batch
from sickbay.detect.units import Service
from sickbay.kube.keeper import LeaseKeeper
from sickbay.sim.beats import BeatClient, BeatKeeper, MachineRhythm
from sickbay.sim.components import Outside
from sickbay.sim.host import Disk
from sickbay.sim.loop import VirtualLoop
from sickbay.sim.machine import Gpu, Machine
from sickbay.sim.process import Running

RECOVERY_ACTIONS = {
    "none": 0,
    "reset": 1,
    "gpureset": 1,
    "reboot": 2,
    "nodereboot": 2,
    "drainp2p": 3,
    "drainandreset": 4,
    "recoverdomain": 5,
    "recoverimexdomain": 5,
    "busreset": 6,
    "systemreboot": 7,
}
"""NVML's numbers by name, without case and punctuation: `GPU_RESET` and `GpuReset` are the same."""

_WIDTH = 16
_LEVEL = 3
"""Priority of a kernel record: facility 0, error."""

_disks: WeakKeyDictionary[Machine, tuple[MemoryStore, Disk]] = WeakKeyDictionary()


def disk_of(machine: Machine) -> tuple[MemoryStore, Disk]:
    """What the agents of this machine have kept: of the faults they saw, and of the acts they began."""
    return _disks.setdefault(machine, (MemoryStore(), Disk()))


async def run_agent(running: Running, outside: Outside) -> None:
    """The agent of one machine, until cancelled."""
    machine, clock = outside.machines[running.node], running.clock
    store, journal = disk_of(machine)
    rhythm, keeper = _beats(running, outside, machine)
    parts = Parts(
        host=outside.host(running),
        journal=journal,
        store=store,
        sources=[KernelLog(machine)],
        gpus=Gpus(machine) if machine.gpus else None,
        services=Services(machine),
        has_nvswitch=True,
        uptime=lambda: clock.monotonic() - machine.booted_at,
        keeper=keeper,
        rhythm=rhythm,
    )
    options = AgentOptions(node=running.node, identity=running.identity, **outside.settings.options_of("agent"))
    try:
        await Agent(running.client, clock, running.randomness, options, parts, running.registry).run()
    finally:
        rhythm.stop()


def _beats(running: Running, outside: Outside, machine: Machine) -> tuple[Rhythm, Callable[..., LeaseKeeper]]:
    """When it looks, and how it renews its Lease: as everywhere, or with the shortcuts of a long run."""
    client, loop = running.client, asyncio.get_running_loop()
    if not isinstance(client, BeatClient) or not isinstance(loop, VirtualLoop):
        return Rhythm(), LeaseKeeper
    return MachineRhythm(machine, loop), partial(BeatKeeper, beats=outside.beats, lane=client.lane)


class KernelLog:
    """The kernel log of the present boot, as `/dev/kmsg` shows it."""

    name, trust, per_boot = "kernel log", Trust.LIVE, True

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._next = 0
        self._printed = asyncio.Event()
        self._ended = False

    async def open(self, position: str) -> None:
        self._next = int(position) + 1 if position else 0
        self._ended = False
        self._machine.listeners.append(self._heard)

    async def read(self) -> Batch:
        while True:
            lines = self._machine.kernel_log[self._next : self._next + BATCH]
            if lines or not self._ended:
                self._next += len(lines)
                end = self._next >= len(self._machine.kernel_log)
                self._ended = self._ended or end
                position = str(self._next - 1) if self._next else ""
                return Batch([f"{_LEVEL},{e.seq},{int(e.at * 1e6)},-;{e.text}" for e in lines], position, end)
            self._printed.clear()
            await self._printed.wait()

    def close(self) -> None:
        if self._heard in self._machine.listeners:
            self._machine.listeners.remove(self._heard)

    def _heard(self, what: str) -> None:
        if what == "kernel":
            self._printed.set()


class Gpus:
    """The driver's view. A card on which it hangs hides all of them, as NVML does."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def poll(self) -> GpuReport:
        cards = self._machine.gpus
        hung = [card.pci for card in cards if card.state.hang]
        if hung:
            return GpuReport(expected=len(cards), hung=hung, error="the driver does not answer")
        return GpuReport(expected=len(cards), gpus=[_status(card) for card in cards], version_mismatch=False)


def _status(card: Gpu) -> GpuStatus:
    state = card.state
    if state.lost:
        return GpuStatus(pci=card.pci, index=card.index, uuid=card.uuid, serial=card.serial, lost=True)
    return GpuStatus(
        pci=card.pci,
        index=card.index,
        uuid=card.uuid,
        serial=card.serial,
        lost=False,
        recovery_action=recovery_action(state.recovery_action),
        row_remap_pending=state.row_remap_pending,
        row_remap_failure=state.row_remap_failure,
        ecc_volatile_uncorrectable=state.ecc_volatile_uncorrectable,
        sram_threshold_exceeded=state.sram_threshold_exceeded,
        pcie_width=state.pcie_width,
        pcie_width_max=_WIDTH,
        nvlink_down=state.nvlink_down,
        fabric_state=state.fabric_state,
        temperature_margin=state.temperature_margin,
    )


@cache
def recovery_action(word: str) -> int:
    """NVML's number; one that no driver knows stands for a word that nobody knows."""
    plain = "".join(letter for letter in word.lower() if letter.isalnum())
    return int(plain) if plain.isdigit() else RECOVERY_ACTIONS.get(plain, 99)


class Services:
    """What systemd shows, and whether a service answers."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def poll(self) -> Mapping[str, Service]:
        return {name: Service(works=state == "active", state=state) for name, state in self._machine.services.items()}
