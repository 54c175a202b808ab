"""The controller around the steps: claim, look afresh, carry out, report.

It works on repairs whose record asks for something (a step in state Running). Each look is one non-blocking pass; what
has to go on asks to be looked at again. Several repairs are worked on side by side, each by one worker at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from sickbay.api import kinds
from sickbay.api.core import Node, ObjectReference
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import Phase, ReportState, Step
from sickbay.clock import Clock, Randomness
from sickbay.execute import claim, guard
from sickbay.execute.act import NEW_BOOT, Repair
from sickbay.execute.drain import Drain
from sickbay.execute.governor import Governor, Limits
from sickbay.execute.progress import Look, Progress
from sickbay.execute.quarantine import Quarantine
from sickbay.execute.release import Release
from sickbay.execute.validate import Validate
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.events import WARNING, EventRecorder
from sickbay.kube.informer import Informer
from sickbay.kube.leadership import Leadership
from sickbay.kube.lease import Elector, LeaseTimes
from sickbay.kube.nodelease import NodeLease
from sickbay.kube.workqueue import WorkQueue
from sickbay.providers.base import Provider

log = structlog.get_logger(__name__)

WORKERS = 8
LOOK_AGAIN = 60.0
"""Seconds after which every open repair is looked at again, whatever the watches said."""
TAKEN_FOR = 60.0
"""Seconds between two renewals of a node's Lease; others wait an hour for us."""
STOPPED_AGAIN = 5.0
"""Seconds until an act that a Hold or another owner forbids is considered again."""


@dataclass(frozen=True)
class ExecuteOptions:
    """Settings of the controller."""

    identity: str = "sickbay-execute"
    namespace: str = "sickbay-system"
    governor: Limits = field(default_factory=Limits)
    resync: float = 300.0
    lease: LeaseTimes = field(default_factory=LeaseTimes)


class StepRunner(Protocol):
    """One step: from one look to its progress."""

    def look(self, look: Look) -> Awaitable[Progress]: ...


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
        self._client = client
        self._clock = clock
        resync = self._options.resync
        self._nodes: Informer[Node] = Informer(client, kinds.NODE, clock, randomness, resync=resync)
        self._repairs: Informer[NodeRepair] = Informer(
            client, kinds.NODE_REPAIR, clock, randomness, resync=resync,
            indexes={"node": lambda repair: [repair.spec.node.name]},
        )  # fmt: skip
        self._pools = Informer(client, kinds.REPAIR_POOL, clock, randomness, resync=resync)
        self._elector = Elector(
            client, clock, randomness, name="sickbay-execute",
            namespace=self._options.namespace, identity=self._options.identity,
            lease_duration=self._options.lease.duration, renew_deadline=self._options.lease.deadline,
            retry_period=self._options.lease.period,
        )  # fmt: skip
        self._recorder = EventRecorder(client, clock, randomness, component="sickbay-execute")
        self._queue: WorkQueue[str] = WorkQueue(clock, randomness, name="execute")
        self._reporter = claim.Reporter(client, self._check, self._repairs.observe_write)
        self._leases = NodeLease(client, clock)
        self._taken: dict[str, float] = {}
        self._leadership: Leadership | None = None
        governor = Governor(clock, self._options.governor)
        observe = self._nodes.observe_write
        self._steps: dict[str, StepRunner] = {
            Step.QUARANTINE: Quarantine(client, observe),
            Step.DRAIN: Drain(client, clock, self._check, observe),
            Step.REPAIR: Repair(client, clock, providers, governor, self._check, observe),
            Step.VALIDATE: Validate(client),
            Step.UNQUARANTINE: Release(client, observe, self._leases),
        }
        self._repairs.on_change(self._repair_changed)
        self._nodes.on_change(self._node_changed)

    async def run(self) -> None:
        """Keep the caches current, and act whenever the lease is ours."""
        async with asyncio.TaskGroup() as group:
            for informer in (self._nodes, self._repairs, self._pools):
                group.create_task(informer.run())
            group.create_task(self._recorder.run())
            group.create_task(self._elector.run(self._lead))

    def awaited(self) -> list[str]:
        """What start-up still waits for, for a readiness probe. A replica that does not lead is ready too."""
        informers = (self._nodes, self._repairs, self._pools)
        return [f"the list of {i.kind.plural}" for i in informers if not i.synced.is_set()]

    def is_leader(self) -> bool:
        return self._elector.is_leader()

    async def _lead(self, leadership: Leadership) -> None:
        self._leadership = leadership
        for informer in (self._nodes, self._repairs, self._pools):
            await informer.synced.wait()
            await informer.relist()
        self._add_all()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run(self._reconcile, workers=WORKERS))
            group.create_task(self._look_again())

    def _check(self) -> None:
        if self._leadership is None:
            raise errors.Conflict(409, "Conflict", "this process does not lead")
        self._leadership.check()

    async def _look_again(self) -> None:
        while True:
            await self._clock.sleep(LOOK_AGAIN)
            self._add_all()

    def _add_all(self) -> None:
        for repair in self._repairs.all():
            if guard.in_work(repair):
                self._queue.add(repair.metadata.name)

    def _repair_changed(self, old: NodeRepair | None, new: NodeRepair | None) -> None:
        if new is None:
            return
        if guard.in_work(new) and (old is None or _asks(old) != _asks(new)):
            self._queue.add(new.metadata.name)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        """A new boot, a Ready node: what a running step waits for may have come."""
        node = new or old
        assert node is not None
        if old is not None and new is not None and (old.boot_id, old.ready) == (new.boot_id, new.ready):
            return
        for repair in self._repairs.by_index("node", node.name):
            if guard.in_work(repair):
                self._queue.add(repair.metadata.name)

    async def _reconcile(self, name: str) -> float | None:
        repair = self._repairs.get(name)
        if repair is None or not guard.in_work(repair) or claim.is_final(repair):
            return None
        try:
            return await self._carry_on(repair)
        except guard.Superseded as reason:
            log.info("not carried on", repair=name, reason=str(reason))
            return None
        except guard.Stopped as reason:
            log.info("stopped before an act", repair=name, reason=str(reason))
            self._warn(repair, f"{repair.status.current.step}Stopped", str(reason))
            return STOPPED_AGAIN
        except errors.Conflict as conflict:
            log.debug("looked at something that has changed", repair=name, error=str(conflict))
            return 0.2

    async def _carry_on(self, known: NodeRepair) -> float | None:
        repair = await guard.fresh_record(self._client, known)
        if claim.is_final(repair):
            return None
        node = guard.check_node(repair, self._nodes.get(repair.spec.node.name))
        now = self._clock.now()
        await guard.check_holds(self._client, repair, node, self._pool_names(repair, node), now)
        if repair.status.phase != Phase.CANCELLING and repair.status.current.step != Step.UNQUARANTINE:
            await self._take_node(node)
        assert self._leadership is not None
        term = self._leadership.term
        claimed = await self._reporter.claim(repair, term, _baseline(repair, node))
        repair = claimed.repair
        look = Look(repair, node, now, term, claimed.resumed)
        self._check()
        progress = await self._steps[repair.status.current.step].look(look)
        await self._reporter.report(repair, progress, self._clock.now())
        self._tell_budgets(repair, progress)
        if progress.ended:
            self._reporter.forget(repair)
            return None
        return progress.again

    async def _take_node(self, node: Node) -> None:
        """The Lease that remediators share: another's means hands off. Renewed once a minute while we act."""
        now = self._clock.monotonic()
        if self._taken.get(node.uid, 0.0) > now:
            return
        self._check()
        taken = await self._leases.take(node)
        if not taken.free_to_act:
            raise guard.Stopped(f"{taken.holder or 'another remediator'} holds the node's Lease")
        self._taken = {uid: until for uid, until in self._taken.items() if until > now} | {node.uid: now + TAKEN_FOR}

    def _pool_names(self, repair: NodeRepair, node: Node) -> list[str]:
        selecting = [p.metadata.name for p in self._pools.all() if p.spec.node_selector.matches(node.labels)]
        return [repair.spec.pool.name, *selecting]

    def _tell_budgets(self, repair: NodeRepair, progress: Progress) -> None:
        """Name each pod that a budget holds once per incident; the recorder folds what is said again."""
        before = {p.pod: p.why for p in repair.status.step(repair.status.current.step).report.pods}
        for pod in progress.pods:
            if pod.why in ("Busy", "Never", "Error") and before.get(pod.pod) != pod.why:
                never = ", which can never allow it" if pod.why == "Never" else ""
                self._warn(repair, "DrainBlocked", f"{pod.pod} is held by PodDisruptionBudget {pod.pdb or '?'}{never}")

    def _warn(self, repair: NodeRepair, reason: str, message: str) -> None:
        node = repair.spec.node
        regarding = ObjectReference(api_version="v1", kind="Node", name=node.name, uid=node.uid)
        self._recorder.event(regarding, WARNING, reason, message)


def _asks(repair: NodeRepair) -> tuple[object, ...]:
    """What the record asks for; a report of our own changes nothing in it."""
    current = repair.status.current
    return current.step, current.attempt, current.waits_for, repair.spec.plan.generation, guard.in_work(repair)


def _baseline(repair: NodeRepair, node: Node) -> dict[str, str]:
    """What is recorded with the claim of an act, to compare with afterwards."""
    if repair.status.current.step == Step.REPAIR and repair.status.current.action in NEW_BOOT:
        return {"bootBefore": node.boot_id}
    return {}


__all__ = ["ExecuteController", "ExecuteOptions", "ReportState"]
