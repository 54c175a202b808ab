"""Who has a GPU open, and those of them that step aside for its reset.

A GPU is reset only when nothing has it open. Some programs that have every GPU open do no work on it: NVIDIA's
persistence daemon, DCGM and its exporter, the device plug-in, feature discovery. They are told by their names, stopped
right before the reset by whoever runs them, and started again after it, whatever became of it. Everybody else stands in
the way, and is named with its process number.

    unit        systemd runs it: `systemctl stop`, and `systemctl start` afterwards
    container   the kubelet runs it: `crictl stop`; the kubelet starts another one by itself

Which of the two, /proc/PID/cgroup says. What was stopped stands in a file before it is, so that an agent that dies in
between starts it again when it comes back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sickbay.providers.agent.host import HostError

ASIDE = frozenset(
    {
        "nvidia-persiste",
        "nv-hostengine",
        "dcgm-exporter",
        "nvidia-device-p",
        "gpu-feature-dis",
        "gpu-kubelet-plu",
    }
)
"""Names as in /proc/PID/comm, 15 characters: nvidia-persistenced, DCGM's engine and exporter, the device plug-in,
gpu-feature-discovery and the plug-in of NVIDIA's DRA driver."""
_UNIT = re.compile(r"/([A-Za-z0-9:_.@\\-]{1,128}\.service)$")
_CONTAINER = re.compile(r"([0-9a-f]{64})(?:\.scope)?$")


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has a GPU open."""

    pid: str
    name: str
    unit: str = ""
    container: str = ""

    @property
    def steps_aside(self) -> bool:
        return self.name in ASIDE

    def words(self) -> str:
        return f"pid {self.pid} ({self.name})"


def holders(proc: Path, device: re.Pattern[str]) -> list[Holder]:
    """All processes that have a device file of this name open, by number."""
    found = [_holder(process) for process in proc.iterdir() if process.name.isdigit() and _has_open(process, device)]
    return sorted(found, key=lambda holder: int(holder.pid))


def _has_open(process: Path, device: re.Pattern[str]) -> bool:
    try:
        return any(device.fullmatch(str(link.readlink())) for link in (process / "fd").iterdir())
    except OSError:
        return False  # it has ended meanwhile


def _holder(process: Path) -> Holder:
    name, group = _text(process / "comm") or "?", _text(process / "cgroup").rpartition("\n")[2]
    unit, container = _UNIT.search(group), _CONTAINER.search(group)
    return Holder(process.name, name, unit[1] if unit else "", container[1] if container else "")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


class Aside:
    """Stops those that step aside, and starts them again. `record`: where the stopped units are remembered."""

    def __init__(self, record: Path, run: Callable[[Sequence[str]], Awaitable[object]]) -> None:
        self._record, self._run = record, run

    async def stop(self, known: Sequence[Holder]) -> None:
        """Raises HostError that names the one that would not stop; those before it are on record."""
        units = sorted({holder.unit for holder in known if holder.unit})
        containers = sorted({holder.container for holder in known if holder.container and not holder.unit})
        if units:
            self._write(units)
        for unit in units:
            await self._run(["systemctl", "stop", unit])
        for container in containers:
            await self._run(["crictl", "stop", "--timeout=10", container])

    async def start(self) -> list[str]:
        """Start the units on record; returns them. Raises HostError that names those that would not start."""
        units, failed = self._read(), []
        for unit in units:
            try:
                await self._run(["systemctl", "start", unit])
            except HostError as error:
                failed.append(str(error))
        self._record.unlink(missing_ok=True)
        if failed:
            raise HostError(f"stopped for the reset and not started again: {'; '.join(failed)}")
        return units

    def _read(self) -> list[str]:
        try:
            return [str(unit) for unit in json.loads(self._record.read_bytes())]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError) as error:
            raise HostError(f"{self._record} cannot be read: {error}; start by hand what it names") from None

    def _write(self, units: list[str]) -> None:
        try:
            self._record.parent.mkdir(parents=True, exist_ok=True)
            self._record.write_text(json.dumps(units))
        except OSError as error:
            raise HostError(f"{self._record} cannot be written: {error.strerror or error}") from None
