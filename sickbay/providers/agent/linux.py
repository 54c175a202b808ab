"""A Linux host with systemd and NVIDIA's driver, as an agent with the host's namespaces sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sickbay.providers.agent.cardlist import CardList
from sickbay.providers.agent.commands import COMMAND_SECONDS, NSENTER, run
from sickbay.providers.agent.diagnosing import DEFAULT_CHECKS, Check
from sickbay.providers.agent.host import Finding, HostError, Proof

SERVICE_SECONDS = 240.0
"""A restart of the kubelet or containerd on a busy node takes up to a few minutes."""
RESET_SECONDS = 300.0

TOLERATED = ("nvidia-persiste",)
"""Holders that do not stand in the way of a reset (names as in /proc/PID/comm, 15 characters): nvidia-persistenced lets
go of a GPU when nvidia-smi asks it to."""

_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.@-]{0,127}")
_UUID = re.compile(r"GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CARD = re.compile(r"/dev/nvidia[0-9]+")
_INFORMATION = re.compile(r"^(GPU UUID|Device Minor):\s*(\S+)", re.MULTILINE)


class LinuxHost:
    """See the module. `services` are the only ones it restarts; `plugin` is part of the name of the device plug-in's
    container; `cards` is the list of cards that the plug-in must not offer, `cards_command` is run after a change."""

    def __init__(
        self,
        services: Sequence[str] = ("kubelet", "containerd", "nvidia-persistenced", "nvidia-fabricmanager"),
        in_container: bool = False,
        proc: Path = Path("/proc"),
        plugin: str = "nvidia-device-plugin",
        checks: Mapping[str, Check] = DEFAULT_CHECKS,
        cards: Path | None = None,
        cards_command: Sequence[str] = (),
        state: Path = Path("/var/lib/sickbay"),
    ) -> None:
        self._services, self._checks = tuple(services), dict(checks)
        self._prefix = NSENTER if in_container else ()
        self._proc, self._plugin = proc, plugin
        ours = state / "isolated.json"
        self._cards = CardList(cards, ours, cards_command, self._told) if cards is not None else None

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

    async def restart_device_plugin(self) -> Proof:
        """Stop its container; the kubelet starts another one."""
        listed = await self._run(["crictl", "ps", "--quiet", "--name", self._plugin], COMMAND_SECONDS)
        containers = listed.split()
        if not containers:
            raise HostError(f"no container named {self._plugin} runs here")
        for container in containers:
            await self._run(["crictl", "stop", "--timeout=30", container], SERVICE_SECONDS)
        return {"containers": ",".join(container[:13] for container in containers)}

    async def isolate(self, devices: frozenset[str]) -> None:
        if self._cards is not None:
            await self._cards.set(devices)
        elif devices:
            raise HostError("no card list is configured (--card-list): this agent cannot tell the device plug-in")

    async def _told(self, command: Sequence[str]) -> str:
        return await self._run(command, SERVICE_SECONDS)

    async def holders(self, device: str) -> list[str]:
        return self._users(re.compile(f"/dev/nvidia{self._minor(device)}"))

    async def gpu_users(self) -> list[str]:
        return self._users(_CARD)

    def _users(self, path: re.Pattern[str]) -> list[str]:
        found = []
        for process in self._proc.iterdir():
            if process.name.isdigit() and self._has_open(process, path):
                name = self._name(process)
                if name not in TOLERATED:
                    found.append(f"pid {process.name} ({name})")
        return sorted(found)

    async def diagnose(self, check: str) -> Finding:
        chosen = self._checks.get(check)
        if chosen is None:
            raise HostError(f"no diagnostics {check!r} are configured here; there are: {', '.join(self._checks)}")
        return await chosen.run(check, self._prefix)

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

    def _has_open(self, process: Path, path: re.Pattern[str]) -> bool:
        try:
            return any(path.fullmatch(str(link.readlink())) for link in (process / "fd").iterdir())
        except OSError:
            return False  # it has ended meanwhile

    def _name(self, process: Path) -> str:
        try:
            return (process / "comm").read_text().strip()
        except OSError:
            return "?"

    async def _run(self, command: Sequence[str], seconds: float) -> str:
        return await run(command, seconds, self._prefix)
