"""A host that is played, and an agent on it, against our own API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from sickbay.api.crds import manifests
from sickbay.apiserver.writes import Write
from sickbay.clock import Clock, Randomness
from sickbay.detect.agent import Agent, AgentOptions, Parts
from sickbay.detect.gpus import GpuReport, GpuStatus
from sickbay.detect.judge import Trust
from sickbay.detect.saved import MemoryStore
from sickbay.detect.source import Batch, SourceError
from sickbay.detect.units import Service
from sickbay.providers.agent.host import Finding, HostError, Proof
from sickbay.providers.agent.journal import Entry
from tests.kube.served import Cut, Server

NODE = "node-1"
BUSES = ("1b", "2a", "3b", "5d", "9b", "ab", "bb", "db")


def pci(index: int) -> str:
    return f"0000:{BUSES[index]}:00.0"


class Ring:
    """The kernel's log of one boot."""

    name, trust, per_boot = "kernel log", Trust.LIVE, True

    def __init__(self, batch: int = 2000) -> None:
        self.lines: list[str] = []
        self.broken = ""
        self.lost = 0
        self._batch = batch
        self._next, self._ended = 0, False
        self._more = asyncio.Event()

    def print(self, text: str, at: float | None = None, facility: int = 0) -> None:
        number = len(self.lines)
        uptime = number * 0.001 if at is None else at
        self.lines.append(f"{facility * 8 + 3},{number},{int(uptime * 1e6)},-;{text}")
        self._more.set()

    def break_down(self, why: str) -> None:
        self.broken = why
        self._more.set()

    async def open(self, position: str) -> None:
        if self.broken:
            raise SourceError(self.broken)
        self._next, self._ended = (int(position) + 1 if position else 0), False

    async def read(self) -> Batch:
        while True:
            if self.broken:
                raise SourceError(self.broken)
            lines = self.lines[self._next : self._next + self._batch]
            if lines or not self._ended:
                self._next += len(lines)
                end = self._next >= len(self.lines)
                self._ended = self._ended or end
                lost, self.lost = self.lost, 0
                return Batch(lines, str(self._next - 1) if self._next else "", end, lost)
            self._more.clear()
            await self._more.wait()

    def close(self) -> None:
        return


class Gpus:
    """The driver's view of eight GPUs."""

    def __init__(self) -> None:
        self.states: dict[int, dict[str, Any]] = {}
        self.missing: set[int] = set()
        self.hung: list[str] = []
        self.error = ""

    async def poll(self) -> GpuReport:
        if self.hung or self.error:
            return GpuReport(expected=8, hung=self.hung, error=self.error)
        seen = [
            GpuStatus(
                pci=pci(k), index=k, **({"uuid": f"GPU-{k}", "serial": f"S{k}", "lost": False} | self.states.get(k, {}))
            )
            for k in range(8)
            if k not in self.missing
        ]
        return GpuReport(expected=8, gpus=seen, version_mismatch=False)


class Services:
    def __init__(self) -> None:
        self.works = {"kubelet": True, "containerd": True}
        self.broken = ""

    async def poll(self) -> Mapping[str, Service]:
        if self.broken:
            raise OSError(self.broken)
        return {unit: Service(works=works, state="active" if works else "failed") for unit, works in self.works.items()}


class Host:
    """What may be done to it, written down."""

    def __init__(self) -> None:
        self.boot = "boot-1"
        self.acts: list[str] = []
        self.users: list[str] = []
        self.resumed = 0
        self.isolated: frozenset[str] = frozenset()
        self.fails = ""
        self.sick = ""
        """The diagnostics that fail."""

    def boot_id(self) -> str:
        return self.boot

    async def reboot(self) -> None:
        self._act("reboot")

    async def restart_service(self, name: str) -> Proof:
        self._act(f"restart {name}")
        return {"service": name, "state": "active"}

    async def restart_device_plugin(self) -> Proof:
        self._act("restart device plug-in")
        return {"containers": "c1"}

    async def holders(self, device: str) -> list[str]:
        return self.users

    async def reset_gpu(self, device: str) -> Proof:
        self._act(f"reset {device}")
        return {device: "reset"}

    async def gpu_users(self) -> list[str]:
        return self.users

    async def resume(self) -> None:
        self.resumed += 1

    async def diagnose(self, check: str) -> Finding:
        self._act(f"diagnose {check}")
        return Finding(check != self.sick, f"diagnostics {check}: what was found")

    async def isolate(self, devices: frozenset[str]) -> None:
        if devices != self.isolated:
            self._act(f"isolate {', '.join(sorted(devices)) or 'nothing'}")
        self.isolated = devices

    def _act(self, what: str) -> None:
        if self.fails:
            raise HostError(self.fails)
        self.acts.append(what)


class Journal:
    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def find(self, key: str) -> Entry | None:
        return self.entries.get(key)

    def write(self, entry: Entry) -> None:
        self.entries[entry.key] = msgspec.structs.replace(entry)


@dataclass
class Machine:
    """Everything of a host that outlives an agent."""

    clock: Clock
    server: Server
    ring: Ring = field(default_factory=Ring)
    gpus: Gpus = field(default_factory=Gpus)
    services: Services = field(default_factory=Services)
    host: Host = field(default_factory=Host)
    journal: Journal = field(default_factory=Journal)
    store: MemoryStore = field(default_factory=MemoryStore)
    writes: list[Write] = field(default_factory=list)
    """Writes of the agent to its Node."""
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    uptime: float = 10000.0
    starts: int = 0

    def __post_init__(self) -> None:
        self.server.store.after_write(self._note)

    def _note(self, write: Write) -> None:
        if write.resource == "nodes" and write.user_agent == "sickbay-agent":
            self.writes.append(write)

    def register(self) -> None:
        gpus = {"nvidia.com/gpu": "8"}
        status = {"nodeInfo": {"bootID": self.host.boot}, "capacity": gpus, "allocatable": gpus}
        self.server.store.create("nodes", {"metadata": {"name": NODE}, "status": status})

    def reboot(self) -> None:
        """A new boot; the agent must have been stopped before."""
        self.host.boot = f"boot-{int(self.host.boot[5:]) + 1}"
        self.ring = Ring()

    def parts(self, **changes: Any) -> Parts:
        parts = Parts(
            self.host, self.journal, self.store, [self.ring], self.gpus, self.services, True, lambda: self.uptime
        )
        return replace(parts, **changes)

    # --- what the API server shows

    @property
    def node(self) -> dict[str, Any]:
        return self.server.get("nodes", NODE)

    def condition(self, type_: str) -> dict[str, Any]:
        found = [c for c in self.node.get("status", {}).get("conditions", []) if c["type"] == type_]
        return found[0] if found else {}

    def status(self, type_: str) -> str:
        """True, False, Unknown, or "" where the condition is absent."""
        return str(self.condition(type_).get("status", ""))

    def bad(self) -> set[str]:
        return {c["type"] for c in self.node.get("status", {}).get("conditions", []) if c["status"] == "True"}

    def devices(self) -> list[dict[str, Any]]:
        text = self.node["metadata"].get("annotations", {}).get("sickbay.dev/devices")
        found: list[dict[str, Any]] = msgspec.json.decode(text) if text else []
        return found

    def events(self, reason: str) -> list[dict[str, Any]]:
        return [e for e in self.server.store.list("events", "default") if e["reason"] == reason]


async def machine(clock: Clock, register: bool = True) -> Machine:
    server = Server(clock)
    for namespace in ("default", "sickbay-agents"):
        if server.store.find("namespaces", namespace) is None:
            server.store.create("namespaces", {"metadata": {"name": namespace}})
    for crd in manifests():
        server.store.create("customresourcedefinitions.apiextensions.k8s.io", crd)
    made = Machine(clock, server)
    if register:
        made.register()
    return made


@dataclass
class Running:
    agent: Agent
    cut: Cut


@asynccontextmanager
async def agent_on(found: Machine, settle: float = 1.0, **parts: Any) -> AsyncIterator[Running]:
    """An agent that runs in the block, `settle` seconds after its start. It must not end by itself."""
    client, cut = found.server.client("sickbay-agent")
    found.registry = CollectorRegistry()
    found.starts += 1
    made = Agent(
        client, found.clock, Randomness(found.starts), AgentOptions(NODE), found.parts(**parts), found.registry
    )
    task = asyncio.create_task(made.run())
    try:
        await found.clock.sleep(settle)
        yield Running(made, cut)
        if task.done():
            task.result()
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])
        await client.aclose()
