"""The controller around the steps: caches, the queue of repairs that have something to do, the lease.

It works on repairs whose record asks for something (a step in state Running), several side by side, each by one worker
at a time; what is done with one is the business of the `shift`, one for each term of leadership.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from sickbay.api import kinds
from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import Step
from sickbay.clock import Clock, Randomness
from sickbay.execute import guard
from sickbay.execute.attempt import is_final
from sickbay.execute.backends import Backends
from sickbay.execute.governor import Governor, Limits
from sickbay.execute.hooks.call import Caller, Transports, over_tls
from sickbay.execute.hooks.endpoints import Endpoint
from sickbay.execute.hooks.runner import Outside
from sickbay.execute.pace import PER_MINUTE, Pace
from sickbay.execute.shift import Shift, Tools
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.events import EventRecorder
from sickbay.kube.informer import Informer
from sickbay.kube.leadership import Leadership, NotLeading
from sickbay.kube.lease import Elector, LeaseTimes
from sickbay.kube.workqueue import WorkQueue
from sickbay.providers.base import Provider

log = structlog.get_logger(__name__)

WORKERS = 16
"""Looks at once. Most of one is waiting for an answer; a back-end that hangs must not keep others from returning."""
LOOK_AGAIN = 60.0
"""Seconds after which every open repair is looked at again, whatever the watches said."""
RETRY_MOST = 30.0
"""Seconds; the longest pause after failed looks."""


@dataclass(frozen=True)
class ExecuteOptions:
    """Settings of the controller."""

    identity: str = "sickbay-execute"
    namespace: str = "sickbay-system"
    """Where the Lease lives."""
    governor: Limits = field(default_factory=Limits)
    evictions_per_minute: int = PER_MINUTE
    hooks: Mapping[str, Endpoint] = field(default_factory=dict)
    """Endpoints that hooks of rules may call, by name."""
    hook_transports: Transports = over_tls
    """How an endpoint is reached."""
    resync: float = 300.0
    lease: LeaseTimes = field(default_factory=LeaseTimes)


class ExecuteController:
    """Runs until cancelled; acts only while it leads."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        providers: Mapping[str, Provider],
        options: ExecuteOptions | None = None,
    ) -> None:
        self._options = options or ExecuteOptions()
        self._client, self._clock, self._randomness = client, clock, randomness
        self._elector = Elector(
            client, clock, randomness, name="sickbay-execute",
            namespace=self._options.namespace, identity=self._options.identity,
            times=self._options.lease,
        )  # fmt: skip
        self._queue, self._cards = (
            WorkQueue[str](clock, randomness, name=name, retry_high=RETRY_MOST, metrics=client.metrics)
            for name in ("execute", "isolation")
        )
        self._recoveries: Informer[JobRecovery] = self._informer(kinds.JOB_RECOVERY)
        self._tools = self._made_tools(providers)
        self._shift: Shift | None = None
        self._tools.repairs.on_change(self._repair_changed)
        self._tools.nodes.on_change(self._node_changed)
        self._tools.holds.on_change(self._hold_changed)
        self._recoveries.on_change(self._recovery_changed)

    def _informer(self, kind: kinds.Kind[Any], **more: Any) -> Informer[Any]:
        return Informer(self._client, kind, self._clock, self._randomness, resync=self._options.resync, **more)

    def _made_tools(self, providers: Mapping[str, Provider]) -> Tools:
        informer = self._informer
        return Tools(
            client=self._client,
            clock=self._clock,
            backends=Backends(providers),
            governor=Governor(self._clock, self._options.governor),
            pace=Pace(self._clock, self._options.evictions_per_minute),
            recorder=EventRecorder(self._client, self._clock, self._randomness, component="sickbay-execute"),
            nodes=informer(kinds.NODE),
            repairs=informer(kinds.NODE_REPAIR, indexes={"node": lambda repair: [repair.spec.node.name]}),
            pools=informer(kinds.REPAIR_POOL),
            holds=informer(kinds.HOLD),
            hooks=Outside(self._options.hooks, self._options.namespace),
            caller=Caller(self._clock, self._options.hook_transports),
            recoveries=self._recoveries.get,
        )

    @property
    def _informers(self) -> tuple[Informer[Any], ...]:
        tools = self._tools
        return tools.nodes, tools.repairs, tools.pools, tools.holds, self._recoveries

    async def run(self) -> None:
        """Keep the caches current, and act whenever the lease is ours."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
            group.create_task(self._tools.recorder.run())
            group.create_task(self._elector.run(self._lead))

    def awaited(self) -> list[str]:
        """What start-up still waits for, for a readiness probe. A replica that does not lead is ready too."""
        return [f"the list of {i.kind.plural}" for i in self._informers if not i.synced.is_set()]

    def is_leader(self) -> bool:
        return self._elector.is_leader()

    async def _lead(self, leadership: Leadership) -> None:
        self._shift = Shift(self._tools, leadership)
        for informer in self._informers:
            await informer.read_afresh()
        self._add_all()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run(self._reconcile, workers=WORKERS))
            group.create_task(self._cards.run(self._isolate, workers=1))
            group.create_task(self._look_again())

    async def _look_again(self) -> None:
        while True:
            await self._clock.sleep(LOOK_AGAIN)
            self._add_all()
            await self._sweep()

    async def _sweep(self) -> None:
        assert self._shift is not None
        try:
            await self._shift.sweep()
        except NotLeading:
            return

    def _add_all(self) -> None:
        for repair in self._tools.repairs.all():
            self._add(repair)
        for node in self._tools.nodes.all():
            self._look_at_cards(node.name)

    def _look_at_cards(self, node: str) -> None:
        if self._shift is not None and self._shift.isolation.differs(node):
            self._cards.add(node)

    async def _isolate(self, node: str) -> float | None:
        try:
            return await self._shift.isolation.look(node) if self._shift is not None else None
        except NotLeading:
            return None

    def _add(self, repair: NodeRepair) -> None:
        """Releases first."""
        if guard.in_work(repair) or guard.to_restore(repair):
            releasing = repair.status.current.step == Step.UNQUARANTINE
            self._queue.add(repair.metadata.name, priority=1 if releasing else 0)

    def _repair_changed(self, old: NodeRepair | None, new: NodeRepair | None) -> None:
        changed = new or old
        if changed is not None:
            self._look_at_cards(changed.spec.node.name)
        if new is not None and (old is None or _asks(old) != _asks(new)):
            self._add(new)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        """A new boot, a Ready node: what a running step waits for may have come."""
        node = new or old
        assert node is not None
        self._look_at_cards(node.name)
        if old is not None and new is not None and (old.boot_id, old.ready) == (new.boot_id, new.ready):
            return
        for repair in self._tools.repairs.by_index("node", node.name):
            self._add(repair)

    def _hold_changed(self, old: Hold | None, new: Hold | None) -> None:
        if old is None or new is None or old.metadata.generation != new.metadata.generation:
            self._add_all()

    def _recovery_changed(self, old: JobRecovery | None, new: JobRecovery | None) -> None:
        """An answer to an offer lets a drain go on."""
        for record in (old, new):
            for move in record.status.moves if record is not None else ():
                repair = self._tools.repairs.get(move.repair)
                if repair is not None:
                    self._add(repair)

    async def _reconcile(self, name: str) -> float | None:
        repair = self._tools.repairs.get(name)
        if repair is None or self._shift is None:
            return None
        try:
            if guard.to_restore(repair):
                return await self._shift.restore(repair)
            if not guard.in_work(repair) or _settled(repair):
                return None
            return await self._shift.carry_on(repair)
        except NotLeading:
            return None
        except errors.Conflict:
            await self._refresh(repair)
            raise

    async def _refresh(self, repair: NodeRepair) -> None:
        """Something has changed under us that the watches have not told yet."""
        self._tools.repairs.observe_write(await self._client.get(kinds.NODE_REPAIR, repair.metadata.name))
        self._tools.nodes.observe_write(await self._client.get(kinds.NODE, repair.spec.node.name))


def _settled(repair: NodeRepair) -> bool:
    """Nothing is left to do for the current attempt, nor for what runs around it."""
    return is_final(repair) and not repair.status.current.stage


def _asks(repair: NodeRepair) -> tuple[object, ...]:
    """What the record asks for; a report of our own changes nothing in it."""
    current = repair.status.current
    proven = [fault.cleared_at for fault in repair.spec.faults] if current.step == Step.VALIDATE else []
    what = (
        current.step,
        current.stage,
        current.attempt,
        current.waits_for,
        repair.status.phase,
        guard.in_work(repair),
        guard.to_restore(repair),
    )
    return *what, repair.spec.plan.generation, proven


__all__ = ["ExecuteController", "ExecuteOptions"]
