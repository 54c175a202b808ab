"""Which of our processes run in a world, and on which nodes.

Controllers run `replicas` times each. An agent runs on every machine that is up and has a Node, as a DaemonSet would
have it; it dies with its machine and is there again after the boot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sickbay.api import names
from sickbay.providers.agent.host import Host
from sickbay.providers.agent_tasks import AgentTasks
from sickbay.providers.base import Provider
from sickbay.sim.beats import Beats
from sickbay.sim.builders import BUILDERS
from sickbay.sim.cloud import FakeProvider
from sickbay.sim.components import Outside, Settings, available
from sickbay.sim.host import HollowHost
from sickbay.sim.listings import LISTED_EVERY, FakeEvents
from sickbay.sim.machine import Machine
from sickbay.sim.process import Process, Running, Surroundings

if TYPE_CHECKING:
    from sickbay.sim.world import World

SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
"""Of the series of a metric, by its type; others have none."""


class Staff:
    """See the module."""

    def __init__(self, world: World, around: Surroundings, settings: Settings) -> None:
        self._world, self._around = world, around
        self._outside = Outside(
            world.stage.machines,
            self._providers,
            self._host,
            settings,
            world.journal,
            Beats(world.loop),
            self._announcements,
        )
        self._controllers: dict[str, list[Process]] = {}
        self._agents: dict[str, Process] = {}
        self._agents_run = False
        world.fleet.on_machine.append(self._joined)

    def _providers(self, running: Running) -> dict[str, Provider]:
        return {
            "fake": running.calls.to_backend(FakeProvider(self._world.cloud, running.clock)),
            "agent": AgentTasks(running.client, running.clock),
        }

    def _announcements(self, running: Running) -> list[FakeEvents]:
        return [FakeEvents(self._world.listings, every=LISTED_EVERY * self._outside.settings.pace)]

    def _host(self, running: Running) -> Host:
        world = self._world
        return running.calls.to_host(HollowHost(world.machine(running.node), world.stage, world.cloud, running.clock))

    def start(self, components: tuple[str, ...], replicas: int) -> None:
        """Raises LookupError for a component that this version does not have."""
        for component in components:
            if component not in available():
                raise LookupError(f"this version of Sickbay has no {component}")
            if component == "agent":
                self._agents_run = True
                for name in self._world.stage.machines:
                    self._start_agent(name)
                continue
            processes = [self._process(component, replica=number) for number in range(replicas)]
            self._controllers[component] = processes
            for process in processes:
                process.start()

    def _process(self, component: str, node: str = "", replica: int = 0) -> Process:
        world = self._world
        token = world.agent_token(node) if component == "agent" else world.controller_token()
        build = BUILDERS[component]
        return Process(
            component,
            self._around,
            lambda running: build(running, self._outside),
            token=token,
            randomness=world.randomness.fork(),
            node=node,
            replica=replica,
        )

    # --- looking

    def runs(self, component: str) -> bool:
        return self._agents_run if component == "agent" else component in self._controllers

    def of(self, component: str, nodes: tuple[str, ...]) -> list[Process]:
        """Raises LookupError where that component is not part of the run, or has no such node."""
        if component != "agent":
            if component not in self._controllers:
                raise LookupError(f"component {component} is not part of this run")
            return list(self._controllers[component])
        if not self._agents_run:
            raise LookupError("component agent is not part of this run")
        for node in nodes:
            if node not in self._agents:
                raise LookupError(f"no agent on node {node!r}")
        return [self._agents[node] for node in nodes or self._agents]

    def metric(self, name: str, labels: dict[str, str]) -> float:
        """The sum of the series of that name which carry all these labels, over all running processes.

        0 where there is none yet: a counter has no series before it counts, and what is down tells nothing. Raises
        LookupError for a name that no process of this run has ever had.
        """
        total, known = 0.0, name in names.METRICS
        for process in self.everybody():
            if process.registry is None:
                continue
            for family in process.registry.collect():
                if not name.startswith(family.name):
                    continue
                if family.type == "histogram" and name == family.name:
                    raise LookupError(f"{name} is a histogram: ask for {name}_count, {name}_sum or {name}_bucket")
                known = known or name in (family.name + suffix for suffix in SUFFIXES.get(family.type, ("",)))
                if process.running is not None:
                    total += sum(
                        s.value for s in family.samples if s.name == name and labels.items() <= s.labels.items()
                    )
        if not known:
            raise LookupError(f"no component of this run has a metric {name}")
        return total

    def everybody(self) -> list[Process]:
        return [*self.controllers(), *self._agents.values()]

    def controllers(self) -> list[Process]:
        return [process for processes in self._controllers.values() for process in processes]

    @staticmethod
    def lease_name(component: str) -> str:
        """The Lease on which replicas of a component agree who leads."""
        return f"sickbay-{component}"

    # --- agents and their machines

    def _joined(self, machine: Machine) -> None:
        machine.listeners.append(lambda what: self._machine_changed(machine, what))
        if self._agents_run:
            self._start_agent(machine.name)

    def _machine_changed(self, machine: Machine, what: str) -> None:
        agent = self._agents.get(machine.name)
        if agent is None:
            return
        if what == "down":
            agent.kill()
        elif what == "up":
            agent.start()

    def _start_agent(self, node: str) -> None:
        if node not in self._agents:
            self._agents[node] = self._process("agent", node)
        if self._world.stage.machines[node].up:
            self._agents[node].start()

    def node_gone(self, node: str) -> None:
        """The agent's pod goes with its Node."""
        agent = self._agents.pop(node, None)
        if agent is not None:
            agent.kill()

    def node_new(self, node: str) -> None:
        if self._agents_run:
            self._start_agent(node)

    def end(self) -> None:
        for process in self.everybody():
            process.kill()
