"""The hollow machine as the agent on it sees it: what can be done to it, and the disk its journal lies on.

What a back-end's script says of a call (`answer` of the pool or node) holds for the agent's own acts too: a refused
or unanswered one is an act that failed here, and one that lies claims to be done and is not.
"""

from __future__ import annotations

from sickbay.api.words import TaskPhase
from sickbay.apiserver.errors import Obj
from sickbay.clock import Clock
from sickbay.providers.agent.host import Finding, HostError, Proof
from sickbay.providers.agent.journal import Entry, keep
from sickbay.sim.cloud import DURATIONS, Cloud
from sickbay.sim.hand import NODES, PODS, TASKS
from sickbay.sim.machine import Machine
from sickbay.sim.parts.kubelet import GPU
from sickbay.sim.parts.scheduling.picture import requests_of
from sickbay.sim.stage import Stage

HANG_SECONDS = 1200.0
"""After which the agent ends a test that does not end by itself (level 2 of the real one)."""


class HollowHost:
    """`sickbay.providers.agent.host.Host` on a hollow machine."""

    def __init__(self, machine: Machine, stage: Stage, cloud: Cloud, clock: Clock) -> None:
        self._machine, self._stage, self._cloud, self._clock = machine, stage, cloud, clock

    def boot_id(self) -> str:
        return self._machine.boot_id

    async def reboot(self) -> None:
        if self._allowed("reboot", "Reboot"):
            self._machine.reboot()

    async def restart_service(self, name: str) -> Proof:
        if name not in self._machine.services:
            raise HostError(f"service {name!r} is not on this agent's list: {', '.join(self._machine.services)}")
        if self._allowed("restartService", "RestartService", name):
            self._machine.restart_service(name)
        await self._clock.sleep(1.0)
        return {"service": name, "state": self._machine.services[name]}

    async def restart_device_plugin(self) -> Proof:
        if self._allowed("restartDevicePlugin", "RestartDevicePlugin"):
            self._machine.offer_all()
        await self._clock.sleep(1.0)
        return {"containers": "device-plugin"}

    async def isolate(self, devices: frozenset[str]) -> None:
        known = {card.uuid for card in self._machine.gpus}
        if devices - known:
            raise HostError(f"{', '.join(sorted(devices - known))}: no GPU of this machine")
        self._machine.isolate(devices)

    async def holders(self, device: str) -> list[str]:
        """Pods that use GPUs of this node. Which card each has is not modelled: each counts for all of them, unless its
        status says which it has been given."""
        pods = self._stage.store.list(PODS, fields=f"spec.nodeName={self._machine.name}")
        return [
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            for pod in pods
            if requests_of(pod).get(GPU) and (pod.get("status") or {}).get("phase") == "Running" and _has(pod, device)
        ]

    async def reset_gpu(self, device: str) -> Proof:
        card = next((card for card in self._machine.gpus if card.uuid == device), None)
        if card is None:
            raise HostError(f"{device!r} is no GPU of this machine")
        does = self._allowed("resetGPU", "ResetGPU", device)
        await self._clock.sleep(DURATIONS["resetGPU"])
        if does:
            self._machine.reset_gpu(card.index)
        return {device: "reset"}

    async def resume(self) -> None:
        """A reset of a hollow card stops nothing."""

    async def gpu_users(self) -> list[str]:
        return await self.holders("")

    async def diagnose(self, check: str) -> Finding:
        if not self._answers("diagnose"):
            raise HostError("it ended without a result")
        found = self._machine.diagnosis(check)
        await self._clock.sleep(DURATIONS["diagnose"])
        if found.result == "hang":
            await self._clock.sleep(HANG_SECONDS)
            raise HostError(f"diagnostics {check}: no end after {HANG_SECONDS:g} s")
        if found.result == "error":
            raise HostError(f"diagnostics {check}: {found.message or 'the check itself broke'}")
        return Finding(found.result == "pass", found.message or f"diagnostics {check}: {found.result}")

    def _answers(self, call: str) -> bool:
        """Note a call that destroys nothing; False when it is to be claimed and not done."""
        line = self._cloud.behaviour(self._machine.name).answer(call)
        self._stage.journal.call(call, line.answer, self._machine.name, self._key())
        if line.answer not in ("ok", "liesDone", "acceptThenTimeout"):
            raise HostError(line.message or f"{call} failed")
        return line.answer != "liesDone"

    def _allowed(self, call: str, kind: str, target: str = "") -> bool:
        """Note the act; False when it is to be claimed and not done. Raises HostError where the script has it fail."""
        name, journal = self._machine.name, self._stage.journal
        line = self._cloud.behaviour(name).answer(call)
        journal.call(call, line.answer, name, self._key())
        if line.answer not in ("ok", "liesDone", "acceptThenTimeout"):
            raise HostError(line.message or f"{call} failed")
        node = self._stage.store.find(NODES, name)
        uid = node["metadata"]["uid"] if node else ""
        journal.act(kind, name, node_uid=uid, key=self._key(), target=target)
        return line.answer != "liesDone"

    def _key(self) -> str:
        """The key of the task that is being carried out: the agent has written so before it acts."""
        for task in self._stage.store.list(TASKS):
            spec = task.get("spec") or {}
            running = (task.get("status") or {}).get("phase") == TaskPhase.RUNNING
            if running and (spec.get("node") or {}).get("name") == self._machine.name:
                return str(spec.get("key", ""))
        return ""


def _has(pod: Obj, device: str) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    shown = [r["resourceID"] for s in statuses for a in s.get("allocatedResourcesStatus") or () for r in a["resources"]]
    return not shown or not device or device in shown


class Disk:
    """The agent's journal on a machine's disk: it outlives the agent and every boot."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def find(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def write(self, entry: Entry) -> None:
        keep(self._entries, entry)
