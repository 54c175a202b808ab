"""A Linux host with systemd and NVIDIA's driver, as an agent with the host's namespaces sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sickbay.providers.agent.cardlist import CardList
from sickbay.providers.agent.commands import COMMAND_SECONDS, NSENTER, outcome, run
from sickbay.providers.agent.diagnosing import DEFAULT_CHECKS, Check
from sickbay.providers.agent.holders import Aside, holders
from sickbay.providers.agent.host import Finding, HostError, Proof

SERVICE_SECONDS = 240.0
"""A restart of the kubelet or containerd on a busy node takes up to a few minutes."""
RESET_SECONDS = 300.0

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
        self._aside = Aside(state / "stopped.json", self._told)
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
        return self._in_the_way(self._file(device))

    async def gpu_users(self) -> list[str]:
        return self._in_the_way(_CARD)

    def _in_the_way(self, path: re.Pattern[str]) -> list[str]:
        return [holder.words() for holder in holders(self._proc, path) if not holder.steps_aside]

    async def diagnose(self, check: str) -> Finding:
        chosen = self._checks.get(check)
        if chosen is None:
            raise HostError(f"no diagnostics {check!r} are configured here; there are: {', '.join(self._checks)}")
        return await chosen.run(check, self._prefix)

    async def reset_gpu(self, device: str) -> Proof:
        if not _UUID.fullmatch(device):
            raise HostError(f"{device!r} is no GPU UUID: without one the right card cannot be told from the others")
        path = self._file(device)
        try:
            await self._aside.stop([holder for holder in holders(self._proc, path) if holder.steps_aside])
            await self._reset(device, path)
        except HostError as error:
            await self._back_again(error)
            raise
        started = await self._aside.start()
        return {device: "reset"} | ({"startedAgain": ",".join(started)} if started else {})

    async def _reset(self, device: str, path: re.Pattern[str]) -> None:
        """Raises HostError, with whoever has the GPU open."""
        command = ["nvidia-smi", "--gpu-reset", f"--id={device}"]
        code, output = await outcome(command, RESET_SECONDS, self._prefix)
        if code == 0 and "successfully reset" in output:
            return
        users = ", ".join(holder.words() for holder in holders(self._proc, path)[:5])
        where = f"; it is open in {users}" if users else ""
        raise HostError(f"nvidia-smi did not confirm the reset (exit code {code}): {output.strip()[:300]}{where}")

    async def _back_again(self, reason: HostError) -> None:
        """After a reset that failed. Raises HostError with both reasons where a service does not start again."""
        try:
            await self._aside.start()
        except HostError as error:
            raise HostError(f"{reason}; {error}") from None

    async def resume(self) -> None:
        await self._aside.start()

    async def _service(self, name: str) -> dict[str, str]:
        text = await self._run(
            ["systemctl", "show", "--property=ActiveState,MainPID,InvocationID", name], COMMAND_SECONDS
        )
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def _file(self, device: str) -> re.Pattern[str]:
        return re.compile(f"/dev/nvidia{self._minor(device)}")

    def _minor(self, device: str) -> str:
        """Number N of /dev/nvidiaN, from the driver's own table (it need not be the index nvidia-smi shows)."""
        for information in self._proc.glob("driver/nvidia/gpus/*/information"):
            facts: dict[str, str] = dict(_INFORMATION.findall(information.read_text(errors="replace")))
            if facts.get("GPU UUID", "").lower() == device.lower() and "Device Minor" in facts:
                return facts["Device Minor"]
        raise HostError(f"the driver shows no GPU {device}")

    async def _run(self, command: Sequence[str], seconds: float) -> str:
        return await run(command, seconds, self._prefix)
