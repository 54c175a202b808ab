"""Failure domains: which nodes are taken down together, and how a fault of the whole domain is repaired.

A fault type of scope Domain names a topology label; the nodes that carry the same value of it are the members. Usually
all of them are repaired as one group. A pool that says how many members have to stay usable (`minUsable`) has only the
sick ones repaired, each as a node of its own and never with an act on the whole domain, as long as enough are left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from sickbay.api import names, objectnames
from sickbay.api.actions import domain_wide
from sickbay.api.core import Node
from sickbay.api.meta import ObjectMeta
from sickbay.api.node_repair import FaultSource, Group, NodeRepair, Ref, RepairFault
from sickbay.api.repair_plan import Plan
from sickbay.api.repair_pool import Domain, RepairPool
from sickbay.api.words import Needs, Step
from sickbay.decide import pacing, slots
from sickbay.decide.faults import Active
from sickbay.decide.group import BY_GROUP
from sickbay.decide.hand import identity_of, untouched
from sickbay.decide.plan import without_domain_acts

MOST = 256
"""Members of one group at most: maxItems of `spec.group.members` and of a pool's slots."""


@dataclass(frozen=True)
class Membership:
    """The domain of one node, as it is now."""

    key: str
    value: str
    nodes: Sequence[Node]
    """All nodes that carry the label's value, this one too, by name."""
    affected: frozenset[str]
    """Names of those that show the fault."""
    settings: Domain | None = None
    """What the pool says of this kind of domain."""

    @property
    def name(self) -> str:
        return f"{self.key}={self.value}"

    @property
    def usable(self) -> int:
        """Members that can be used whatever becomes of the sick ones."""
        return sum(1 for n in self.nodes if n.name not in self.affected and not slots.out_of_service(n))


def alone(membership: Membership) -> str:
    """Why only the sick members are repaired, each on its own; "" when the domain is repaired as a group."""
    least = membership.settings.min_usable if membership.settings is not None else None
    if least is None or membership.usable < least:
        return ""
    return f"{membership.usable} members of {membership.name} stay usable, at least {least} are needed (minUsable)"


def on_its_own(plan: Plan, why: str) -> Plan:
    """The plan of one member alone: the rungs that would take the whole domain down are left out."""
    plan = without_domain_acts(plan)
    step = plan.step(Step.REPAIR)
    if step is not None and not step.ladder and not step.needs:
        step.needs = Needs.REPAIR_FAILED.value
        why = f"its only remedies take the whole domain down; {why}"
    return msgspec.structs.replace(plan, reason=f"{plan.reason}; {why}"[:2048])


def single(plan: Plan) -> Plan:
    """The plan of a repair that belongs to no group: unchanged, unless a rung of it takes others down too."""
    step = plan.step(Step.REPAIR)
    if step is None or not any(domain_wide(rung.action) for rung in step.ladder):
        return plan
    return on_its_own(plan, "a remedy of a whole domain needs a fault of scope Domain")


def led(draft: NodeRepair, membership: Membership) -> NodeRepair:
    """The draft as the leader of a new group. Its id is made from the record's name, so that no two are the same."""
    name = draft.metadata.name
    digest = hashlib.sha256(f"{name}/{draft.spec.node.uid}".encode()).hexdigest()[:8]
    id_ = objectnames.dns_label(f"{objectnames.cut(membership.value.lower(), 40) or 'group'}-{digest}")
    members = [node.name for node in membership.nodes][:MOST]
    group = Group(id=id_, leader=name, members=members)
    reason = f"{draft.spec.plan.reason}, for all {len(members)} members of {membership.name}"
    plan = msgspec.structs.replace(draft.spec.plan, reason=reason)
    return msgspec.structs.replace(draft, spec=msgspec.structs.replace(draft.spec, group=group, plan=plan))


def member(leader: NodeRepair, node: Node, pool: RepairPool | None, active: Iterable[Active], name: str) -> NodeRepair:
    """The record of another member: the leader's plan, under the limits and with the back-end of its own pool."""
    spec = msgspec.convert(msgspec.to_builtins(leader.spec), type(leader.spec))
    plan = msgspec.structs.replace(spec.plan, generation=1)
    ref = spec.pool
    if pool is not None:
        ref = Ref(name=pool.metadata.name, uid=pool.metadata.uid, generation=pool.metadata.generation)
        plan = msgspec.structs.replace(plan, provider=pool.spec.provider)
    made = msgspec.structs.replace(
        spec,
        node=identity_of(node),
        pool=ref,
        plan=plan,
        faults=[shared(leader, node, active)],
    )
    return NodeRepair(metadata=ObjectMeta(name=name, finalizers=[names.FINALIZER]), spec=made)


def shared(leader: NodeRepair, node: Node, active: Iterable[Active]) -> RepairFault:
    """The group's fault on one member: its own where the node shows it, otherwise that of the group."""
    lead = leader.spec.faults[0]
    own = next((a for a in active if a.name == lead.type), None)
    source = FaultSource(kind=BY_GROUP, id=leader.spec.group.id)
    if own is not None:
        source = FaultSource(kind="Condition" if own.since else "Expression", id=own.identity, status=own.status)
    return RepairFault(
        type=lead.type, source=source, first_seen=lead.first_seen, last_seen=lead.last_seen, boot_id=node.boot_id
    )


def adopted(repair: NodeRepair, leader: NodeRepair, node: Node, active: Iterable[Active]) -> NodeRepair:
    """An open repair in which nothing has begun, as a member of the group: its own faults ride along."""
    made = member(leader, node, None, active, repair.metadata.name)
    rest = [fault for fault in repair.spec.faults if fault.type != made.spec.faults[0].type]
    plan = msgspec.structs.replace(
        made.spec.plan, generation=repair.spec.plan.generation + 1, provider=repair.spec.plan.provider
    )
    spec = msgspec.structs.replace(
        repair.spec, group=made.spec.group, rule=made.spec.rule, plan=plan, faults=[*made.spec.faults, *rest][:16]
    )
    return msgspec.structs.replace(repair, spec=spec)


def joins(repair: NodeRepair, leader: NodeRepair) -> bool:
    """Whether an open repair of a member becomes part of the group: nothing has begun, and no older group has it."""
    if repair.ended or not untouched(repair) or repair.spec.group.id == leader.spec.group.id:
        return False
    return not repair.spec.group.id or _age(leader) < _age(repair)


def _age(repair: NodeRepair) -> tuple[str, str]:
    return repair.metadata.creation_timestamp or "9", repair.spec.group.id


def misfit(
    nodes: Iterable[Node],
    size: int,
    pools_of: Callable[[Node], tuple[RepairPool | None, Sequence[RepairPool]]],
    view_of: Callable[[RepairPool], slots.PoolView],
    observes: Callable[[RepairPool], bool],
) -> str:
    """Why the group can never start under the limits as they are; "" when it can.

    Members that offer no capacity anyway are admitted beyond a limit and do not count. `size` is how many members the
    domain should have at most; 0 = any number.
    """
    nodes = sorted(nodes, key=lambda node: node.name)
    if len(nodes) > (size or MOST):
        least = f"domains[].size is {size}" if size else f"a group has at most {MOST}"
        return f"the domain has {len(nodes)} members, but {least}"
    bound: dict[str, tuple[RepairPool, list[Node]]] = {}
    for node in nodes:
        owner, envelopes = pools_of(node)
        if owner is None:
            return f"member {node.name} is in no pool with a rule, so nobody may take it out"
        if observes(owner):
            return f"member {node.name} is in pool {owner.metadata.name}, which only observes this fault"
        for pool in (owner, *envelopes):
            bound.setdefault(pool.metadata.name, (pool, []))[1].append(node)
    for pool, inside in bound.values():
        serving = [node for node in inside if not slots.out_of_service(node)]
        why = slots.never_fits(view_of(pool), serving) or pacing.never_fits(view_of(pool), serving)
        if why:
            return why
    return ""


def onset_key(fault: Active | None, labels: Mapping[str, str]) -> str:
    """By what a sick node counts together with others: one fault of a domain is one, however many nodes show it."""
    spec = fault.type.spec if fault is not None else None
    if spec is None or spec.scope != "Domain" or not spec.domain or spec.domain not in labels:
        return ""
    return f"{spec.domain}={labels[spec.domain]}"
