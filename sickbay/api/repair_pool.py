"""RepairPool: which nodes are repaired by which rule, within which limits."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sickbay.api.base import Nullable, Part, Rule, says
from sickbay.api.fault_selector import FaultSelector
from sickbay.api.fields import Count, Duration, FaultName, IntOrPercent, Key, Line, Name, Text, Time, Word
from sickbay.api.meta import ConditionedStatus, LabelSelector, Object, not_empty
from sickbay.api.words import (
    BreakerReset,
    BreakerState,
    BudgetThen,
    Mode,
    Pacing,
    SlotKind,
    WindowKind,
)


def _at_least(limit: str, floor: str) -> str:
    """CEL: two limits of the same unit are in order; of different units, or absent, nothing can be said here.

    Percentages are compared by length, then text, which their pattern makes right. Comparing the two types with each
    other instead of with constants would exceed the server's cost budget.
    """
    counts = f"type({limit}) == int && type({floor}) == int"
    percentages = f"type({limit}) == string && type({floor}) == string"
    longer = f"size({limit}) > size({floor})"
    return (
        f"{counts} ? {limit} >= {floor} : {percentages} ? "
        f"{longer} || (size({limit}) == size({floor}) && {limit} >= {floor}) : true"
    )


class Quarantine(Part):
    """How a node is taken out of service."""

    taint: Annotated[
        bool,
        says(
            "Add the taint sickbay.dev/quarantine=<class>:NoSchedule to the cordon and its annotation. DaemonSets must "
            "tolerate it; condition DaemonSetsTolerate names those that do not"
        ),
    ] = False


class Breaker(Part):
    """Stops new repairs of a pool while too many of its nodes are faulty."""

    threshold: Annotated[
        IntOrPercent,
        says("Opens when more nodes than this are faulty. A percentage of the pool is rounded down, but at least 2"),
    ] = "20%"
    max_nodes: Annotated[
        IntOrPercent, says("Opens as well when more nodes than this are faulty; the tighter of the two wins")
    ] = 10
    cooldown: Annotated[
        Duration, says("At or below the threshold for so long without a break, then half open: one trial repair")
    ] = "15m"
    reset: Annotated[
        str,
        says(
            "Auto, or Manual: stays open until a person sets annotation "
            "sickbay.dev/reset-breaker=<status.breaker.openedAt>",
            enum=BreakerReset,
        ),
    ] = "Auto"


class Storm(Part):
    """Many first faults of one kind at once are one shared cause: one alert, no repairs."""

    nodes: Annotated[Count, says("So many nodes make a storm; a group counts once; 0 = off")] = 5
    window: Annotated[Duration, says("Within this time")] = "60s"


class Domain(Part):
    """A failure domain whose members are repaired together or paced."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.size) || self.size == 0 || !has(self.minUsable) || self.minUsable <= self.size",
            "minUsable is above size",
            "lower minUsable to at most the members a domain has",
            field=".minUsable",
        ),
    )

    key: Annotated[Key, says("Topology label whose value names the domain", required=True, minLength=1)] = ""
    size: Annotated[Count, says("Expected members of one domain; 0 = as many as there are nodes")] = 0
    min_usable: Annotated[
        Count | None,
        says("While so many members stay usable only the affected ones are repaired; absent = all members needed"),
    ] = None
    max_unavailable: Annotated[
        IntOrPercent | None, says("Members of one domain that may be out of service at a time; absent = no limit")
    ] = None
    pacing: Annotated[
        str,
        says(
            "Spread = at most one domain at a time for each step of maxUnavailable; Pack = finish one domain before "
            "the next",
            enum=Pacing,
        ),
    ] = "Spread"


class Window(Part):
    """A recurring time in which repairs may, or may not, start."""

    cron: Annotated[Line, says("Start of the window, five cron fields", required=True, pattern=r"^\S+( +\S+){4}$")] = ""
    duration: Annotated[Duration, says("Length of the window", required=True)] = ""
    zone: Annotated[Word, says("IANA time zone", default="UTC")] = "UTC"
    kind: Annotated[str, says("Allow: starts only inside; Deny: no starts inside", enum=WindowKind)] = "Allow"


class DeviceIsolation(Part):
    """Isolation of single devices instead of the node, opt-in per fault type."""

    faults: Annotated[Nullable[list[FaultName]], says("Fault types that may isolate a device", maxItems=128)] = []
    max_devices_per_node: Annotated[Count, says("More isolated devices than this take the node out instead")] = 4
    max_nodes: Annotated[IntOrPercent, says("Nodes of the pool that may have isolated devices at a time")] = "10%"


class NodeBudget(Part):
    """Repairs one node may use."""

    repairs: Annotated[Count, says("Ended repairs whose Repair step acted, within the window")] = 3
    window: Annotated[Duration, says("The window they are counted in")] = "7d"
    cooldown: Annotated[Duration, says("Pause between two repairs of one node")] = "0s"


class Budgets(Part):
    """What becomes of repeat offenders."""

    per_node: Annotated[Nullable[NodeBudget], says("Budget of one node")] = msgspec.field(default_factory=NodeBudget)
    then: Annotated[
        str, says("When the budget is used up; the node is quarantined first either way", enum=BudgetThen)
    ] = "RepairHardware"


class Override(Part):
    """Mode for some faults only: adopt fault types one by one."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(has(self.faults.names) && size(self.faults.names) > 0)"
            " || (has(self.faults.classes) && size(self.faults.classes) > 0)"
            " || (has(self.faults.severities) && size(self.faults.severities) > 0)"
            " || (has(self.faults.labels) && size(self.faults.labels) > 0)",
            "the override selects every fault",
            "name the faults it is for, or set the pool's own mode",
            field=".faults",
        ),
    )

    faults: Annotated[Nullable[FaultSelector], says("Which faults", required=True)] = msgspec.field(
        default_factory=FaultSelector
    )
    mode: Annotated[str, says("Mode for these faults", required=True, enum=Mode)] = ""


class ProviderRef(Part):
    """The repair back-end of a pool's nodes."""

    name: Annotated[Word, says("Name of the back-end", minLength=1)] = "agent"
    config: Annotated[Nullable[dict[str, Line]], says("Settings of the back-end", maxProperties=32)] = {}


class RepairPoolSpec(Part):
    """Nodes, rule and limits."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            not_empty("self.nodeSelector"),
            "nodeSelector selects nothing in particular",
            "give matchLabels or matchExpressions",
            field=".nodeSelector",
        ),
        Rule(
            _at_least("self.breaker.threshold", "self.maxParallelRepairs"),
            "breaker.threshold is below maxParallelRepairs, so repairs alone could open the breaker",
            "raise breaker.threshold or lower maxParallelRepairs",
            field=".breaker.threshold",
        ),
        Rule(
            _at_least("self.breaker.maxNodes", "self.maxParallelRepairs"),
            "breaker.maxNodes is below maxParallelRepairs, so repairs alone could open the breaker",
            "raise breaker.maxNodes or lower maxParallelRepairs",
            field=".breaker.maxNodes",
        ),
    )

    node_selector: Annotated[Nullable[LabelSelector], says("The nodes; may not be empty", required=True)] = (
        msgspec.field(default_factory=LabelSelector)
    )
    mode: Annotated[str, says("Observe: decide and report, touch nothing. Act: repair", enum=Mode)] = "Observe"
    rule: Annotated[
        Name | None,
        says(
            "Name of a RepairRule. None makes the pool an envelope: it repairs nothing, its limits and breaker bind "
            "every node it selects beside the node's own pool",
            minLength=1,
        ),
    ] = None
    quarantine: Annotated[Nullable[Quarantine], says("How nodes are taken out of service")] = msgspec.field(
        default_factory=Quarantine
    )
    max_parallel_repairs: Annotated[
        IntOrPercent,
        says("Repairs (a group is one) in which Drain or a disruptive act may run at a time"),
    ] = 1
    max_parallel_validations: Annotated[
        IntOrPercent, says("Validations that may run at a time; a percentage gives at least 4")
    ] = "10%"
    max_unavailable: Annotated[
        IntOrPercent,
        says(
            "Nodes of the pool out of service for any reason, each member of a group; a percentage gives at least 1. A "
            "node that offers no capacity anyway is admitted beyond it, but not in a storm or while the breaker is open"
        ),
    ] = "5%"
    min_interval: Annotated[Duration, says("Time between the first slots of two repairs")] = "0s"
    breaker: Annotated[Nullable[Breaker], says("Stops new repairs while too many nodes are faulty")] = msgspec.field(
        default_factory=Breaker
    )
    storm: Annotated[Nullable[Storm], says("Recognises one shared cause behind many faults")] = msgspec.field(
        default_factory=Storm
    )
    domains: Annotated[
        Nullable[list[Domain]],
        says("Failure domains of these nodes", maxItems=8, list_type="map", list_map_keys=["key"]),
    ] = []
    windows: Annotated[Nullable[list[Window]], says("When repairs may start; none = always", maxItems=16)] = []
    freeze_on_failure: Annotated[bool, says("One repair in NeedsHuman stops new ones in the pool")] = False
    device_isolation: Annotated[Nullable[DeviceIsolation], says("Isolation of single devices")] = msgspec.field(
        default_factory=DeviceIsolation
    )
    budgets: Annotated[Nullable[Budgets], says("What repeat offenders may use")] = msgspec.field(
        default_factory=Budgets
    )
    cancel_hold: Annotated[
        Duration,
        says(
            "After a person's cancel or denial, or Abort: no repair for the same node, fault, device and boot until "
            "the fault has cleared, `sickbay resolve`, or this time"
        ),
    ] = "24h"
    allow_control_plane: Annotated[bool, says("Repair control plane nodes too")] = False
    overrides: Annotated[
        Nullable[list[Override]], says("Mode by fault type, first match wins: staged adoption", maxItems=32)
    ] = []
    provider: Annotated[Nullable[ProviderRef], says("Repair back-end of these nodes")] = msgspec.field(
        default_factory=ProviderRef
    )
    local_data_disposable: Annotated[bool, says("Acts that are irreversible or wipe disks need no gate by People")] = (
        False
    )


class Slot(Part):
    """A start reserved by conditional write."""

    repair: Annotated[Name, says("NodeRepair that holds it; the group's id for a group", required=True)] = ""
    node: Annotated[Name, says("Its node")] = ""
    kind: Annotated[str, says("What the slot is for", required=True, enum=SlotKind)] = ""
    since: Annotated[Time | None, says("When it was reserved")] = None


class BreakerStatus(Part):
    """The breaker as it stands."""

    state: Annotated[str, says("Closed, Open or HalfOpen", enum=BreakerState)] = "Closed"
    opened_at: Annotated[Time | None, says("When it opened; the value a manual reset must name")] = None
    below_since: Annotated[Time | None, says("Since when the count is at or below the threshold")] = None
    trial: Annotated[Name, says("The repair or group let through half open")] = ""
    reason: Annotated[Text, says("Why it is open")] = ""


class StormStatus(Part):
    """A storm that has not ended."""

    cause: Annotated[Line, says("What the faults have in common", required=True)] = ""
    since: Annotated[Time | None, says("When it was seen; the value of sickbay.dev/end-storm that ends it")] = None
    nodes: Annotated[Count, says("Nodes in it")] = 0
    below_since: Annotated[Time | None, says("Since when fewer nodes than make a storm are in it")] = None


class RepairPoolStatus(ConditionedStatus):
    """Counts, reserved starts, breaker and storms."""

    nodes: Annotated[Count, says("Nodes selected")] = 0
    faulty: Annotated[Count, says("Nodes the breaker counts")] = 0
    unavailable: Annotated[Count, says("Nodes out of service for any reason")] = 0
    slots: Annotated[Nullable[list[Slot]], says("Reserved starts", maxItems=256)] = []
    breaker: Annotated[Nullable[BreakerStatus], says("The breaker as it stands")] = msgspec.field(
        default_factory=BreakerStatus
    )
    storms: Annotated[Nullable[list[StormStatus]], says("Storms that have not ended", maxItems=32)] = []
    notified: Annotated[Nullable[dict[str, Line]], says("What people were told, and when", maxProperties=64)] = {}


class RepairPool(Object):
    """Which nodes are repaired, by which rule, within which limits."""

    kind: str = msgspec.field(default_factory=lambda: "RepairPool")
    spec: Annotated[Nullable[RepairPoolSpec], says("Nodes, rule and limits", required=True)] = msgspec.field(
        default_factory=RepairPoolSpec
    )
    status: Annotated[Nullable[RepairPoolStatus], says("What the controller found and reserved")] = msgspec.field(
        default_factory=RepairPoolStatus
    )
