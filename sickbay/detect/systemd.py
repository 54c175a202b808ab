"""Services as systemd shows them, and whether the two that carry pods still answer.

A hung kubelet or containerd is active for systemd. The kubelet is asked on its health port, containerd by its own
client; where either cannot be reached from here at all, the word of systemd has to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from sickbay.detect.units import ITEMS, Service
from sickbay.providers.agent.commands import NSENTER, run
from sickbay.providers.agent.host import HostError

SHOW_SECONDS = 20.0
ANSWER_SECONDS = 10.0
KUBELET_PORT = 10248
"""healthzPort of the kubelet; it listens on the host's loopback."""
_PROPERTIES = "--property=Id,LoadState,UnitFileState,ActiveState,SubState,NRestarts"
_NOT_IN_USE = ("", "disabled", "masked", "static", "indirect")


class SystemdProbe:
    """`ServiceProbe` on a host."""

    def __init__(
        self, units: Sequence[str] = tuple(ITEMS), in_container: bool = False, port: int = KUBELET_PORT
    ) -> None:
        self._units, self._port = tuple(units), port
        self._prefix = NSENTER if in_container else ()
        self._answered: set[str] = set()
        """Services that have answered at least once, so that silence means something."""

    async def poll(self) -> Mapping[str, Service]:
        try:
            text = await run(["systemctl", "show", _PROPERTIES, *self._units], SHOW_SECONDS, self._prefix)
        except HostError as error:
            raise OSError(str(error)) from None
        services = read_show(text)
        for unit, ask in (("kubelet", self._kubelet), ("containerd", self._containerd)):
            service = services.get(unit)
            if service is not None and service.works and not await self._answers(unit, await ask()):
                services[unit] = Service(works=False, state="does not answer", restarts=service.restarts)
        return services

    async def _answers(self, unit: str, answer: bool) -> bool:
        if answer:
            self._answered.add(unit)
        return answer or unit not in self._answered

    async def _kubelet(self) -> bool:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
                    await writer.drain()
                    return b" 200 " in await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False

    async def _containerd(self) -> bool:
        try:
            await run(["ctr", f"--timeout={ANSWER_SECONDS:g}s", "version"], ANSWER_SECONDS + 5.0, self._prefix)
        except HostError:
            return False
        return True


def read_show(text: str) -> dict[str, Service]:
    """Units out of the blocks that `systemctl show` prints. One that is not installed or not in use works as None."""
    found = {}
    for block in text.split("\n\n"):
        facts = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        unit = facts.get("Id", "").removesuffix(".service")
        if unit:
            found[unit] = _service(facts)
    return found


def _service(facts: Mapping[str, str]) -> Service:
    state, sub = facts.get("ActiveState", ""), facts.get("SubState", "")
    restarts = int(facts["NRestarts"]) if facts.get("NRestarts", "").isdigit() else None
    unused = state == "inactive" and facts.get("UnitFileState", "") in _NOT_IN_USE
    if facts.get("LoadState") != "loaded" or not state or unused:
        return Service(state=state)
    return Service(
        works=state in ("active", "reloading"), state=f"{state} ({sub})" if sub else state, restarts=restarts
    )
