"""Who acts next on a repair that waits, and which step follows: what a person asks who finds a node out of service.

A wait that names neither reads as if nothing would happen. All follows from the record and the node as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.markers import leaving_by
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import ApprovalBy, Needs, Phase, StepState, WaitsFor

SHOWN = 3
"""Jobs or pods that are named."""


def actor(repair: NodeRepair, node: Node, holds: Iterable[Hold]) -> str:
    """Who has to do something before it goes on; "" where it waits for nothing."""
    waits_for = repair.status.current.waits_for
    if repair.status.phase == Phase.PARKED:
        return _third_party(repair)
    if waits_for == WaitsFor.HOLD:
        return _owners(holds)
    if waits_for == WaitsFor.OTHER_OWNER:
        return leaving_by(node) or repair.status.message.partition(" waits: ")[2] or repair.status.message
    known = _ACTORS.get(waits_for)
    return known(repair) if known is not None else waits_for


def next_step(repair: NodeRepair) -> str:
    """What follows when that is done; "" for a repair that has ended."""
    status, step = repair.status, repair.status.current.step
    if repair.ended or not step:
        return ""
    if status.phase == Phase.CANCELLING:
        return "none: what is ours is given back"
    resolved = status.phase == Phase.NEEDS_HUMAN and status.needs not in (Needs.APPROVAL_TIMEOUT, Needs.HOOK_FAILED)
    if resolved or status.phase == Phase.PARKED:
        return "Validate, once somebody says that the node is repaired"
    if status.step(step).state != StepState.RUNNING:
        return f"{step}, as soon as that is over"
    names = [each.step for each in repair.spec.plan.steps]
    later = names[names.index(step) + 1 :] if step in names else []
    return f"{later[0]}, when {step} is done" if later else f"none: with {step} the repair ends"


def _answering(repair: NodeRepair) -> str:
    step = repair.spec.plan.step(repair.status.current.step)
    gate = step.approval if step is not None else None
    if gate is None:
        return "people"
    people = f"people of {', '.join(gate.groups)}" if gate.groups else "people"
    if gate.by == ApprovalBy.JOBS:
        return "the jobs on the node"
    return f"{people}, and the jobs on the node" if gate.by == ApprovalBy.PEOPLE_AND_JOBS else people


def _jobs(repair: NodeRepair) -> str:
    waiting = [job.job for job in repair.status.urgency.jobs if not job.stopped] if repair.status.urgency else []
    return f"the jobs on the node{': ' * bool(waiting)}{', '.join(waiting[:SHOWN])}"


def _backend(repair: NodeRepair) -> str:
    provider = repair.spec.plan.provider.name
    return "the agent on the node" if provider == "agent" else f"the back-end {provider}"


def _pods(repair: NodeRepair) -> str:
    blocked = [pod.pod for pod in repair.status.step("Drain").report.pods if pod.state == "Blocked"]
    return f"the owners of {', '.join(blocked[:SHOWN])}" if blocked else "the pods, which are being evicted"


def _third_party(repair: NodeRepair) -> str:
    case = repair.status.case
    named = f" (case {case.id})" if case is not None and case.id else ""
    return f"the third party that repairs it{named}"


def _owners(holds: Iterable[Hold]) -> str:
    found = [f"{hold.metadata.name}{f' ({hold.spec.owner})' if hold.spec.owner else ''}" for hold in holds]
    return f"whoever made the Hold {', '.join(found)}" if found else "whoever made the Hold"


_ACTORS: dict[str, Callable[[NodeRepair], str]] = {
    WaitsFor.APPROVAL: _answering,
    WaitsFor.SLOT: lambda repair: "Sickbay, when a slot is free",
    WaitsFor.JOB: _jobs,
    WaitsFor.CLEAR_PROOF: lambda repair: "whoever detects the fault: the proof that it is gone is missing",
    WaitsFor.WINDOW: lambda repair: f"Sickbay, in the next window of pool {repair.spec.pool.name}",
    WaitsFor.BREAKER: lambda repair: f"Sickbay, when the breaker of pool {repair.spec.pool.name} lets it start",
    WaitsFor.STORM: lambda repair: "people, who look for the cause that the nodes share",
    WaitsFor.PROVIDER: _backend,
    WaitsFor.PODS: _pods,
    WaitsFor.HOOK: lambda repair: "a hook of the rule",
    WaitsFor.CHECKS: lambda repair: "Sickbay, which checks the node",
    WaitsFor.PEOPLE: lambda repair: "people",
}
