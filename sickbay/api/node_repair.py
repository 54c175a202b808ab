"""NodeRepair: one incident, from the fault to the node's return, and the record of it.

Spec is what decide resolved: identities as they were, and a plan that needs no other object to be carried out. Status
is written by two hands: decide owns phase, outcome, current and each step's `state`, execute each step's `report`,
`prior` and `case`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sickbay.api.base import Nullable, Part, Rule, says
from sickbay.api.fields import Count, Duration, FaultName, Key, Line, Name, Text, Time, Uid, Word
from sickbay.api.meta import Condition, Object
from sickbay.api.repair_plan import Plan
from sickbay.api.repair_step import Current, StepStatus
from sickbay.api.words import (
    ClearsBy,
    Needs,
    Origin,
    Outcome,
    Phase,
    RepairVerdict,
    Urgency,
)


class RepairNode(Part):
    """The node as it was when the incident opened."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.name == oldSelf.name",
            "a repair stays with its node",
            "create another NodeRepair for another node",
            field=".name",
        ),
        Rule(
            "!has(oldSelf.uid) || oldSelf.uid == '' || (has(self.uid) && self.uid == oldSelf.uid)",
            "a repair stays with the node of its UID",
            "create another NodeRepair for the new node",
            field=".uid",
        ),
    )

    name: Annotated[Name, says("Name of the Node", required=True, minLength=1)] = ""
    uid: Annotated[Uid, says("UID of the Node")] = ""
    provider_id: Annotated[Line, says("providerID of the machine")] = ""
    boot_id: Annotated[Uid, says("Boot in which the fault was seen")] = ""
    serial: Annotated[Line, says("Identity of the machine: the system UUID that its kubelet reports")] = ""


class Ref(Part):
    """A RepairPool, and the generation that was read."""

    name: Annotated[Name, says("Its name")] = ""
    uid: Annotated[Uid, says("Its UID")] = ""
    generation: Annotated[int, says("metadata.generation that was read", minimum=0)] = 0


class RuleRef(Part):
    """A RepairRule's entry, and the generation that was read."""

    name: Annotated[Name, says("Name of the RepairRule")] = ""
    uid: Annotated[Uid, says("Its UID")] = ""
    generation: Annotated[int, says("metadata.generation that was read", minimum=0)] = 0
    entry: Annotated[Word, says("Name of the entry that matched")] = ""


class Group(Part):
    """The group of a fault of scope Domain."""

    id: Annotated[Word, says("A DNS label; empty = no group", pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    leader: Annotated[Name, says("NodeRepair on which approval is asked and the domain-wide act is claimed")] = ""
    members: Annotated[Nullable[list[Name]], says("Nodes of the group", maxItems=256)] = []


class FaultSource(Part):
    """Where a fault was read."""

    kind: Annotated[Word, says("What it was read from, such as Condition or InfraEvent")] = ""
    id: Annotated[Line, says("The source's own id of it")] = ""
    status: Annotated[Word, says("Status of the condition that it was read from")] = ""


class RepairFault(Part):
    """A fault of this incident."""

    type: Annotated[FaultName, says("Fault type", required=True, minLength=1)] = ""
    devices: Annotated[Nullable[list[Word]], says("UUIDs of the devices concerned", maxItems=32)] = []
    source: Annotated[Nullable[FaultSource], says("Where it was read")] = msgspec.field(default_factory=FaultSource)
    first_seen: Annotated[Time | None, says("When it was first seen")] = None
    last_seen: Annotated[Time | None, says("When it last turned bad")] = None
    gone_since: Annotated[Time | None, says("Since when it is no longer seen; absent while it is")] = None
    boot_id: Annotated[Uid, says("Boot in which it was last seen")] = ""
    cleared_at: Annotated[Time | None, says("When it was proven gone")] = None
    clears_by: Annotated[
        str, says("What proves that it is gone, by the catalogue in force when it came in", enum=[*ClearsBy, ""])
    ] = ""
    for_: Annotated[Duration | None, says("Its `for`, by that catalogue")] = None
    soak: Annotated[Duration | None, says("Its `validation.soak`, by that catalogue")] = None
    evidence: Annotated[Nullable[list[Line]], says("What shows it; grows at step boundaries", maxItems=8)] = []


class NodeRepairSpec(Part):
    """The incident and its plan."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(oldSelf.origin) || self.origin == oldSelf.origin",
            "the origin of a repair is history",
            "leave it as it is",
            field=".origin",
        ),
        Rule(
            "!has(oldSelf.catalogue) || oldSelf.catalogue == ''"
            " || (has(self.catalogue) && self.catalogue == oldSelf.catalogue)",
            "a repair keeps the catalogue version it began with",
            "leave it as it is",
            field=".catalogue",
        ),
        Rule(
            "oldSelf.hasValue() || self.origin != 'Manual' || (has(self.plan.steps)"
            " && self.plan.steps.exists(s, s.step == 'Repair' && has(s.action)))",
            "a manual repair does not say what to do",
            "give plan.steps: [{step: Repair, action: ...}]",
            field=".plan",
            optional_old_self=True,
        ),
    )

    origin: Annotated[str, says("What opened it", enum=Origin)] = "Fault"
    node: Annotated[Nullable[RepairNode], says("The node, as it was", required=True)] = msgspec.field(
        default_factory=RepairNode
    )
    pool: Annotated[Nullable[Ref], says("The pool it belongs to")] = msgspec.field(default_factory=Ref)
    rule: Annotated[Nullable[RuleRef], says("The entry it follows")] = msgspec.field(default_factory=RuleRef)
    catalogue: Annotated[Word, says("Catalogue version in force, kept to the end")] = ""
    group: Annotated[Nullable[Group], says("The group it belongs to")] = msgspec.field(default_factory=Group)
    faults: Annotated[Nullable[list[RepairFault]], says("Its faults; the first is the primary one", maxItems=16)] = []
    plan: Annotated[Nullable[Plan], says("What is to be done")] = msgspec.field(default_factory=Plan)


class RepairTaint(Part):
    """A taint that stood on the node before."""

    key: Annotated[Key, says("Its key")] = ""
    value: Annotated[Word, says("Its value")] = ""
    effect: Annotated[Word, says("Its effect")] = ""


class PriorCondition(Part):
    """A node lifecycle condition that another system had set before us."""

    type: Annotated[Word, says("Its type", required=True, minLength=1)] = ""
    status: Annotated[Word, says("Its status")] = ""
    reason: Annotated[Text, says("Its reason")] = ""
    message: Annotated[Text, says("Its message")] = ""
    last_heartbeat_time: Annotated[Time | None, says("Its lastHeartbeatTime")] = None
    last_transition_time: Annotated[Time | None, says("Its lastTransitionTime")] = None


class Prior(Part):
    """The node before us: a copy of what Quarantine recorded on it."""

    unschedulable: Annotated[bool, says("It was cordoned already")] = False
    taints: Annotated[Nullable[list[RepairTaint]], says("Its taints", maxItems=64)] = []
    annotations: Annotated[Nullable[dict[str, Line]], says("Prior values of annotations we set", maxProperties=16)] = {}
    conditions: Annotated[
        Nullable[list[PriorCondition]], says("Lifecycle conditions of others that we may overwrite", maxItems=8)
    ] = []


class Case(Part):
    """A case at a vendor or in a ticket system, while the repair is parked."""

    id: Annotated[Line, says("Its id there")] = ""
    state: Annotated[Word, says("Where it stands, in their words")] = ""
    url: Annotated[Text, says("Where people can read it")] = ""
    eta: Annotated[Time | None, says("When they expect to be done")] = None


class WaitedJob(Part):
    """A job as it ran on the node when the wait for it began: by comparison it is seen to have stopped."""

    job: Annotated[str, says("kind namespace/name", required=True, maxLength=400)] = ""
    pods: Annotated[Count, says("How many of its pods ran")] = 0
    restarts: Annotated[int, says("Restarts of their containers so far", minimum=0)] = 0
    newest: Annotated[Time | None, says("When the newest of them was created")] = None
    stopped: Annotated[bool, says("It has stopped since; that it runs again is not waited for")] = False


class UrgencyStatus(Part):
    """How the wait of an urgency stands."""

    level: Annotated[str, says("The urgency in force", enum=Urgency)] = "Now"
    since: Annotated[Time | None, says("Since when")] = None
    until: Annotated[Time | None, says("When its ceiling is over")] = None
    asks: Annotated[bool, says("The ceiling is over: people are asked whether the node may leave sooner")] = False
    over: Annotated[Time | None, says("When the wait ended: nothing is waited for any more")] = None
    jobs: Annotated[Nullable[list[WaitedJob]], says("The jobs that ran on the node", maxItems=16)] = []


class Restored(Part):
    """Our mark was taken away by known automation, and is put back, once."""

    by: Annotated[Line, says("User who took it away")] = ""
    at: Annotated[Time | None, says("When that was seen")] = None
    done: Annotated[bool, says("It stands again")] = False


class NodeRepairStatus(Part):
    """Where the repair stands."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(oldSelf.phase) || !(oldSelf.phase in ['Succeeded', 'Cancelled', 'Failed'])"
            " || (has(self.phase) && self.phase == oldSelf.phase)",
            "the repair has ended",
            "create another NodeRepair",
            field=".phase",
        ),
    )

    phase: Annotated[str, says("Where it stands", enum=Phase)] = "Pending"
    outcome: Annotated[str, says("How it ended", enum=[*Outcome, ""])] = ""
    needs: Annotated[str, says("Why people are needed", enum=[*Needs, ""])] = ""
    message: Annotated[Text, says("For people; the next command when they are needed")] = ""
    resolved: Annotated[Time | None, says("Moment of the person's word on the outcome that was followed last")] = None
    started_at: Annotated[Time | None, says("When it began")] = None
    ended_at: Annotated[Time | None, says("When it ended")] = None
    current: Annotated[Nullable[Current], says("The step at hand")] = msgspec.field(default_factory=Current)
    urgency: Annotated[
        UrgencyStatus | None, says("How the wait for the jobs of the node stands; absent = none was needed")
    ] = None
    steps: Annotated[Nullable[dict[str, StepStatus]], says("The steps, by name", maxProperties=5)] = {}
    prior: Annotated[Prior | None, says("The node before us; absent until Quarantine")] = None
    restored: Annotated[Restored | None, says("Our mark, taken away by known automation and put back")] = None
    case: Annotated[Case | None, says("Case at a vendor, while parked")] = None
    verdict: Annotated[str, says("What the fault turned out to be", enum=[*RepairVerdict, ""])] = ""
    notified: Annotated[Nullable[dict[str, Line]], says("What people were told, and when", maxProperties=64)] = {}
    conditions: Annotated[
        Nullable[list[Condition]],
        says("WouldQuarantine and others, by type", maxItems=32, list_type="map", list_map_keys=["type"]),
    ] = []

    def step(self, name: str) -> StepStatus:
        """The step's status, empty when it has none yet."""
        return self.steps.get(name) or StepStatus()

    def condition(self, type_: str) -> Condition | None:
        return next((c for c in self.conditions if c.type == type_), None)


class NodeRepair(Object):
    """One incident on one node, from the fault to the node's return."""

    kind: str = msgspec.field(default_factory=lambda: "NodeRepair")
    spec: Annotated[Nullable[NodeRepairSpec], says("The incident and its plan", required=True)] = msgspec.field(
        default_factory=NodeRepairSpec
    )
    status: Annotated[Nullable[NodeRepairStatus], says("Where the repair stands")] = msgspec.field(
        default_factory=NodeRepairStatus
    )

    @property
    def follows_plan(self) -> bool:
        """The step at hand belongs to the plan as it is. Not so between the two writes that bring a new plan: what
        stands in status was ordered under the old one."""
        return self.status.current.plan_generation in (0, self.spec.plan.generation)

    @property
    def uncleared(self) -> list[str]:
        """Types of the faults that are not proven gone."""
        return [fault.type for fault in self.spec.faults if fault.cleared_at is None]

    @property
    def ended(self) -> bool:
        """No way on: Succeeded, Cancelled or Failed, or observed to its end."""
        if self.status.phase == Phase.WOULD_ACT:
            return bool(self.status.outcome)
        return self.status.phase in (Phase.SUCCEEDED, Phase.CANCELLED, Phase.FAILED)
