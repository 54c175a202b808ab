"""Agents: the DaemonSet under which they run, and the hollow machine as the real agent sees it."""

from __future__ import annotations

from typing import Any

from sickbay.clock import Clock
from sickbay.detect.agent import Parts
from sickbay.detect.saved import MemoryStore
from sickbay.providers.agent.host import HostError, Proof
from sickbay.sim.agent import Gpus, KernelLog, Services
from sickbay.sim.host import Disk
from sickbay.sim.machine import Machine
from tests.support.controlplane import AGENT, NAMESPACE


def daemon_set() -> dict[str, Any]:
    """A pod of the agent's service account on every node. Hollow kubelets run it; what it does, tests do."""
    labels = {"app": AGENT}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": AGENT, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": AGENT,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "agent", "image": "sickbay"}],
                },
            },
        },
    }


def pod_on(node: str, pods: list[dict[str, Any]]) -> str:
    """Name of the agent's pod on a node. Raises LookupError while there is none."""
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        if labels.get("app") == AGENT and pod["spec"].get("nodeName") == node:
            return str(pod["metadata"]["name"])
    raise LookupError(f"no agent pod on {node}")


class Host:
    """What the agent can do to a hollow machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.reboots = 0

    def boot_id(self) -> str:
        return self._machine.boot_id

    async def reboot(self) -> None:
        self.reboots += 1
        self._machine.reboot()

    async def restart_service(self, name: str) -> Proof:
        self._machine.restart_service(name)
        return {"service": name}

    async def restart_device_plugin(self) -> Proof:
        raise HostError("a hollow machine has no device plug-in")

    async def holders(self, device: str) -> list[str]:
        return []

    async def reset_gpu(self, device: str) -> Proof:
        card = next(card for card in self._machine.gpus if card.uuid == device)
        self._machine.reset_gpu(card.index)
        return {device: "reset"}

    async def resume(self) -> None:
        pass

    async def isolate(self, devices: frozenset[str]) -> None:
        self._machine.isolate(devices)


class HostMemory:
    """A machine with what an agent keeps on its disk: journal and state outlive boots and agents."""

    def __init__(self, machine: Machine, clock: Clock) -> None:
        self.host = Host(machine)
        self._machine, self._clock = machine, clock
        self._store, self._disk = MemoryStore(), Disk()

    def parts(self) -> Parts:
        """For one run of an agent."""
        return Parts(
            host=self.host,
            journal=self._disk,
            store=self._store,
            sources=[KernelLog(self._machine)],
            gpus=Gpus(self._machine),
            services=Services(self._machine),
            has_nvswitch=True,
            uptime=lambda: self._clock.monotonic() - self._machine.booted_at,
        )
