"""A small hospital: a simulated fleet, the real decide and execute on it, and a detector that tells the truth."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sickbay.api.names import API_VERSION
from sickbay.kube.lease import LeaseTimes
from sickbay.sim.cloud import Behaviour, ScriptLine
from sickbay.sim.components import Settings
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import PODS, REPAIRS, condition_of
from sickbay.sim.history import marks_of
from sickbay.sim.wire import Fault, Request, Weather
from sickbay.sim.world import World
from tests.support.simworld import pod, running_world

STEPS = ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")
NODE = "train-0"
FAULT = "RebootMe"
DETECTOR = "node-problem-detector"

CALM = LeaseTimes(duration=3600, deadline=3000, period=1000)
"""For worlds in which nobody dies: renewals are most of what an idle world costs."""


def fault_type(*ladder: Any, name: str = "test.reboot", **spec: Any) -> dict[str, Any]:
    rungs = [{"action": rung} if isinstance(rung, str) else rung for rung in ladder or ("RebootNode",)]
    body = {
        "class": "GPU", "severity": "Critical", "scope": "Node", "remedy": rungs, "clearsBy": "reboot",
        "match": [{"condition": {"type": FAULT, "status": "True"}}],
        "validation": {"soak": "20s", "ceiling": "10m"},
    }  # fmt: skip
    return {"apiVersion": API_VERSION, "kind": "FaultType", "metadata": {"name": name}, "spec": body | spec}


def rule(**steps: Any) -> dict[str, Any]:
    """The five steps without gates; keyword arguments add to a step."""
    procedure = [{"step": step, **steps.get(step, {})} for step in steps.get("order", STEPS)]
    entries = [{"name": "all", "faults": {}, "procedure": procedure}]
    return {
        "apiVersion": API_VERSION,
        "kind": "RepairRule",
        "metadata": {"name": "automatic"},
        "spec": {"rules": entries},
    }


def pool(**spec: Any) -> dict[str, Any]:
    body = {
        "nodeSelector": {"matchLabels": {"pool": "train"}}, "mode": "Act", "rule": "automatic",
        "maxParallelRepairs": "100%", "maxUnavailable": "100%", "maxParallelValidations": "100%",
        "breaker": {"threshold": "100%", "maxNodes": 100000}, "storm": {"nodes": 0},
        "provider": {"name": "fake"},
    }  # fmt: skip
    return {"apiVersion": API_VERSION, "kind": "RepairPool", "metadata": {"name": "train"}, "spec": body | spec}


class Ward:
    """See the module."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.before: dict[str, Any] = {}
        self.incurable: set[str] = set()
        """Nodes whose fault a reboot does not clear."""

    # --- what happens

    def fault(self, node: str = NODE, status: str = "True") -> None:
        """The detector reports; it clears its condition when the machine has booted."""
        if node not in self.before:
            self.before[node] = marks_of(self.world.node(node))
            machine = self.world.machine(node)
            machine.listeners.append(lambda what: self._machine(node, what))
        self.world.set_condition(node, DETECTOR, {"type": FAULT, "status": status, "reason": "R", "message": "m"})

    def _machine(self, node: str, what: str) -> None:
        standing = condition_of(self.world.node(node), FAULT) if self.world.store.find("nodes", node) else {}
        if what == "up" and node not in self.incurable and standing.get("status") == "True":
            self.fault(node, "False")

    def script(self, *lines: tuple[str, str] | tuple[str, str, int]) -> None:
        """Answers of the back-end: (call, answer) or (call, answer, times)."""
        made = [ScriptLine(line[0], line[1], "by script", line[2] if len(line) > 2 else 1) for line in lines]
        self.world.set_script("train", made, pool=True)

    def run_pod(self, name: str, node: str = NODE, **spec: Any) -> None:
        self.world.person("user").create(PODS, pod(name, node, **spec), "default")

    def protect(self, app: str, name: str = "pdb", **spec: Any) -> None:
        selector = {"matchLabels": {"app": app}}
        budget = {"metadata": {"name": name}, "spec": {"selector": selector, **(spec or {"minAvailable": 1})}}
        self.world.person("user").create("poddisruptionbudgets.policy", budget, "default")

    # --- what is seen

    def repairs(self, node: str = NODE) -> list[dict[str, Any]]:
        return self.world.records_of(REPAIRS, node)

    def repair(self, node: str = NODE) -> dict[str, Any]:
        return self.repairs(node)[-1]

    def status(self, node: str = NODE) -> dict[str, Any]:
        return self.repair(node).get("status") or {}

    def step(self, name: str, node: str = NODE) -> dict[str, Any]:
        return (self.status(node).get("steps") or {}).get(name) or {}

    def phase(self, node: str = NODE) -> str:
        return self.status(node).get("phase", "") if self.repairs(node) else ""

    def at(self, step: str, node: str = NODE) -> bool:
        """True while this step runs."""
        return bool(self.repairs(node)) and self.step(step, node).get("state") == "Running"

    def cordoned(self, node: str = NODE) -> bool:
        return bool(self.world.node(node)["spec"].get("unschedulable"))

    def differences(self, node: str = NODE) -> list[str]:
        return self.before[node].differences(marks_of(self.world.node(node)))

    def lifecycle(self, node: str = NODE) -> dict[str, str]:
        types = ("DrainInProgress", "Drained", "MaintenanceInProgress")
        found = {type_: condition_of(self.world.node(node), type_).get("status") for type_ in types}
        return {type_: status for type_, status in found.items() if status}

    def calls(self, call: str, node: str = NODE) -> int:
        return sum(1 for each in self.world.journal.calls if (each.call, each.node) == (call, node))

    def acts(self, kind: str, node: str = NODE) -> list[float]:
        return [each.at for each in self.world.journal.actions if (each.kind, each.node) == (kind, node)]

    def evicted(self) -> list[str]:
        return [each.target for each in self.world.journal.actions if each.kind == "Evict"]

    def running(self, name: str) -> bool:
        found = self.world.store.find(PODS, name, "default")
        return found is not None and not found["metadata"].get("deletionTimestamp")

    def events(self, reason: str) -> list[str]:
        return [event["message"] for event in self.world.store.list("events") if event["reason"] == reason]

    def now(self) -> float:
        return self.world.loop.time()

    # --- time

    async def sleep(self, seconds: float) -> None:
        await self.world.clock.sleep(seconds)

    async def until(self, condition: Callable[[], bool], within: float = 3600, step: float = 1.0) -> float:
        """Wait for it; returns when it came true. Fails after so many seconds, with the state of the repair."""
        end = self.now() + within
        while not condition():
            assert self.now() < end, f"not within {within:g} s: {self.story()}"
            await self.sleep(step)
        return self.now()

    def story(self) -> str:
        if not self.repairs():
            return "there is no repair"
        status = self.status()
        steps = {name: (s.get("state"), s.get("report")) for name, s in status.get("steps", {}).items()}
        return f"{status.get('phase')} {status.get('message')} {status.get('current')} {steps}"

    async def healed(self, node: str = NODE, within: float = 3600) -> None:
        """The node is back in service, as it was before."""
        await self.until(lambda: self.phase(node) in ("Succeeded", "Cancelled", "Failed"), within)
        assert self.phase(node) == "Succeeded", self.story()
        await self.sleep(1)
        assert self.differences(node) == []
        assert self.lifecycle(node) == {}

    @contextmanager
    def counting(self, component: str = "execute") -> Iterator[list[str]]:
        """Requests of one component while this lasts; the Leases of leaders and watches aside."""
        asked: list[str] = []
        before = Weather.on

        def on(weather: Weather, request: Request) -> list[Fault]:
            if request.component == component and request.resource != "leases" and request.verb != "watch":
                asked.append(f"{request.verb} {request.resource}/{request.subresource}".rstrip("/"))
            return before(weather, request)

        Weather.on = on  # type: ignore[method-assign]
        try:
            yield asked
        finally:
            Weather.on = before  # type: ignore[method-assign]


@asynccontextmanager
async def ward(
    *objects: dict[str, Any],
    nodes: int = 1,
    gpus: int = 1,
    boot: float = 40,
    keeps_keys: bool = True,
    replicas: int = 1,
    seed: int = 0,
    prepare: Callable[[World], None] | None = None,
    agents: bool = False,
    lease: LeaseTimes = CALM,
    **execute: Any,
) -> AsyncIterator[Ward]:
    """A running world with decide and execute; objects given replace the defaults of their kind.

    Further keyword arguments are options of execute.
    """
    settings = Settings(options={"decide": {"lease": lease}, "execute": {"lease": lease, **execute}})
    spec = PoolSpec("train", nodes=nodes, gpus=gpus, boot_seconds=boot, behaviour=Behaviour(keeps_keys=keeps_keys))
    given = {obj["kind"] for obj in objects}
    defaults = [obj for obj in (rule(), pool(), fault_type()) if obj["kind"] not in given]

    def set_up(world: World) -> None:
        for obj in [*defaults, *objects]:
            world.apply(obj, "admin")
        if prepare is not None:
            prepare(world)

    async with running_world(spec, seed=seed, prepare=set_up, settings=settings) as world:
        await world.clock.sleep(1)
        world.start_components(("decide", "execute"), replicas)
        if agents:
            world.start_components(("agent",))
        await world.clock.sleep(4)
        yield Ward(world)
