"""A Linux host with systemd and NVIDIA's driver, as an agent with the host's namespaces sees it.

Commands are argument lists, never a shell; each has a time-out. Inside a container they run through nsenter in the
namespaces of the host's process 1, for which the pod needs `hostPID` and a privileged security context.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from sickbay.providers.agent.host import HostError, Proof

NSENTER = ("nsenter", "--target", "1", "--mount", "--uts", "--ipc", "--net", "--pid", "--")
COMMAND_SECONDS = 60.0
SERVICE_SECONDS = 240.0
"""A restart of the kubelet or containerd on a busy node takes up to a few minutes."""
RESET_SECONDS = 300.0
OUTPUT = 2000
"""Characters of a command's output that are kept."""

_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.@-]{0,127}")
_UUID = re.compile(r"GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_INFORMATION = re.compile(r"^(GPU UUID|Device Minor):\s*(\S+)", re.MULTILINE)


class LinuxHost:
    """See the module. `services` are the only ones it restarts."""

    def __init__(
        self,
        services: Sequence[str] = ("kubelet", "containerd", "nvidia-persistenced", "nvidia-fabricmanager"),
        in_container: bool = False,
        proc: Path = Path("/proc"),
    ) -> None:
        self._services = tuple(services)
        self._prefix = NSENTER if in_container else ()
        self._proc = proc

    def boot_id(self) -> str:
        return (self._proc / "sys/kernel/random/boot_id").read_text().strip()

    async def reboot(self) -> None:
        await self._run(["systemctl", "--no-block", "reboot"], COMMAND_SECONDS)

    async def restart_service(self, name: str) -> Proof:
        if name not in self._services or not _SERVICE.fullmatch(name):
            raise HostError(f"service {name!r} is not on this agent's list: {', '.join(self._services)}")
        before = await self._service(name)
        await self._run(["systemctl", "restart", name], SERVICE_SECONDS)
        after = await self._service(name)
        if after.get("ActiveState") != "active":
            raise HostError(f"{name} is {after.get('ActiveState', 'unknown')} after its restart")
        if after.get("InvocationID") == before.get("InvocationID"):
            raise HostError(f"{name} was not restarted: systemd still shows the same invocation")
        return {"service": name, "invocationID": after.get("InvocationID", ""), "state": "active"}

    async def holders(self, device: str) -> list[str]:
        path = f"/dev/nvidia{self._minor(device)}"
        found = []
        for process in self._proc.iterdir():
            if process.name.isdigit() and self._has_open(process, path):
                found.append(f"pid {process.name} ({self._name(process)})")
        return sorted(found)

    async def reset_gpu(self, device: str) -> Proof:
        if not _UUID.fullmatch(device):
            raise HostError(f"{device!r} is no GPU UUID: without one the right card cannot be told from the others")
        output = await self._run(["nvidia-smi", "--gpu-reset", f"--id={device}"], RESET_SECONDS)
        if "successfully reset" not in output:
            raise HostError(f"nvidia-smi did not confirm the reset: {output[:300]}")
        return {device: "reset"}

    async def _service(self, name: str) -> dict[str, str]:
        text = await self._run(
            ["systemctl", "show", "--property=ActiveState,MainPID,InvocationID", name], COMMAND_SECONDS
        )
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def _minor(self, device: str) -> str:
        """Number N of /dev/nvidiaN, from the driver's own table (it need not be the index nvidia-smi shows)."""
        for information in self._proc.glob("driver/nvidia/gpus/*/information"):
            facts: dict[str, str] = dict(_INFORMATION.findall(information.read_text(errors="replace")))
            if facts.get("GPU UUID", "").lower() == device.lower() and "Device Minor" in facts:
                return facts["Device Minor"]
        raise HostError(f"the driver shows no GPU {device}")

    def _has_open(self, process: Path, path: str) -> bool:
        try:
            return any(str(link.readlink()) == path for link in (process / "fd").iterdir())
        except OSError:
            return False  # it has ended meanwhile

    def _name(self, process: Path) -> str:
        try:
            return (process / "comm").read_text().strip()
        except OSError:
            return "?"

    async def _run(self, command: Sequence[str], seconds: float) -> str:
        """Run a command and return what it printed. Raises HostError that names it."""
        shown = " ".join(command)
        try:
            process = await asyncio.create_subprocess_exec(
                *self._prefix, *command, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )  # fmt: skip
        except OSError as error:
            raise HostError(f"{shown}: {error.strerror or error}") from None
        try:
            async with asyncio.timeout(seconds):
                output, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise HostError(f"{shown}: no end after {seconds:g} s") from None
        text = output.decode("utf-8", "replace")[-OUTPUT:]
        if process.returncode != 0:
            raise HostError(f"{shown}: exit code {process.returncode}: {text.strip()[:300]}")
        return text
