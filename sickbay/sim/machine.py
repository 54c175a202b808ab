"""A hollow machine: what a real host with GPUs would be, as far as anything above it can see.

The kubelet, the agent and the cloud all look at the same machine, so what one does to it the others notice. It has
power, a boot, a kernel log, services, GPUs and what their driver and device plug-in report. It knows nothing of
Kubernetes: `parts/kubelet.py` shows it to the API server, `host.py` to the agent, `cloud.py` lets a back-end act on it.

A boot loses what hardware loses: the log, what the driver holds in memory, hung or stopped services. Failing hardware
stays (`_LASTING`) until it is replaced, and so does what the device plug-in was told to offer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sickbay.clock import Clock, Randomness

BUSES = ("1b", "2a", "3b", "5d", "9b", "ab", "bb", "db")
"""PCI buses of the GPUs of an 8-way board."""

SERVICES = ("kubelet", "containerd", "nvidia-persistenced", "nvidia-fabricmanager")

DEFAULT_BOOT_SECONDS = 180.0

_LASTING = ("row_remap_failure", "sram_threshold_exceeded", "pcie_width", "temperature_margin")


@dataclass(frozen=True, slots=True)
class GpuState:
    """What the driver says of one GPU. The defaults are those of a well card."""

    recovery_action: str = "None"
    """NVML's name in any spelling, or its number as text; see `agent.RECOVERY_ACTIONS`."""
    row_remap_pending: bool = False
    row_remap_failure: bool = False
    ecc_volatile_uncorrectable: int = 0
    sram_threshold_exceeded: bool = False
    pcie_width: int = 16
    nvlink_down: int = 0
    fabric_state: str = "Completed"
    temperature_margin: int = 40
    hang: bool = False
    lost: bool = False


@dataclass(slots=True)
class Gpu:
    index: int
    uuid: str
    pci: str
    serial: str
    state: GpuState = field(default_factory=GpuState)


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One record of the kernel log. `seq` counts from 0 in each boot, `at` is seconds since that boot."""

    seq: int
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What an active check will find: pass, fail, error (of the check itself) or hang."""

    result: str = "pass"
    message: str = ""


class Machine:
    """See the module. All changes go through methods, which tell `listeners` (a word for what changed)."""

    def __init__(
        self,
        name: str,
        gpus: int,
        clock: Clock,
        randomness: Randomness,
        pool: str = "",
        boot_seconds: float = DEFAULT_BOOT_SECONDS,
    ) -> None:
        self.name, self.pool, self.boot_seconds = name, pool, boot_seconds
        self._clock, self._randomness = clock, randomness
        self.serial = f"SN-{name}"
        self.gpus = [Gpu(k, f"GPU-{name}-{k}", _pci(k), f"SN-{name}-{k}") for k in range(gpus)]
        self.powered = True
        self.up = True
        self.boot_id = randomness.uuid()
        self.booted_at = clock.monotonic()
        self.kernel_log: list[KernelLine] = []
        self.services: dict[str, str] = dict.fromkeys(SERVICES, "active")
        self.heartbeat = True
        self.allocatable: dict[str, str] = {}
        self.isolated: frozenset[str] = frozenset()
        """UUIDs of cards that the device plug-in was told not to offer; it is told by a file, which outlives boots."""
        self.diagnostics: dict[int, Diagnostic] = {}
        self.clock_skew = 0.0
        self.beating_until: float | None = None
        """When its kubelet fell silent; None while it works."""
        self.listeners: list[Callable[[str], None]] = []
        self._boot: asyncio.TimerHandle | None = None

    # --- what is seen

    @property
    def kubelet_works(self) -> bool:
        return self.up and self.heartbeat and self.services["kubelet"] == "active"

    @property
    def runtime_works(self) -> bool:
        return self.up and self.services["containerd"] == "active"

    def gpu(self, index: int) -> Gpu:
        """Raises LookupError that names the machine and the range."""
        if not 0 <= index < len(self.gpus):
            raise LookupError(f"{self.name} has GPUs 0 to {len(self.gpus) - 1}, not {index}")
        return self.gpus[index]

    def diagnosis(self, check: str) -> Diagnostic:
        """What a level of active diagnostics finds, as text; of checks by other names it has none."""
        if not check.isdecimal():
            return Diagnostic("error", f"no check named {check!r} is configured")
        return self.diagnostics.get(int(check), Diagnostic())

    # --- what happens to it

    def print_kernel(self, text: str) -> None:
        """The kernel prints lines; a machine that is down prints nothing."""
        if not self.up:
            return
        for line in text.split("\n"):
            at = self._clock.monotonic() - self.booted_at
            self.kernel_log.append(KernelLine(len(self.kernel_log), at, line))
        self._tell("kernel")

    def set_gpu(self, index: int, **changes: Any) -> None:
        card = self.gpu(index)
        card.state = replace(card.state, **changes)
        self._tell("gpu")

    def set_service(self, name: str, state: str) -> None:
        self.services[name] = state
        self._tell("service")

    def restart_service(self, name: str) -> None:
        """What a service manager does: the service runs again, and its device plug-in offers what works."""
        self.set_service(name, "active")

    def set_heartbeat(self, beats: bool) -> None:
        self.heartbeat = beats
        self._tell("heartbeat")

    def set_allocatable(self, resource: str, value: str) -> None:
        self.allocatable[resource] = value
        self._tell("allocatable")

    def isolate(self, cards: frozenset[str]) -> None:
        self.isolated = cards
        self._tell("allocatable")

    def offer_all(self) -> None:
        """The device plug-in starts anew and offers what there is."""
        self.allocatable.clear()
        self._tell("allocatable")

    def reset_gpu(self, index: int) -> None:
        card = self.gpu(index)
        card.state = _after_reset(card.state)
        self._tell("gpu")

    def replace_hardware(self) -> None:
        """A technician swaps what is broken: every card is new and well."""
        for card in self.gpus:
            card.state = GpuState()
            card.serial = f"{card.serial}-{self._randomness.hex(4)}"
        self.serial = f"SN-{self.name}-{self._randomness.hex(4)}"
        self.diagnostics.clear()
        self._tell("gpu")

    def go_down(self) -> None:
        """The kernel stops at once; a boot under way is lost."""
        if self._boot is not None:
            self._boot.cancel()
            self._boot = None
        if self.up:
            self.up = False
            self._tell("down")

    def reboot(self, seconds: float | None = None) -> None:
        """Down now, up again under a new boot id after `seconds` (the machine's own boot time by default)."""
        self.go_down()
        if not self.powered:
            return
        delay = self.boot_seconds if seconds is None else seconds
        self._boot = asyncio.get_running_loop().call_later(delay, self._come_up)

    def renew(self, keep_boot: bool = False) -> None:
        """Another machine has taken its place (or, with `keep_boot`, only its registration is new)."""
        self.go_down()
        self.powered = True
        for card in self.gpus:
            card.state = GpuState()
        before = self.boot_id
        self._come_up()
        if keep_boot:
            self.boot_id = before

    def power_off(self) -> None:
        self.powered = False
        self.go_down()
        self._tell("power")

    def power_on(self) -> None:
        if self.powered:
            return
        self.powered = True
        self._tell("power")
        self.reboot()

    def _come_up(self) -> None:
        self._boot = None
        self.up = True
        self.boot_id = self._randomness.uuid()
        self.booted_at = self._clock.monotonic()
        self.kernel_log = []
        self.services = dict.fromkeys(self.services, "active")
        for card in self.gpus:
            card.state = _after_reset(card.state)
        self._tell("up")

    def _tell(self, what: str) -> None:
        if self.kubelet_works:
            self.beating_until = None
        elif self.beating_until is None:
            self.beating_until = self._clock.monotonic()
        for listener in list(self.listeners):
            listener(what)


def _pci(index: int) -> str:
    bus = BUSES[index % len(BUSES)]
    return f"{index // len(BUSES):08x}:{bus}:00.0"


def _after_reset(state: GpuState) -> GpuState:
    return GpuState(**{name: getattr(state, name) for name in _LASTING})
