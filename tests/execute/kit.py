"""One node, one repair, our own API server, and a leader's shift that is driven look by look."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx2
import msgspec

from sickbay.api import kinds, names
from sickbay.api.crds import manifests
from sickbay.api.node_repair import NodeRepair
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.store import MERGE, STRATEGIC, Store
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import SYSTEM
from sickbay.clock import Randomness, rfc3339
from sickbay.execute.backends import Backends
from sickbay.execute.controller import ExecuteOptions
from sickbay.execute.governor import Governor, Limits
from sickbay.execute.hooks.call import Caller
from sickbay.execute.hooks.endpoints import Endpoint
from sickbay.execute.hooks.runner import Outside
from sickbay.execute.pace import Pace
from sickbay.execute.shift import Shift, Tools
from sickbay.kube.client import Client
from sickbay.kube.events import EventRecorder
from sickbay.kube.informer import Informer
from sickbay.kube.leadership import Leadership
from sickbay.providers.base import Act, ActState, Observation
from tests.support.virtual import clock as loop_clock

NODES, REPAIRS, PODS, POOLS = "nodes", "noderepairs.sickbay.dev", "pods", "repairpools.sickbay.dev"
FOREVER = 1e9


class Backend:
    """A back-end that answers by script: an exception is raised, anything else is the answer.

    `submits` and `observations` are used up one by one; after them a submission is accepted, and an observation says
    Running. `during` is awaited in the middle of each submission.
    """

    def __init__(self, keeps_keys: bool = True, does: tuple[str, ...] = ("RebootNode", "PowerCycle")) -> None:
        self.keeps_keys = keeps_keys
        self.does = does
        self.submits: list[Exception | None] = []
        self.observations: list[Observation | Exception] = []
        self.acts: list[Act] = []
        self.looks: list[Act] = []
        self.withdrawn: list[str] = []
        self.during: Callable[[Act], Awaitable[None]] | None = None

    def supports(self, action: str) -> bool:
        return action in self.does

    async def submit(self, act: Act) -> None:
        self.acts.append(act)
        if self.during is not None:
            await self.during(act)
        answer = self.submits.pop(0) if self.submits else None
        if answer is not None:
            raise answer

    async def observe(self, act: Act) -> Observation:
        self.looks.append(act)
        answer = self.observations.pop(0) if self.observations else Observation(ActState.RUNNING, "under way")
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def sent(self) -> list[str]:
        return [act.key for act in self.acts]


class Withdrawing(Backend):
    async def withdraw(self, act: Act) -> None:
        self.withdrawn.append(act.key)


@dataclass
class Wire(httpx2.AsyncBaseTransport):
    """The way to the server. `refuse` may answer in its place, `lose` may drop an answer, `before` runs first."""

    inner: httpx2.AsyncBaseTransport
    asked: list[str] = field(default_factory=list)
    refuse: Callable[[httpx2.Request], int] = lambda request: 0
    lose: Callable[[httpx2.Request], bool] = lambda request: False
    before: Callable[[httpx2.Request], None] = lambda request: None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.before(request)
        self.asked.append(what(request))
        code = self.refuse(request)
        if code:
            body = {"kind": "Status", "status": "Failure", "code": code, "message": "refused by the test"}
            return httpx2.Response(code, json=body, request=request)
        response = await self.inner.handle_async_request(request)
        if self.lose(request):
            await response.aclose()
            raise httpx2.ReadError("the answer was lost")
        return response


def what(request: httpx2.Request) -> str:
    """`PATCH noderepairs/status`, `GET nodes`, `POST pods/eviction`: verb and resource of a request."""
    parts = request.url.path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    verb = request.method if request.method != "GET" or len(rest) > 1 else "LIST"
    return f"{verb} {rest[0]}" + (f"/{rest[2]}" if len(rest) > 2 else "")


class Term(Leadership):
    """A term that a test can end."""

    def __init__(self, clock: Any, term: int) -> None:
        super().__init__(clock, term, FOREVER)


class Bench:
    """See the module."""

    def __init__(self, **node: Any) -> None:
        self.clock = loop_clock()
        self.store = Store(self.clock, Randomness(7))
        self.server = ApiServer(self.store, anonymous=SYSTEM)
        for crd in manifests():
            self.store.create("customresourcedefinitions.apiextensions.k8s.io", crd)
        for namespace in ("train",):
            self.store.create("namespaces", {"metadata": {"name": namespace}})
        self.backend = Backend()
        self.agent = Withdrawing(does=("RestartService", "ResetGPU", "RebootNode"))
        self.wire = Wire(InProcessTransport(self.server))
        self.governor = Governor(self.clock, Limits())
        self.pace = Pace(self.clock, 0)
        self.endpoints: dict[str, Endpoint] = {}
        self.outside: httpx2.AsyncBaseTransport = httpx2.MockTransport(lambda request: httpx2.Response(500))
        self.terms: list[Term] = []
        self.add_node(**node)
        self.add_pool()

    # --- the world

    def add_node(self, name: str = "n1", boot: str = "boot-1", **more: Any) -> dict[str, Any]:
        status = {
            "conditions": [{"type": "Ready", "status": "True"}, *more.pop("conditions", [])],
            "nodeInfo": {"bootID": boot},
            "capacity": {"nvidia.com/gpu": "8"},
            "allocatable": {"nvidia.com/gpu": "8"},
        }
        meta = {"name": name, "labels": more.pop("labels", {}), "annotations": more.pop("annotations", {})}
        return self.store.create(NODES, {"metadata": meta, "spec": more, "status": status})

    def add_pool(self) -> None:
        """The pool of all nodes but those that are labelled away."""
        every = {"matchExpressions": [{"key": "example.com/other", "operator": "DoesNotExist"}]}
        spec = {"nodeSelector": every, "mode": "Act", "rule": "all"}
        self.store.create(POOLS, {"metadata": {"name": "train"}, "spec": spec})

    def node(self, name: str = "n1") -> dict[str, Any]:
        return self.store.get(NODES, name)

    def status(self, **status: Any) -> None:
        """What the kubelet, or a detector, writes into the node's status."""
        self.store.patch(NODES, "n1", {"status": status}, STRATEGIC, subresource="status")

    def boots(self, boot: str = "boot-2") -> None:
        self.status(nodeInfo={"bootID": boot})

    def ready(self, status: str) -> None:
        self.status(conditions=[{"type": "Ready", "status": status}])

    def merge(self, patch: dict[str, Any], resource: str = NODES, name: str = "n1", sub: str = "") -> None:
        self.store.patch(resource, name, patch, MERGE, subresource=sub)

    def hold(self, level: str, name: str = "stop") -> None:
        spec = {"scope": {"all": True}, "level": level, "reason": "a test"}
        self.store.create("holds.sickbay.dev", {"metadata": {"name": name}, "spec": spec})

    def release(self, name: str = "stop") -> None:
        self.store.delete("holds.sickbay.dev", name)

    # --- the record

    def open(self, step: str = "Repair", action: str = "RebootNode", timeout: float = 900, **more: Any) -> NodeRepair:
        """A repair that stands at this step. What comes before it is done, on the node too."""
        order = ["Quarantine", "Drain", "Repair", "Validate", "Unquarantine"]
        plan = more.pop("plan", order)
        steps = [{"step": name, **more.pop(name, {})} for name in plan]
        uid = self.node()["metadata"]["uid"]
        spec = {
            "node": {"name": "n1", "uid": uid, "bootID": "boot-1", "providerID": "p1"},
            "pool": {"name": "train"},
            "faults": more.pop("faults", [{"type": "test.fault", "clearedAt": None}]),
            "plan": {"approvalPrefix": "intervention.sickbay.dev", "provider": {"name": "fake"}, "steps": steps},
        }
        self.store.create(REPAIRS, {"metadata": {"name": "r1", "finalizers": [names.FINALIZER]}, "spec": spec})
        before = plan[: plan.index(step)] if step in plan else []
        if "Quarantine" in before:
            self.mark()
        self.ask(step, action=action, timeout=timeout, done=before, **more)
        return self.repair()

    def mark(self) -> None:
        """The marks that a Quarantine has left."""
        meta = self.store.get(REPAIRS, "r1")["metadata"]
        mark = {"repair": "r1", "uid": meta["uid"], "nodeUID": self.node()["metadata"]["uid"], "at": "", "prior": {}}
        annotations = {names.QUARANTINE: msgspec.json.encode(mark).decode()}
        self.merge({"metadata": {"annotations": annotations}, "spec": {"unschedulable": True}})

    def ask(self, step: str, attempt: int = 1, timeout: float = 900, done: Any = (), **more: Any) -> None:
        """decide lets a step run."""
        now = self.clock.now()
        deadline = rfc3339(now + timedelta(seconds=timeout))
        action = more.pop("action", "")
        action = action if step == "Repair" else ""
        current = {"step": step, "attempt": attempt, "action": action, "deadline": deadline, **more.pop("current", {})}
        steps = {name: {"state": "Done"} for name in done} | {step: {"state": "Running", "started": rfc3339(now)}}
        for name, extra in more.pop("states", {}).items():
            steps[name] = {**steps.get(name, {}), **extra}
        status = {"phase": "Running", "current": current, "steps": steps, **more}
        self.merge({"status": status}, REPAIRS, "r1", "status")

    def repair(self) -> NodeRepair:
        return msgspec.convert(self.store.get(REPAIRS, "r1"), NodeRepair)

    @property
    def report(self) -> dict[str, Any]:
        status = self.store.get(REPAIRS, "r1")["status"]
        return status["steps"][status["current"]["step"]].get("report") or {}

    @property
    def key(self) -> str:
        repair = self.repair()
        return f"{repair.metadata.uid}/{repair.status.current.step}/{repair.status.current.attempt}"

    # --- the leader

    def shift(self, term: int = 0) -> Driven:
        """A new leader's shift; its caches are empty until they are read."""
        self.terms.append(Term(self.clock, term or len(self.terms) + 1))
        return Driven(self, self.terms[-1])


class Driven:
    """A shift whose looks a test drives."""

    def __init__(self, bench: Bench, term: Term) -> None:
        self.bench, self.term = bench, term
        clock, randomness = bench.clock, Randomness(3)
        http = httpx2.AsyncClient(transport=bench.wire, base_url="http://api")
        client = Client(http, "sickbay-execute", clock)
        options = ExecuteOptions()

        def informer(kind: Any, **more: Any) -> Informer[Any]:
            return Informer(client, kind, clock, randomness, resync=options.resync, **more)

        self.recorder = EventRecorder(client, clock, randomness, component="sickbay-execute")
        self.tools = Tools(
            client=client,
            clock=clock,
            backends=Backends({"fake": bench.backend, "agent": bench.agent}),
            governor=bench.governor,
            pace=bench.pace,
            recorder=self.recorder,
            nodes=informer(kinds.NODE),
            repairs=informer(kinds.NODE_REPAIR, indexes={"node": lambda repair: [repair.spec.node.name]}),
            pools=informer(kinds.REPAIR_POOL),
            holds=informer(kinds.HOLD),
            hooks=Outside(bench.endpoints),
            caller=Caller(clock, lambda endpoint: bench.outside),
        )
        self.shift = Shift(self.tools, term)

    async def read(self) -> None:
        """The caches catch up, without a request that a test would count."""
        for informer, resource in (
            (self.tools.nodes, NODES),
            (self.tools.repairs, REPAIRS),
            (self.tools.pools, "repairpools.sickbay.dev"),
            (self.tools.holds, "holds.sickbay.dev"),
        ):
            objects = [msgspec.convert(o, informer.kind.struct) for o in self.bench.store.list(resource)]
            informer.store.replace(objects, None)

    async def look(self, read: bool = True) -> float | None:
        """One look, as the queue would have it. Returns the seconds until the next."""
        if read:
            await self.read()
        repair = self.tools.repairs.get("r1")
        assert repair is not None
        return await self.shift.carry_on(repair)

    async def looks(self, until: Callable[[], bool], most: int = 400) -> None:
        """Look again whenever the shift asks for it."""
        for _ in range(most):
            again = await self.look()
            if until():
                return
            assert again is not None, f"it gave up: {self.bench.report}"
            await self.bench.clock.sleep(again)
        raise AssertionError(f"still not, after {most} looks: {self.bench.report}")

    async def to_end(self) -> dict[str, Any]:
        """Until the attempt has its final report, which is returned."""
        await self.looks(lambda: self.bench.report.get("state") in ("Done", "Failed", "Unknown"))
        return self.bench.report

    async def events(self) -> list[tuple[str, str]]:
        """Reasons and messages of the Events on the node."""
        await self.recorder.flush()
        found = self.bench.store.list("events")
        return [(e["reason"], e["message"]) for e in found]
