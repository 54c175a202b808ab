"""What wakes decide: which keys are looked at when something that was read has changed.

A change names keys, nothing more; what to do is judged from the state when the key's turn comes.
"""

from __future__ import annotations

from sickbay.api.core import Node, Pod
from sickbay.api.infra_event import InfraEvent
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import Phase
from sickbay.decide.gangs import gang_of, is_job_pod
from sickbay.decide.relevance import relevant
from sickbay.decide.sources import Sources, says_other, suspect_nodes
from sickbay.kube.workqueue import WorkQueue

Key = tuple[str, str]
"""("node", name), ("repair", name), ("pool", name), ("type", name) or ("rule", name)."""


class Wakeups:
    """Fills the queue. `recount` says that all nodes have to be counted anew before the next decision."""

    def __init__(self, sources: Sources, queue: WorkQueue[Key]) -> None:
        self._sources, self._queue = sources, queue
        self.recount = True
        self._subscribe()

    def all(self) -> None:
        """Let everything be looked at."""
        for node in self._sources.nodes.all():
            self._queue.add(("node", node.name))
        for repair in self._sources.repairs.all():
            if not repair.ended or repair.metadata.finalizers:
                self._queue.add(("repair", repair.metadata.name))
        for pool in self._sources.pools.all():
            self._queue.add(("pool", pool.metadata.name))
        for obj in self._sources.types.all():
            self._queue.add(("type", obj["metadata"]["name"]))
        for rule in self._sources.rules.all():
            self._queue.add(("rule", rule.metadata.name))

    def _subscribe(self) -> None:
        sources = self._sources
        sources.nodes.on_change(self._node_changed)
        sources.repairs.on_change(self._repair_changed)
        sources.pools.on_change(self._pool_changed)
        sources.rules.on_change(lambda old, new: self._wide_change(old, new))
        sources.holds.on_change(lambda old, new: self._wide_change(old, new))
        sources.types.on_change(lambda old, new: self.everything() if says_other(old, new) else None)
        sources.recoveries.on_change(self._recovery_changed)
        sources.tenancy.on_change(self._pod_changed)
        sources.events.on_change(self._event_changed)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None and not relevant(old, new):
            return
        node = new or old
        assert node is not None
        self._queue.add(("node", node.name), priority=1)

    def _repair_changed(self, old: NodeRepair | None, new: NodeRepair | None) -> None:
        repair = new or old
        assert repair is not None
        self._queue.add(("repair", repair.metadata.name), priority=1)
        if new is None or old is None or old.status.phase != new.status.phase or new.ended:
            self._queue.add(("node", repair.spec.node.name))
            self._pools_changed(repair)
        elif _need(old) != _need(new):
            self._pools_changed(repair)
        if repair.spec.group.id and (old is None or new is None or _course(old) != _course(new)):
            self._group_changed(repair)

    def _pools_changed(self, repair: NodeRepair) -> None:
        """What others wait for in its pool, and in the envelopes of its node, may be free now."""
        pools = self._sources.tally.facts(repair.spec.node.name).pools
        for name in dict.fromkeys((repair.spec.pool.name, *pools)):
            self._queue.add(("pool", name))

    def _group_changed(self, repair: NodeRepair) -> None:
        """What one member waits for may be another."""
        for other in self._sources.group_of(repair):
            if not other.ended and other.metadata.name != repair.metadata.name:
                self._queue.add(("repair", other.metadata.name), priority=1)
        for name in repair.spec.group.members if not repair.ended else ():
            node = self._sources.nodes.get(name)
            if node is not None and not any(r.spec.group.id == repair.spec.group.id
                                            for r in self._sources.repairs_of(name)):  # fmt: skip
                self._queue.add(("node", name), priority=1)

    def _recovery_changed(self, old: JobRecovery | None, new: JobRecovery | None) -> None:
        """Suspicions that come or go are faults of their nodes; answers of jobs open gates."""
        records = [record for record in (old, new) if record is not None]
        for node in {name for record in records for name in suspect_nodes(record)}:
            self._queue.add(("node", node), priority=1)
        for gate in {gate.repair for record in records for gate in record.status.gates}:
            self._queue.add(("repair", gate), priority=1)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """A job has come, gone or stopped: what waits for it looks again."""
        for pod in (old, new):
            if pod is None or not is_job_pod(pod):
                continue
            waiting = [*self._sources.repairs.by_index("gang", gang_of(pod))]
            waiting += [r for r in self._sources.repairs_of(pod.node_name) if r.status.phase == Phase.WAITING_JOB]
            for repair in waiting:
                self._queue.add(("repair", repair.metadata.name), priority=1)

    def _event_changed(self, old: InfraEvent | None, new: InfraEvent | None) -> None:
        """A provider has named another date."""
        for name in {event.spec.node.name for event in (old, new) if event is not None}:
            for repair in self._sources.repairs_of(name):
                if not repair.ended:
                    self._queue.add(("repair", repair.metadata.name))

    def _pool_changed(self, old: RepairPool | None, new: RepairPool | None) -> None:
        if old is None or new is None or old.metadata.generation != new.metadata.generation:
            self.everything()
        elif old.status != new.status or old.metadata.annotations != new.metadata.annotations:
            self._queue.add(("pool", new.metadata.name))

    def _wide_change(self, old: object, new: object) -> None:
        before, after = getattr(old, "metadata", None), getattr(new, "metadata", None)
        if before is None or after is None or before.generation != after.generation:
            self.everything()

    def everything(self) -> None:
        """Something that every node is judged by has changed."""
        self.recount = True
        self.all()


def _need(repair: NodeRepair) -> tuple[object, ...]:
    """What decides about the slot of a repair, and about its turn."""
    current = repair.status.current
    step = repair.status.steps.get(current.step)
    leading = repair.spec.faults[0].type if repair.spec.faults else ""
    return current.step, current.action, step.state if step is not None else "", leading


def _course(repair: NodeRepair) -> tuple[object, ...]:
    """What other members of a group look at."""
    status, current = repair.status, repair.status.current
    steps = [(name, step.state, step.approved_attempt, len(step.attempts)) for name, step in status.steps.items()]
    faults = [(fault.type, fault.gone_since, fault.cleared_at) for fault in repair.spec.faults]
    group = repair.spec.group.id, repair.spec.group.leader
    return (
        status.phase,
        status.outcome,
        status.needs,
        current.step,
        current.action,
        current.attempt,
        steps,
        faults,
        group,
    )
