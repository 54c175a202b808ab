"""What can be done to a host. The simulator brings a hollow one; `linux.py` has the real one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

Proof = dict[str, str]
"""What shows that an act was done, for the task's status."""


class HostError(Exception):
    """The act failed, or cannot be done here; the text is for people."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What active diagnostics have found: the hardware passed, or did not."""

    passed: bool
    message: str = ""


class Host(Protocol):
    def boot_id(self) -> str:
        """The kernel's boot ID (proc(5): /proc/sys/kernel/random/boot_id)."""
        ...

    async def reboot(self) -> None:
        """Ask the machine to reboot. Returns when that is accepted; the end comes from outside."""
        ...

    async def restart_service(self, name: str) -> Proof:
        """Restart a system service and wait until it runs. Raises HostError."""
        ...

    async def restart_device_plugin(self) -> Proof:
        """Restart the device plug-in of the GPUs, so that it offers them anew. Raises HostError."""
        ...

    async def holders(self, device: str) -> list[str]:
        """Processes that have the GPU open and do not step aside for its reset, as text for people. Raises HostError
        when that cannot be seen."""
        ...

    async def isolate(self, devices: frozenset[str]) -> None:
        """Have exactly these cards (of those that are ours to take) not offered any more, by UUID. Raises HostError."""
        ...

    async def reset_gpu(self, device: str) -> Proof:
        """Reset one GPU, by UUID. Raises HostError."""
        ...

    async def resume(self) -> None:
        """Start again what an act had stopped that was interrupted. Raises HostError that names it."""
        ...

    async def gpu_users(self) -> list[str]:
        """Processes that have any GPU open, as text for people. Raises HostError when that cannot be seen."""
        ...

    async def diagnose(self, check: str) -> Finding:
        """Run active diagnostics: a level as text, or a check by name. Raises HostError when nothing was found out."""
        ...
