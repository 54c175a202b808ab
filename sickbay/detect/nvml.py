"""The driver's view of the GPUs, asked for in a child process with a deadline.

A child that is stuck in the driver is left alone: it cannot be killed, and nobody waits for it. While it is stuck the
GPUs cannot be seen; once it has ended a new one is started.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from sickbay.detect import nvml_child
from sickbay.detect.gpus import GpuReport, GpuStatus

DEADLINE = 25.0
"""Seconds for one look at all GPUs: less than the time between two looks. Eight cards take 1 to 3 s."""
LINE = 64 * 1024
_NVIDIA = "0x10de"
_DISPLAY = ("0x0302", "0x0300")
"""PCI classes 3D controller and VGA controller (detection reference 5.6)."""
_BRIDGE = "0x0680"
"""PCI class of an NVSwitch: a bridge of an unnamed kind."""


class NvmlProbe:
    """`GpuProbe` on a host. `command` starts the child; `pci` is the kernel's list of PCI devices."""

    def __init__(
        self,
        command: Sequence[str] = (sys.executable, nvml_child.__file__),
        pci: Path = Path("/sys/bus/pci/devices"),
        deadline: float = DEADLINE,
    ) -> None:
        self._command, self._pci, self._deadline = tuple(command), pci, deadline
        self._child: asyncio.subprocess.Process | None = None
        self._at: list[str] = []
        """Where the present or last look is, or got stuck."""

    async def poll(self) -> GpuReport:
        expected = count_gpus(self._pci)
        if self._at and self._alive():
            return GpuReport(expected=expected, hung=self._at[-1:], error="the driver does not answer")
        try:
            async with asyncio.timeout(self._deadline):
                report = await self._look()
        except TimeoutError:
            self._abandon()
            return GpuReport(expected=expected, hung=self._at[-1:] or [""], error="the driver does not answer")
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            self._abandon()
            self._at = []
            report = GpuReport(error=f"NVML process: {error}")
        self._at = []
        report.expected = expected
        report.absent = bool(report.error) and expected == 0
        return report

    async def aclose(self) -> None:
        """End the child; one that is stuck is left to the kernel."""
        self._abandon()

    async def _look(self) -> GpuReport:
        child = await self._started()
        assert child.stdin is not None and child.stdout is not None
        self._at = [""]
        child.stdin.write(b"look\n")
        await child.stdin.drain()
        gpus: list[GpuStatus] = []
        while True:
            raw = await child.stdout.readline()
            if not raw:
                raise ValueError("it ended in the middle of a look")
            line: dict[str, Any] = msgspec.json.decode(raw)
            if "at" in line:
                self._at.append(str(line["at"]))
            elif "gpu" in line:
                gpus.append(msgspec.convert(line["gpu"], GpuStatus))
            elif "done" in line:
                done = line["done"]
                return GpuReport(
                    gpus=gpus, error=str(done.get("error", "")), version_mismatch=done.get("versionMismatch")
                )

    async def _started(self) -> asyncio.subprocess.Process:
        if self._child is None or self._child.returncode is not None:
            self._child = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=LINE,
            )
        return self._child

    def _alive(self) -> bool:
        return self._child is not None and self._child.returncode is None

    def _abandon(self) -> None:
        """Ask the kernel to end the child, once. asyncio reaps it whenever that may be."""
        if self._child is not None and self._child.returncode is None:
            self._child.kill()


def count_gpus(pci: Path) -> int:
    """GPUs of NVIDIA on the PCI bus, as the kernel lists them; one that is lost stays in the list."""
    return _count(pci, _DISPLAY)


def has_nvswitch(pci: Path = Path("/sys/bus/pci/devices")) -> bool:
    return _count(pci, (_BRIDGE,)) > 0


def _count(pci: Path, classes: tuple[str, ...]) -> int:
    try:
        devices = list(pci.iterdir())
    except OSError:
        return 0
    return sum(_read(d / "vendor") == _NVIDIA and _read(d / "class").startswith(classes) for d in devices)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
