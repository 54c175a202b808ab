"""One test's world on the real control plane: its nodes, its pool, our processes, and people.

Our processes act under their own identities: the controller's service account, and the agent's, bound to the pod of
its DaemonSet on the node. People are the static users alice (who also writes pools and rules) and dev. Only what
stands for the rest of a cluster (workloads, the deletion of a Node, cleaning up) is done as admin. At its end each
world checks that no process of ours broke down or wrote under another name than its own.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2

from sickbay.api import kinds
from sickbay.api.node_repair import NodeRepair
from sickbay.clock import Randomness, SystemClock, rfc3339
from sickbay.convert.controller import ConvertController, ConvertOptions
from sickbay.decide.controller import DecideController, DecideOptions
from sickbay.detect.agent import Agent, AgentOptions
from sickbay.execute.controller import ExecuteController, ExecuteOptions
from sickbay.kube import errors
from sickbay.kube import nodes as node_writes
from sickbay.kube.client import Client
from sickbay.providers.agent_tasks import AgentTasks
from sickbay.providers.base import Provider
from sickbay.recover.controller import RecoverController, RecoverOptions
from sickbay.sim.cloud import Cloud, FakeProvider
from sickbay.sim.journal import Journal
from sickbay.sim.listings import FakeEvents, Listings
from sickbay.sim.machine import Machine
from tests.realcluster import agents, objects
from tests.realcluster.people import Person
from tests.realcluster.view import SOON, View
from tests.support.audit import Entry
from tests.support.controlplane import AGENT, CONTROLLER, NAMESPACE, ControlPlane
from tests.support.eventually import eventually
from tests.support.hollow import PlaneKubelets
from tests.support.product import QUICK, Process

BOOT_SECONDS = 1.0

_numbers = itertools.count(1)


class World(View):
    """See the module."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.name = f"w{next(_numbers)}"
        self.clock, self.randomness = SystemClock(), Randomness()
        self.admin = Client(plane.http_client(), "test", self.clock)
        super().__init__(self.admin, self.name, self.clock, self.randomness)
        self.alice, self.dev = Person(plane, "alice"), Person(plane, "dev")
        self.machines: dict[str, Machine] = {}
        self.journal = Journal(self.clock.monotonic)
        self.cloud = Cloud(self.clock, self.randomness.fork(), self.journal)
        self.cloud.machines = self.machines
        self.listings = Listings()
        self.kubelets = PlaneKubelets(plane, self.clock, self.randomness.fork())
        self._processes: list[Process] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._audited = len(plane.audit_log())

    async def __aenter__(self) -> World:
        self._tasks = [asyncio.create_task(self.kubelets.run()), asyncio.create_task(self.run())]
        await self.synced()
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes:
            await process.stop()
        await self._remove_what_is_ours()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.admin.aclose()
        problems = [problem for process in self._processes for problem in process.problems]
        assert not problems, problems
        wrong = [e for e in self.requests() if e.ours and e.user != _user(e.agent)]
        assert not wrong, wrong

    async def _remove_what_is_ours(self) -> None:
        for repair in self._repairs.all():
            if repair.spec.pool.name == self.name or repair.spec.node.name in self.machines:
                gone = {"metadata": {"finalizers": None}}
                await _unless_gone(self.admin.patch_merge(kinds.NODE_REPAIR, repair.metadata.name, gone))
                await _unless_gone(self.admin.delete(kinds.NODE_REPAIR, repair.metadata.name))
        for kind, name in (
            (kinds.REPAIR_POOL, self.name),
            (kinds.REPAIR_RULE, self.name),
            (kinds.FAULT_TYPE, objects.fault_name(self.name)),
        ):
            await _unless_gone(self.admin.delete(kind, name))
        for name in self.machines:
            await _unless_gone(self.admin.delete(kinds.NODE, name))

    # --- what there is

    async def nodes(self, count: int, gpus: int = 8, **more: Any) -> list[str]:
        """Nodes of the pool, ready, each with the agent's pod running."""
        made = [f"{self.name}-{len(self.machines) + k}" for k in range(count)]
        for name in made:
            machine = Machine(name, gpus, self.clock, self.randomness.fork(), self.name, BOOT_SECONDS)
            self.machines[name] = machine
            self.kubelets.join(machine, {"pool": self.name}, **more)
        patience = 3 * SOON  # the DaemonSet's controller backs off for half a minute when its server was away
        await eventually(
            lambda: all(self.settled(name) for name in made), patience, f"{made} are ready with their agents"
        )
        return made

    def settled(self, name: str) -> bool:
        """Ready, free of start-up taints, the agent's pod running."""
        pod = self.pod(agents.pod_on(name, self.pods()), NAMESPACE)
        node = self.typed(name)
        return node.ready and not any("not-ready" in t.key for t in node.taints) and pod["status"]["phase"] == "Running"

    async def pool(self, *steps: str | dict[str, Any], pool: dict[str, Any] | None = None, **fault: Any) -> None:
        """Fault type, rule and pool of this world, written by alice. `steps` is the rule's procedure, = all five."""
        made = (
            objects.fault_type(self.name, fault),
            objects.rule(self.name, steps),
            objects.pool(self.name, pool or {}),
        )
        await self.alice.apply(*made)

    async def workload(self, *manifests: dict[str, Any]) -> None:
        """Objects of those who use the cluster."""
        await Person(self.plane, "admin").apply(*manifests)

    async def start(self, *components: str) -> list[Process]:
        """Processes of ours, one of each; decide and execute where none is named."""
        made = [self.process(component) for component in components or ("decide", "execute")]
        for each in made:
            each.start()
        return made

    def process(self, component: str) -> Process:
        """One more process of ours, not started yet."""
        main = {
            "decide": self._decide, "execute": self._execute, "recover": self._recover, "convert": self._convert,
        }[component]  # fmt: skip
        identity = f"{self.name}-{len(self._processes)}"
        made = Process(self.plane, component, identity, self.plane.controller_token, main)
        self._processes.append(made)
        return made

    def run_agent(self, node: str) -> agents.Host:
        """The real agent on a node: started now, dead with its machine, there again after each boot."""
        machine, memory = self.machines[node], agents.HostMemory(self.machines[node], self.clock)

        async def main(client: Client, clock: SystemClock, randomness: Randomness, identity: str) -> None:
            await Agent(client, clock, randomness, AgentOptions(node, identity), memory.parts()).run()

        made = Process(self.plane, "agent", f"{node}-agent", lambda: self.agent_token(node), main)
        self._processes.append(made)

        def changed(what: str) -> None:
            if what == "down":
                made.freeze()
                self._tasks.append(asyncio.create_task(made.crash()))
            elif what == "up":
                self._tasks.append(asyncio.create_task(self._reborn(made)))

        machine.listeners.append(changed)
        made.start()
        return memory.host

    @staticmethod
    async def _reborn(process: Process) -> None:
        await process.crash()
        process.start()

    async def leads(self, process: Process) -> None:
        """Wait until a process holds the Lease of its component."""

        async def held() -> bool:
            lease = await self.admin.get(kinds.LEASE, f"sickbay-{process.component}", NAMESPACE)
            return (lease.spec.holder_identity or "").startswith(f"{process.identity}_")

        await eventually(held, SOON, f"{process.identity} leads {process.component}")

    async def _decide(self, client: Client, clock: SystemClock, randomness: Randomness, identity: str) -> None:
        options = DecideOptions(identity=identity, namespace=NAMESPACE, lease=QUICK)
        await DecideController(client, clock, randomness, options).run()

    async def _execute(self, client: Client, clock: SystemClock, randomness: Randomness, identity: str) -> None:
        providers: dict[str, Provider] = {"fake": FakeProvider(self.cloud, clock), "agent": AgentTasks(client, clock)}
        options = ExecuteOptions(identity=identity, namespace=NAMESPACE, lease=QUICK)
        await ExecuteController(client, clock, randomness, providers, options).run()

    async def _recover(self, client: Client, clock: SystemClock, randomness: Randomness, identity: str) -> None:
        options = RecoverOptions(identity=identity, namespace=NAMESPACE, lease=QUICK)
        await RecoverController(client, clock, randomness, options).run()

    async def _convert(self, client: Client, clock: SystemClock, randomness: Randomness, identity: str) -> None:
        """Agents renew their Leases every 30 s; here one counts as silent after 4."""
        options = ConvertOptions(identity=identity, namespace=NAMESPACE, lease=QUICK, look=0.5, patience=4.0)
        await ConvertController(client, clock, randomness, options, providers=[FakeEvents(self.listings, 0.5)]).run()

    # --- what happens

    async def fault(self, node: str, status: str = "True") -> None:
        """The detector on a node says that the fault of this world is there, or not; under the agent's identity."""
        kind = objects.condition_type(self.name)
        async with self.agent(node) as agent:
            seen = await agent.get(kinds.NODE, node)
            now = rfc3339(self.clock.now())
            condition = node_writes.condition(seen, kind, status, "Test", "by the test", now)
            if condition is not None:
                await node_writes.set_conditions(agent, node, [condition], uid=seen.uid)

    async def annotate(self, pod: dict[str, Any], key: str, value: str) -> None:
        """The job writes on its own pod."""
        meta = pod["metadata"]
        patch = {"metadata": {"annotations": {key: value}}}
        await self.admin.patch_merge(kinds.POD, meta["name"], patch, meta["namespace"])

    def cured_by_reboot(self, node: str) -> None:
        """From now on the fault is gone once the machine has booted, and the detector says so."""

        def booted(what: str) -> None:
            if what == "up":
                self._tasks.append(asyncio.create_task(self._cured(node)))

        self.machines[node].listeners.append(booted)

    async def _cured(self, node: str) -> None:
        """Like any detector it says so again while the API server is away."""
        while True:
            try:
                return await self.fault(node, "False")
            except (errors.ApiError, httpx2.HTTPError, LookupError, RuntimeError):
                await self.clock.sleep(0.5)

    @asynccontextmanager
    async def agent(self, node: str) -> AsyncIterator[Client]:
        """A client with the identity of the agent on a node."""
        token = await asyncio.to_thread(self.agent_token, node)
        client = Client(self.plane.http_client_for_token(token), "sickbay-agent", self.clock)
        try:
            yield client
        finally:
            await client.aclose()

    def agent_token(self, node: str) -> str:
        return self.plane.pod_token(NAMESPACE, AGENT, agents.pod_on(node, self.pods()))

    async def replace(self, node: str, labels: dict[str, str]) -> None:
        """The Node is deleted, and another machine registers under its name."""
        self.kubelets.leave(node)
        await self.admin.delete(kinds.NODE, node)
        self.machines[node].renew()
        self.kubelets.join(self.machines[node], {"pool": self.name, **labels})
        await eventually(lambda: self.settled(node), SOON, f"the new {node} is ready")

    async def cured(self, node: str) -> NodeRepair:
        """Let the fault go and the repair come to its end, so that nothing of it is left for later."""
        await self.fault(node, "False")
        return await self.closed(node)

    async def looked_again(self, decide: Process, spare: str) -> None:
        """Restart decide, and return when it has judged every node afresh: the spare, the last of them, is taken up.

        What has not happened by then does not happen of itself.
        """
        await decide.stop()
        await self.fault(spare)
        decide.start()
        await self.until(spare, lambda r: True, f"{spare} is taken up")

    # --- what was done

    def requests(self) -> list[Entry]:
        """All that was recorded since this world began: everybody's writes, and each request of ours."""
        return self.plane.audit_log()[self._audited :]

    def written(self) -> list[Entry]:
        """What anybody wrote to nodes, pods, Leases and our kinds since this world began."""
        return [entry for entry in self.requests() if entry.write]

    def touched(self, node: str) -> list[Entry]:
        """Writes of our controllers to a Node that the server carried out."""
        writes = [e for e in self.written() if e.resource == "nodes" and e.name == node and e.done]
        return [e for e in writes if e.agent in ("sickbay-decide", "sickbay-execute")]

    def evicted(self) -> list[str]:
        """Pods whose eviction by us was granted."""
        return [e.name for e in self.written() if e.subresource == "eviction" and e.ours and e.done]

    async def events(self, node: str, reason: str) -> list[str]:
        """Messages of the Events about a node with that reason."""
        found = await self.admin.list(kinds.EVENT, "default", fields=f"involvedObject.name={node},reason={reason}")
        return [event.message for event in found.items]

    def calls(self, node: str, call: str = "reboot") -> int:
        """How often the back-end was asked for an act."""
        return sum(1 for each in self.journal.calls if (each.node, each.call) == (node, call))


def _user(agent: str) -> str:
    """Who a process of ours must be, by its User-Agent."""
    return f"system:serviceaccount:{NAMESPACE}:{AGENT if agent == 'sickbay-agent' else CONTROLLER}"


async def _unless_gone(call: Any) -> None:
    with suppress(errors.NotFound):
        await call
