"""A world: an API server of our own, simulated machines, clouds and Kubernetes around it, and the real Sickbay.

    async def main(loop):
        world = World(loop, seed=7)
        world.fleet.add_pool(PoolSpec("train", nodes=8))
        world.settle()
        world.start_components(("agent", "decide", "execute"))
        await world.clock.sleep(600)

    run_virtual(main, seed=7)

Everything in it happens on the loop's virtual time and follows from the seed. Methods that do something to the world
take effect at once. What goes wrong in a simulated part or in a process of ours is kept in `problems`.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from sickbay.api.names import AGENT_LEASES
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.selectors import label_predicate, parse_labels
from sickbay.apiserver.store import Store
from sickbay.apiserver.transport import DirectTransport
from sickbay.apiserver.writes import Caller
from sickbay.clock import Randomness, rfc3339, rfc3339_micro
from sickbay.sim.beats import Lane, at_rest
from sickbay.sim.cloud import Behaviour, Cloud, ScriptLine
from sickbay.sim.components import NAMESPACE, Settings
from sickbay.sim.fleet import Fleet
from sickbay.sim.hand import LEASES, NAMESPACES, NODES, PODS, REPAIRS, TASKS, Hand, condition_of
from sickbay.sim.history import AGENT, CONTROLLER, History
from sickbay.sim.journal import Journal
from sickbay.sim.life import make_task
from sickbay.sim.listings import Listings
from sickbay.sim.loop import LoopClock, VirtualLoop
from sickbay.sim.machine import Machine
from sickbay.sim.parts import jobset_crd
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.daemonsets import DaemonSets
from sickbay.sim.parts.deployments import Deployments
from sickbay.sim.parts.disruption import Disruption
from sickbay.sim.parts.garbage import GarbageCollector, PodGC
from sickbay.sim.parts.jobs import JobController
from sickbay.sim.parts.jobsets import JobSets
from sickbay.sim.parts.kubelet import Kubelets
from sickbay.sim.parts.lifecycle import NodeLifecycle, TaintEviction
from sickbay.sim.parts.pods import Pods
from sickbay.sim.parts.replicas import ReplicaSets, StatefulSets
from sickbay.sim.parts.scheduler import Scheduler
from sickbay.sim.process import Process, Surroundings
from sickbay.sim.staff import Staff
from sickbay.sim.stage import Stage
from sickbay.sim.stamp import StampedHand
from sickbay.sim.wire import Fault, Scope, Weather

_PARTS: tuple[Callable[[Stage], Part], ...] = (
    TaintEviction,
    Scheduler,
    JobController,
    JobSets,
    ReplicaSets,
    Deployments,
    StatefulSets,
    DaemonSets,
    Disruption,
    PodGC,
    GarbageCollector,
)


class World:
    """See the module. Needs to be made inside the running loop."""

    def __init__(
        self, loop: VirtualLoop, seed: int = 0, settings: Settings | None = None, anonymous: Caller | None = None
    ) -> None:
        self.loop = loop
        loop.set_task_factory(make_task)
        self.clock = LoopClock(loop)
        self.randomness = Randomness(seed)
        self.problems: list[str] = []
        self._known_problems: set[tuple[str, str]] = set()
        self.store = Store(self.clock, self.randomness.fork())
        self.journal = Journal(loop.time)
        self.history = History(self.journal)
        self.store.after_write(self.history.note)
        settings = settings or Settings()
        self.stage = Stage(loop, self.clock, self.randomness.fork(), self.store, self.journal, settings.pace)
        self.kubelets, self.kubelet = Kubelets(self.stage), Pods(self.stage)
        lifecycle = NodeLifecycle(self.stage)
        self.parts: list[Part] = [self.kubelets, self.kubelet, lifecycle, *(make(self.stage) for make in _PARTS)]
        self.cloud = Cloud(self.clock, self.randomness.fork(), self.journal)
        self.listings = Listings()
        self.fleet = Fleet(self.stage, self.cloud, self.kubelets, self.kubelet)
        self.fleet.on_machine.append(lifecycle.adopt)
        self.weather = Weather(self.randomness.fork())
        self.server = ApiServer(self.store, anonymous=anonymous)
        self.server.logs = self.kubelet.log_of
        self.server.bookmarks *= settings.watch_pace
        around = Surroundings(self.clock, self.weather, lambda: DirectTransport(self.server), self.problem)
        around.watch_pace = settings.watch_pace
        if settings.shortcuts:
            around.lane = partial(Lane, self.server, self.weather)
            self.server.told = partial(at_rest, loop)
        self.staff = Staff(self, around, settings)
        self._work: list[asyncio.Task[None]] = []
        self._people: dict[str, Hand] = {}
        self._prepare()

    def _prepare(self) -> None:
        root = self.person("system:admin")
        for namespace in (NAMESPACE, AGENT_LEASES):
            root.create(NAMESPACES, {"metadata": {"name": namespace}})
        for crd in _crds():
            root.create("customresourcedefinitions.apiextensions.k8s.io", crd)

    # --- running

    def settle(self) -> None:
        """Let the simulated parts react to all that has been set up, before any time passes."""
        for _ in range(100):
            busy = [part for part in self.parts if part.busy]
            if not busy:
                return
            for part in busy:
                part.settle()
        raise RuntimeError(f"simulated parts do not come to rest: {', '.join(p.name for p in self.parts if p.busy)}")

    def start(self) -> None:
        """Start the simulated parts; from here on time may pass."""
        for part in self.parts:
            self._work.append(self.loop.create_task(self._guard(part), name=f"sim-{part.name}"))

    async def _guard(self, part: Part) -> None:
        try:
            await part.run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.problem(f"sim-{part.name}", error)

    async def stop(self) -> None:
        """End everything."""
        self.staff.end()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def problem(self, who: str, error: BaseException) -> None:
        """Noted once, however often it comes back."""
        if (who, repr(error)) not in self._known_problems:
            self._known_problems.add((who, repr(error)))
            lines = traceback.format_exception(error)
            self.problems.append(f"at {self.loop.time():g}s {who} ended: {error!r}\n{''.join(lines)}")

    # --- looking

    def machine(self, name: str) -> Machine:
        """Raises LookupError for a node without a machine."""
        machine = self.stage.machines.get(name)
        if machine is None:
            raise LookupError(f"there is no node {name!r} in the fleet")
        return machine

    def node(self, name: str) -> Obj:
        return self.store.get(NODES, name)

    def taints(self, node: str) -> list[Obj]:
        return (self.node(node).get("spec") or {}).get("taints") or []

    def person(self, user: str) -> Hand:
        """A hand of somebody who is none of ours; administrators of the cluster, all of them."""
        if user not in self._people:
            self._people[user] = StampedHand(self.store, user, "kubectl", ("system:masters",))
        return self._people[user]

    def resolve(self, target: str) -> tuple[str, str, str]:
        """Resource, namespace and name of `Kind/name`, `Kind/namespace/name`, `NodeRepair@node` or `NodeTask@node`.

        Raises LookupError where there is no such kind, or no such record for the node.
        """
        kind, at, node = target.partition("@")
        if at:
            return self._latest_of(kind, node)
        kind, _, rest = target.partition("/")
        namespace, _, name = rest.rpartition("/")
        for resource in self.store.resources:
            if resource.kind == kind:
                return resource.key, (namespace or "default") if resource.namespaced else "", name
        raise LookupError(f"the API server knows no kind {kind!r}")

    def _latest_of(self, kind: str, node: str) -> tuple[str, str, str]:
        resource = {"NodeRepair": REPAIRS, "NodeTask": TASKS}.get(kind)
        if resource is None:
            raise LookupError(f"{kind}@{node}: only NodeRepair and NodeTask can be named by their node")
        found = self.records_of(resource, node)
        if not found:
            raise LookupError(f"there is no {kind} of node {node}")
        return resource, "", found[-1]["metadata"]["name"]

    def records_of(self, resource: str, node: str) -> list[Obj]:
        """NodeRepairs or NodeTasks of a node, oldest first."""
        found = [o for o in self.store.list(resource) if ((o.get("spec") or {}).get("node") or {}).get("name") == node]
        return sorted(found, key=lambda obj: self.history.created.get(obj["metadata"]["uid"], 0.0))

    def pods_of(self, namespace: str, name: str, selector: str) -> list[Obj]:
        """Running pods by name or by labels."""
        if name:
            found = self.store.find(PODS, name, namespace)
            pods = [found] if found else []
        else:
            pods = self.store.list(PODS, namespace, labels=selector)
        return [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]

    def was_taken(self, namespace: str, name: str, selector: str) -> bool:
        """Whether a pod of that name or with these labels was evicted or deleted by somebody."""
        fits = label_predicate(parse_labels(selector))
        taken = ((key[1], each.pod) for key, each in self.history.taken.items() if key[0] == namespace)
        return any(known == name if name else fits(pod) for known, pod in taken)

    # --- doing

    def apply(self, manifest: Obj, by: str) -> None:
        """Create, or merge into what is there. Raises Refused, or LookupError for an unknown kind."""
        group = manifest["apiVersion"].partition("/")[0] if "/" in manifest["apiVersion"] else ""
        resource = self.store.resources.by_kind(group, manifest["kind"])
        if resource is None:
            raise LookupError(f"the API server knows no {manifest['apiVersion']} {manifest['kind']}")
        meta = manifest["metadata"]
        namespace = meta.get("namespace", "default") if resource.namespaced else ""
        hand, name = self.person(by), meta.get("name", "")
        if not name or hand.find(resource.key, name, namespace) is None:
            hand.create(resource.key, manifest, namespace)
        else:
            hand.merge(resource.key, name, manifest, namespace)

    def set_condition(self, node: str, by: str, condition: dict[str, str]) -> None:
        """Somebody else's detector reports."""
        now = rfc3339(self.clock.now())
        before = condition_of(self.node(node), condition["type"])
        since = before.get("lastTransitionTime", now) if before.get("status") == condition["status"] else now
        written = {**condition, "lastHeartbeatTime": now, "lastTransitionTime": since}
        detector = Hand(self.store, f"system:serviceaccount:kube-system:{by}", by)
        detector.strategic(NODES, node, {"status": {"conditions": [written]}}, subresource="status")

    def set_script(self, name: str, script: list[ScriptLine], pool: bool) -> None:
        """Replace the script of a pool's back-end, or of one node's."""
        if pool:
            self.cloud.behaviour_of_pool(name).script = script
        else:
            shared = self.cloud.behaviour(name)
            self.cloud.behaviours[name] = Behaviour(shared.fail, script, shared.keeps_keys)

    def delete_node(self, node: str, by: str) -> None:
        self.person(by).delete(NODES, node)
        self.staff.node_gone(node)

    def recreate_node(self, node: str, provider_id: str, keep_boot: bool) -> None:
        self.fleet.recreate(node, provider_id, keep_boot)
        self.staff.node_new(node)

    def add_nodes(self, pool: str, count: int) -> None:
        self.fleet.grow(pool, count)

    # --- our own processes

    def start_components(self, components: tuple[str, ...], replicas: int = 1) -> None:
        self.staff.start(components, replicas)

    def runs(self, component: str) -> bool:
        return self.staff.runs(component)

    def processes_of(self, component: str, nodes: tuple[str, ...]) -> list[Process]:
        return self.staff.of(component, nodes)

    def leading_process(self, component: str) -> Process | None:
        lease = self.store.find(LEASES, self.staff.lease_name(component), NAMESPACE)
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity") or ""
        for process in self.staff.of(component, ()):
            if holder.rpartition("_")[0] == process.name:
                return process
        return None

    def steal_lease(self, component: str) -> None:
        """Another holder takes the Lease, and nobody tells the one that held it."""
        name = self.staff.lease_name(component)
        lease = self.store.find(LEASES, name, NAMESPACE)
        if lease is None:
            raise LookupError(f"{component} holds no Lease yet")
        now = rfc3339_micro(self.clock.now())
        spec = lease["spec"]
        patch = {
            "holderIdentity": "somebody-else",
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1,
        }
        self.person("somebody-else").merge(LEASES, name, {"spec": patch}, NAMESPACE)

    def token(self, user: str, node: str = "") -> str:
        """A token for one of our identities; an agent's is bound to its node."""
        token = f"token:{user}:{node}"
        extra = {"authentication.kubernetes.io/node-name": (node,)} if node else {}
        self.server.authenticator.add(token, Caller(user, extra=extra))
        return token

    def controller_token(self) -> str:
        return self.token(CONTROLLER)

    def agent_token(self, node: str) -> str:
        return self.token(AGENT, node)

    # --- the way to the API server

    def add_fault(self, fault: Fault, lasting: float | None) -> None:
        self.weather.faults.append(fault)
        if lasting is not None:
            self.loop.call_later(lasting, self._end_fault, fault)

    def _end_fault(self, fault: Fault) -> None:
        if fault in self.weather.faults:
            self.weather.faults.remove(fault)

    def cut_watches(self, scope: Scope, lasting: float | None = None) -> None:
        """Break the open watches; while it lasts no new one can be opened."""
        self.weather.cut(scope)
        if lasting is not None:
            self.add_fault(Fault(cuts=True, scope=scope), lasting)

    def compact_history(self, lasting: float | None = None) -> None:
        """Forget what was before this moment; where it lasts, also what was before its end."""
        self.store.compact()
        if lasting is not None:
            self.loop.call_first_at(self.loop.time() + lasting, self.store.compact)


def _crds() -> list[dict[str, Any]]:
    from sickbay.api.crds import manifests

    return [*manifests(), jobset_crd.manifest()]
