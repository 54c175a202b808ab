"""One term of a leader: claim, carry out, report.

Each look at a repair is one non-blocking pass; what has to go on asks to be looked at again. A look reads caches; what
it does, it does under a permit, which reads the server. Everything remembered here ends with the term, so that nothing
a former term knew is taken for true.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import structlog

from sickbay.api.core import Node, ObjectReference
from sickbay.api.hold import Hold
from sickbay.api.hooks import FINAL
from sickbay.api.node_repair import NodeRepair, RepairNode
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import Step, StepState
from sickbay.clock import Clock, rfc3339
from sickbay.execute import guard, lifecycle
from sickbay.execute.act import Repair
from sickbay.execute.attempt import is_current, is_final
from sickbay.execute.backends import Backends
from sickbay.execute.claim import Claim, Claims, LaterTerm
from sickbay.execute.drain import Drain
from sickbay.execute.fence import Fence
from sickbay.execute.governor import Governor
from sickbay.execute.hooks.call import Caller
from sickbay.execute.hooks.runner import Hooks, Outside
from sickbay.execute.isolation import Isolation
from sickbay.execute.marks import restore_ops, still_prior
from sickbay.execute.offers import Recoveries
from sickbay.execute.owners import Owners
from sickbay.execute.pace import Pace
from sickbay.execute.permit import Known, Permits
from sickbay.execute.progress import Look, Progress, Told
from sickbay.execute.proof import baseline
from sickbay.execute.quarantine import Quarantine
from sickbay.execute.release import Release
from sickbay.execute.sweep import Sweep
from sickbay.execute.validate import Validate
from sickbay.execute.volumes import Volumes
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.events import NORMAL, WARNING, EventRecorder
from sickbay.kube.informer import Informer
from sickbay.kube.leadership import Leadership
from sickbay.kube.nodelease import NodeLease
from sickbay.kube.nodes import patch_node

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Tools:
    """What outlives a term."""

    client: Client
    clock: Clock
    backends: Backends
    governor: Governor
    pace: Pace
    recorder: EventRecorder
    nodes: Informer[Node]
    repairs: Informer[NodeRepair]
    pools: Informer[RepairPool]
    holds: Informer[Hold]
    hooks: Outside = field(default_factory=Outside)
    """Where the hooks of rules lead."""
    caller: Caller | None = None
    """Calls their endpoints; None = over the network."""
    recoveries: Recoveries = lambda _name, _namespace: None
    """What the job loop says of the jobs whose pods are drained."""


class StepRunner(Protocol):
    """One step: from one look to its progress."""

    def look(self, look: Look) -> Awaitable[Progress]: ...


class Shift:
    """See the module."""

    def __init__(self, tools: Tools, leadership: Leadership) -> None:
        self._tools = tools
        self._check: Callable[[], None] = leadership.check
        client, clock, observe = tools.client, tools.clock, tools.nodes.observe_write
        self._owners = Owners(NodeLease(client, clock), clock)
        known = Known(tools.holds.all, self._pool_names, observe)
        self._permits = Permits(client, clock, self._check, self._owners, known)
        self._claims = Claims(client, leadership.term, self._check, tools.repairs.observe_write)
        self._hooks = Hooks(
            client, clock, tools.hooks, tools.caller or Caller(clock), self._check, tools.repairs.observe_write
        )
        self._fence = Fence(client, tools.backends, observe)
        volumes = Volumes(client, tools.nodes.all)
        self._drain = Drain(client, clock, tools.pace, observe, self._fence, volumes, tools.recoveries)
        self._repair = Repair(client, clock, tools.backends, tools.governor, observe)
        self._release = Release(client, observe, self._owners, tools.backends)
        self._steps: dict[str, StepRunner] = {
            Step.QUARANTINE: Quarantine(client, observe),
            Step.DRAIN: self._drain,
            Step.REPAIR: self._repair,
            Step.VALIDATE: Validate(client, tools.backends),
            Step.UNQUARANTINE: self._release,
        }
        self._sweep = Sweep(client, clock, tools.nodes, tools.repairs, self._pools_of, self._check, self._tell)
        self.isolation = Isolation(client, clock, tools.nodes, tools.repairs, self._pools_of, self._check, self._tell)
        """The cards' part, looked at by node."""
        self._stops: dict[str, str] = {}

    async def sweep(self) -> None:
        """Compare the nodes with the records. Raises ApiError and NotLeading."""
        self._forget_gone()
        await self._sweep.run()

    def _forget_gone(self) -> None:
        """Of records and nodes that are gone nothing is remembered."""
        known = {repair.metadata.uid for repair in self._tools.repairs.all()}
        for keeper in (self._claims, self._drain, self._repair, self._release):
            keeper.keep(known)
        self._stops = {uid: why for uid, why in self._stops.items() if uid in known}
        self._owners.forget_others({node.uid for node in self._tools.nodes.all()})

    async def carry_on(self, repair: NodeRepair) -> float | None:
        """One look. Returns the seconds until the next; None when there is nothing more to do.

        Raises ApiError (look again, with back-off) and NotLeading.
        """
        if not repair.follows_plan:
            return None  # what follows from the new plan is about to be written
        node = self._tools.nodes.get(repair.spec.node.name)
        try:
            return await self._look(repair, guard.check_node(repair, node))
        except guard.Superseded as reason:
            log.info("not carried on", repair=repair.metadata.name, reason=str(reason))
            await self._let_go(repair)
        except LaterTerm as reason:
            log.warning("not carried on", repair=repair.metadata.name, reason=str(reason))
        except guard.Stopped as stopped:
            return await self._stopped(repair, stopped)
        except errors.ApiError:
            self._permits.forget(repair.metadata.uid)  # it may be wrong by now
            raise
        return None

    async def restore(self, repair: NodeRepair) -> float | None:
        """Put our mark back, where decide asks for it. Raises ApiError and NotLeading."""
        try:
            repair, node = await self._permits.ask_to_restore(repair)
        except guard.Superseded:
            return None
        except guard.Stopped as stopped:
            return stopped.again
        prior = still_prior(node, repair)
        if prior is not None and prior != repair.status.prior:
            repair = await self._claims.record(repair, prior)  # all that tells of it once the mark is gone
        self._check()
        ops = restore_ops(node, repair, rfc3339(self._tools.clock.now()))
        self._tools.nodes.observe_write(await patch_node(self._tools.client, node, ops))
        return None

    async def _look(self, repair: NodeRepair, node: Node) -> float | None:
        if _has_open_hooks(repair):
            repair = await self._hooks.tidy(repair)
        if repair.status.current.stage:
            return await self._run_hooks(repair, node)
        if is_final(repair):
            return None
        claimed = await self._claim(repair, node)
        repair = claimed.repair
        step = self._steps.get(repair.status.current.step)
        if step is None:
            raise guard.Superseded(f"this version knows no step {repair.status.current.step!r}")
        look = Look(
            repair=repair,
            node=self._tools.nodes.get(node.name) or node,
            now=self._tools.clock.now(),
            resumed=claimed.resumed,
            check=self._check,
            permit=partial(self._permits.ask, repair, node),
        )
        if step is not self._drain:
            look = replace(look, node=await self._fence.lift(look))
        progress = await step.look(look)
        for told in progress.events:  # first: what has happened is told once, and the report may meet a conflict
            self._tell(repair.spec.node, told)
        await self._claims.report(repair, progress, self._tools.clock.now())
        self._stops.pop(repair.metadata.uid, None)
        if progress.ended:
            await self._let_go(repair)
            return None
        await self._owners.keep(look.node)
        return progress.again

    async def _run_hooks(self, repair: NodeRepair, node: Node) -> float | None:
        """What runs before or after the step: under a permit, like the step itself."""
        permit = await self._permits.ask(repair, node)
        self._permits.forget(repair.metadata.uid)  # what is written next makes it old
        again = await self._hooks.look(permit.repair)
        await self._owners.keep(node)
        return again

    async def _claim(self, repair: NodeRepair, node: Node) -> Claim:
        """A fresh claim needs a permit: what is not claimed yet, a Hold of any level may stop."""
        if is_current(repair):
            return await self._claims.claim(repair, {})
        permit = await self._permits.ask(repair, node)
        return await self._claims.claim(permit.repair, baseline(permit.repair, permit.node))

    async def _stopped(self, repair: NodeRepair, stopped: guard.Stopped) -> float | None:
        """Say what keeps us from acting: in the record, and once as an Event."""
        known = self._tools.repairs.get(repair.metadata.name)
        if known is None or not guard.asks_for_the_same(repair, known):
            return None
        step, why = known.status.current.step, str(stopped)
        await self._claims.stopped(known, stopped, self._tools.clock.now())
        if self._stops.get(repair.metadata.uid) != why:
            self._stops[repair.metadata.uid] = why
            log.info("stopped before an act", repair=repair.metadata.name, reason=why)
            self._tell(repair.spec.node, Told(f"{step}Stopped", why))
        return stopped.again

    async def _let_go(self, repair: NodeRepair) -> None:
        """This step is over. What has no Unquarantine to come takes its traces away now; the sweep finds the rest."""
        uid = repair.metadata.uid
        self._claims.forget(repair)
        self._drain.forget(uid)
        self._repair.forget(uid)
        node = self._tools.nodes.get(repair.spec.node.name)
        if node is None or node.uid != repair.spec.node.uid or _will_return(repair):
            return
        try:
            self._check()
            await lifecycle.remove(self._tools.client, node, None)
            if self._owners.holds(node):
                await self._owners.release(node)
        except errors.ApiError as error:
            log.warning("traces left on the node", repair=repair.metadata.name, error=str(error))

    def _pool_names(self, repair: NodeRepair, node: Node) -> list[str]:
        return [repair.spec.pool.name, *self._pools_of(node)]

    def _pools_of(self, node: Node) -> list[str]:
        return [p.metadata.name for p in self._tools.pools.all() if p.spec.node_selector.matches(node.labels)]

    def _tell(self, node: Node | RepairNode, told: Told) -> None:
        regarding = ObjectReference(api_version="v1", kind="Node", name=node.name, uid=node.uid)
        self._tools.recorder.event(regarding, WARNING if told.warning else NORMAL, told.reason, told.message)


def _has_open_hooks(repair: NodeRepair) -> bool:
    return any(hook.state not in FINAL for status in repair.status.steps.values() for hook in status.hooks)


def _will_return(repair: NodeRepair) -> bool:
    """Quarantine has begun, so Unquarantine (or a person) will take back what is ours."""
    return repair.status.step(Step.QUARANTINE).state in (StepState.RUNNING, StepState.DONE)
