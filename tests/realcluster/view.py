"""What a test sees of the cluster: watches of its own, and short ways to ask them.

Nothing here asks the server at the moment of the question; a test waits (bounded) until its watches show what it looks
for. `tape` keeps every version of the NodeRepairs of this world that the watch brought.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from sickbay.api import kinds, names
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.clock import Clock, Randomness
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer
from tests.support.eventually import eventually

SOON = 30.0
"""Seconds within which what has to happen happens, on a machine that is busy with other things too."""

PREFIX = names.APPROVAL_PREFIXES["sickbay"]
Obj = dict[str, Any]


class View:
    """See the module. `run` until cancelled; `synced` returns once everything is seen."""

    def __init__(self, admin: Client, world: str, clock: Clock, randomness: Randomness) -> None:
        self._world = world
        self._nodes: Informer[Obj] = Informer(admin, kinds.NODE.raw, clock, randomness.fork())
        self._repairs: Informer[NodeRepair] = Informer(admin, kinds.NODE_REPAIR, clock, randomness.fork())
        self._pods: Informer[Obj] = Informer(admin, kinds.POD.raw, clock, randomness.fork())
        self.tape: list[NodeRepair] = []
        self.on_version: list[Callable[[NodeRepair], None]] = []
        """Called with every version of a repair of this world, at the moment the watch brings it."""
        self.on_pod: list[Callable[[], None]] = []
        """Called at every change of a pod."""
        self._repairs.on_change(self._record)
        self._pods.on_change(self._pod_changed)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for each in (self._nodes, self._repairs, self._pods):
                group.create_task(each.run())

    async def synced(self) -> None:
        for each in (self._nodes, self._repairs, self._pods):
            await each.synced.wait()

    def _record(self, _old: NodeRepair | None, new: NodeRepair | None) -> None:
        if new is not None and new.spec.pool.name == self._world:
            self.tape.append(new)
            for listener in list(self.on_version):
                listener(new)

    def _pod_changed(self, _old: Obj | None, _new: Obj | None) -> None:
        for listener in list(self.on_pod):
            listener()

    # --- nodes and pods

    def node(self, name: str) -> Obj:
        """Raises LookupError while there is none."""
        found = self._nodes.get(name)
        if found is None:
            raise LookupError(f"no node {name}")
        return found

    def typed(self, name: str) -> Node:
        return msgspec.convert(self.node(name), Node)

    def cordoned(self, name: str) -> bool:
        return self.typed(name).unschedulable

    def quarantined(self, name: str) -> bool:
        """Cordoned with our mark."""
        return self.cordoned(name) and names.QUARANTINE in self.typed(name).annotations

    def condition(self, name: str, kind: str) -> str:
        """Status of a condition; "" where the node has none of that type."""
        found = self.typed(name).condition(kind)
        return found.status if found is not None else ""

    def label(self, name: str, step: str) -> str:
        """The value of the approval label of a step; "" where it does not stand on the node."""
        return self.typed(name).labels.get(names.approval_label(PREFIX, step), "")

    def marks(self, name: str) -> Obj:
        """What of a node must be after us as it was before: labels, annotations, taints, cordon, lifecycle."""
        node = self.typed(name)
        taints = {(t.key, t.value, t.effect) for t in node.taints if not t.key.startswith("node.kubernetes.io/")}
        lifecycle = {c.type for c in node.conditions if c.type in names.LIFECYCLE_CONDITIONS}
        marks = {"labels": node.labels, "annotations": node.annotations, "taints": taints}
        return marks | {"unschedulable": node.unschedulable, "lifecycle": lifecycle}

    def pods(self) -> list[Obj]:
        return self._pods.all()

    def pod(self, name: str, namespace: str = "default") -> Obj:
        """Raises LookupError while there is none."""
        found = self._pods.get(name, namespace)
        if found is None:
            raise LookupError(f"no pod {namespace}/{name}")
        return found

    def places(self, app: str) -> list[str]:
        """The nodes on which running pods of a workload are, by its label `app`; none that is on its way out."""
        return [
            pod["spec"]["nodeName"]
            for pod in self._pods.all()
            if (pod["metadata"].get("labels") or {}).get("app") == app
            and pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        ]

    # --- repairs

    def repairs(self, node: str) -> list[NodeRepair]:
        """All repairs on record for a node of this name, the oldest first."""
        found = [repair for repair in self._repairs.all() if repair.spec.node.name == node]
        return sorted(found, key=lambda repair: repair.metadata.creation_timestamp or "")

    def repair(self, node: str) -> NodeRepair:
        """The latest one. Raises LookupError while there is none."""
        found = self.repairs(node)
        if not found:
            raise LookupError(f"no repair of {node}")
        return found[-1]

    def ran(self, node: str) -> list[str]:
        """The steps that were seen running, in their order."""
        seen: list[str] = []
        for repair in self.tape:
            step = repair.status.current.step
            running = bool(step) and repair.status.step(step).state == "Running"
            if repair.spec.node.name == node and running and step not in seen:
                seen.append(step)
        return seen

    def ever(self, node: str, step: str, state: str) -> bool:
        """Whether a step of a repair of this node was ever in that state."""
        return any(r.spec.node.name == node and r.status.step(step).state == state for r in self.tape)

    # --- waiting

    async def until(
        self, node: str, check: Callable[[NodeRepair], bool], what: str, seconds: float = SOON
    ) -> NodeRepair:
        """Wait until the latest repair of a node passes a check."""

        def found() -> NodeRepair | None:
            repair = self.repair(node)
            return repair if check(repair) else None

        seen = await eventually(found, seconds, lambda: f"{what}; {self.story(node)}")
        assert isinstance(seen, NodeRepair)
        return seen

    async def phase(self, node: str, phase: str, seconds: float = SOON) -> NodeRepair:
        return await self.until(node, lambda r: r.status.phase == phase, f"{node} in {phase}", seconds)

    async def running(self, node: str, step: str, seconds: float = SOON) -> NodeRepair:
        """Wait until a step of its repair runs."""
        return await self.until(node, lambda r: r.status.step(step).state == "Running", f"{step} of {node}", seconds)

    async def closed(self, node: str, seconds: float = SOON) -> NodeRepair:
        """Wait until its latest repair has ended and holds nothing any more."""
        over = await self.until(node, lambda r: r.ended and not r.metadata.finalizers, f"the end on {node}", seconds)
        assert not any(
            r.status.phase in ("Running", "WaitingApproval", "WaitingSlot", "Parked", "NeedsHuman")
            and not r.status.current.deadline
            for r in self.tape
        ), "a wait without a deadline"
        return over

    async def asked(self, node: str, step: str, seconds: float = SOON) -> None:
        """Wait until the question whether a step may run stands on the node."""
        await eventually(
            lambda: self.label(node, step) == "inquiring", seconds, lambda: f"{step} asked for; {self.story(node)}"
        )

    def story(self, node: str) -> str:
        """Where the latest repair of a node stands, for a failure's text."""
        try:
            status = self.repair(node).status
        except LookupError as error:
            return str(error)
        at = f"{status.current.step}/{status.current.attempt}"
        steps = {name: (step.state, step.report.state, step.report.message) for name, step in status.steps.items()}
        return f"{status.phase} {status.outcome} {status.needs} at {at}: {status.message}; {steps}"
