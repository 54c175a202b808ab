"""What the driver says of the GPUs, and which faults that amounts to.

Three values everywhere: bad, good, and None = cannot be seen, which neither raises nor clears anything. Counters of a
GPU's lifetime are not judged at all; what is remapped and neither pending nor failed is healed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from sickbay.detect.fabric import faults as fabric_faults

POLL = 30.0
"""Seconds between two looks (detection reference 2.3)."""
NVLINK_GRACE = 300.0
"""Seconds after boot during which links may still be training: link-down once fired on 214 of 288 nodes then."""
FABRIC_GRACE = 300.0
"""Seconds that a GPU may take to join the fabric (detection reference 5.1)."""
HOT = 180.0
"""Seconds at or above the slowdown temperature until it is a fault (detection reference 5.1)."""
AGAIN = POLL
"""Seconds after which what may be a glitch must still be bad: one confirming look."""


class GpuStatus(msgspec.Struct, kw_only=True):
    """One GPU at one moment; None = not readable, or not there on this kind of card."""

    pci: str
    index: int | None = None
    uuid: str = ""
    serial: str = ""
    lost: bool | None = None
    reset_required: bool | None = None
    recovery_action: int | None = None
    row_remap_pending: bool | None = None
    row_remap_failure: bool | None = None
    ecc_volatile_uncorrectable: int | None = None
    sram_threshold_exceeded: bool | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    nvlinks_up: int | None = None
    nvlink_down: int | None = None
    """Links that are down and were up before."""
    fabric_state: str = ""
    """NotSupported, NotStarted, InProgress or Completed; "" = not readable."""
    fabric_health: int | None = None
    """Mask of the fabric's health, see `fabric`."""
    temperature_margin: int | None = None
    """Kelvin to the slowdown temperature."""


class GpuReport(msgspec.Struct, kw_only=True):
    """One look. `error` set = nothing was seen, and why."""

    gpus: list[GpuStatus] = []
    expected: int | None = None
    """GPUs on the PCI bus, seen by the driver or not."""
    hung: list[str] = []
    """PCI addresses (or "" = unknown which) at which the driver did not answer in time."""
    version_mismatch: bool | None = None
    absent: bool = False
    """True where there is no GPU and no driver: nothing is to be seen, and nothing is missing."""
    error: str = ""


class GpuProbe(Protocol):
    async def poll(self) -> GpuReport:
        """Look once. Returns within a deadline of its own, whatever the driver does. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Check:
    """`bad` judges a GPU; `lasting`: seconds it must stay bad; `latched`: the state tells of itself whether it was
    remedied, so that good again is proof; `grace`: seconds after boot in which it is not judged; `at_once`: on a node
    that is out of service for its repair it need not last, since there a hasty word takes nothing out, and a late one
    returns a node that is not well."""

    item: str
    bad: Callable[[GpuStatus], bool | None]
    detail: Callable[[GpuStatus], str] = lambda _: ""
    lasting: float = 0.0
    latched: bool = False
    grace: float = 0.0
    at_once: bool = False


def _width(status: GpuStatus) -> bool | None:
    if not status.pcie_width or not status.pcie_width_max:
        return None
    return status.pcie_width < status.pcie_width_max


def _fabric(status: GpuStatus) -> bool | None:
    if not status.fabric_state:
        return None
    return status.fabric_state not in ("Completed", "NotSupported") or bool(fabric_faults(status.fabric_health))


def _fabric_detail(status: GpuStatus) -> str:
    return ", ".join(fabric_faults(status.fabric_health)) or f"state {status.fabric_state}"


def _above(value: int | None, limit: int) -> bool | None:
    return None if value is None else value > limit


def _hot(status: GpuStatus) -> bool | None:
    return None if status.temperature_margin is None else status.temperature_margin <= 0


CHECKS = (
    Check("gpu.lost", lambda s: s.lost),
    Check("gpu.reset-required", lambda s: s.reset_required),
    Check("gpu.row-remap-pending", lambda s: s.row_remap_pending, latched=True),
    Check("gpu.row-remap-failure", lambda s: s.row_remap_failure, latched=True),
    Check(
        "gpu.ecc.uncorrectable",
        lambda s: _above(s.ecc_volatile_uncorrectable, 0),
        lambda s: f"{s.ecc_volatile_uncorrectable} since the last reset",
        latched=True,
    ),
    Check("gpu.sram-threshold", lambda s: s.sram_threshold_exceeded, latched=True),
    Check("pcie.link-degraded", _width, lambda s: f"x{s.pcie_width} of x{s.pcie_width_max}", lasting=AGAIN),
    Check(
        "nvlink.down",
        lambda s: _above(s.nvlink_down, 0),
        lambda s: f"{s.nvlink_down} links",
        lasting=AGAIN,
        grace=NVLINK_GRACE,
    ),
    Check("gpu.fabric-state", _fabric, _fabric_detail, lasting=FABRIC_GRACE, latched=True, at_once=True),
    Check("gpu.temperature-margin", _hot, lambda s: f"{s.temperature_margin} K", lasting=HOT),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One item on one GPU after a look."""

    item: str
    bad: bool
    detail: str
    proof: bool
    """True when `not bad` is itself the proof that the remedy was done."""


@dataclass(slots=True)
class GpuJudge:
    """Remembers since when what is bad; see `Check`."""

    seen: set[tuple[str, str]] = field(default_factory=set)
    """(item, PCI address) of what the present look could see, bad or not."""
    _since: dict[tuple[str, str], float] = field(default_factory=dict)

    def judge(self, status: GpuStatus, uptime: float, now: float, out: bool = False) -> Iterable[Verdict]:
        """Judge one GPU; `out`: its node is out of service for a repair. Nothing is said of what cannot be seen or has
        not lasted long enough."""
        for check in CHECKS:
            bad, key = check.bad(status), (check.item, status.pci)
            if bad is None:
                continue
            self.seen.add(key)
            if not bad:
                self._since.pop(key, None)
                yield Verdict(check.item, False, "", check.latched)
            elif self.lasts(key, 0.0 if out and check.at_once else check.lasting, now) and uptime >= check.grace:
                yield Verdict(check.item, True, check.detail(status), check.latched)

    def lasts(self, key: tuple[str, str], seconds: float, now: float) -> bool:
        """Note that something is bad; True once it has been so for `seconds`."""
        return now - self._since.setdefault(key, now) >= seconds

    @property
    def all_well(self) -> bool:
        """True while nothing is bad, not even too shortly to count."""
        return not self._since

    def well(self, key: tuple[str, str]) -> None:
        """Note that something is well."""
        self._since.pop(key, None)
