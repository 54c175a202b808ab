"""FaultType: how a fault is recognised, what helps against it and what proves that it is gone.

A FaultType is merged field by field over the built-in entry of its name. So nothing here has a default: None is "not
given", and anything else, an empty list too, is meant.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sickbay.api.base import Nullable, Part, Rule, says
from sickbay.api.fields import Count, Duration, Expression, Key, Line, Word
from sickbay.api.meta import ConditionedStatus, Object
from sickbay.api.words import Action, ClearsBy, FaultClass, Scope, Severity, Urgency


class ConditionMatch(Part):
    """A Node condition."""

    type: Annotated[Line, says("Condition type", required=True, minLength=1)] = ""
    status: Annotated[str, says("Status that is bad; absent = True", enum=["True", "False", "Unknown"])] = ""
    reason: Annotated[Line | None, says("Regular expression (RE2) on the reason; absent = any")] = None
    not_reason: Annotated[Line | None, says("Reasons that are another fault, as a regular expression (RE2)")] = None


class EventMatch(Part):
    """Events of another detector; convert turns them into a condition first."""

    source: Annotated[Line | None, says("Reporting component; absent = any")] = None
    reason: Annotated[Line, says("Event reason", required=True, minLength=1)] = ""
    type: Annotated[str | None, says("Event type; absent = any", enum=["Normal", "Warning"])] = None
    count: Annotated[Count | None, says("So many events within the window; absent = 1")] = None
    window: Annotated[Duration | None, says("The window; absent = 10m")] = None


class ObjectMatch(Part):
    """Any other object."""

    api_version: Annotated[Line, says("apiVersion of the object", required=True, minLength=1)] = ""
    kind: Annotated[Word, says("Its kind", required=True, minLength=1)] = ""
    cel: Annotated[Expression, says("True when it shows the fault; variable: object", required=True)] = ""
    node: Annotated[Expression, says("Name of the node; variable: object", required=True)] = ""


class AlertMatch(Part):
    """An alert received over the webhook."""

    name: Annotated[Line, says("alertname", required=True, minLength=1)] = ""
    labels: Annotated[Nullable[dict[str, Line]], says("Labels it must carry", maxProperties=16)] = {}
    node: Annotated[Key, says("Label that names the node", required=True, minLength=1)] = ""


class Match(Part):
    """One way to recognise the fault; exactly one key."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "[has(self.condition), has(self.cel), has(self.event), has(self.object), has(self.alert)]"
            ".filter(given, given).size() == 1",
            "a match needs exactly one of condition, cel, event, object and alert",
            "write several matches as several list entries",
        ),
    )

    condition: Annotated[ConditionMatch | None, says("A condition of the Node")] = None
    cel: Annotated[Expression | None, says("A CEL expression; variable: node")] = None
    event: Annotated[EventMatch | None, says("Events of another detector")] = None
    object: Annotated[ObjectMatch | None, says("Any other object")] = None
    alert: Annotated[AlertMatch | None, says("An alert received over the webhook")] = None


class Rung(Part):
    """One rung of a remedy ladder."""

    action: Annotated[str, says("What to do", required=True, enum=Action)] = ""
    attempts: Annotated[int | None, says("How often to try it; absent = once", minimum=1, maximum=5)] = None
    timeout: Annotated[Duration | None, says("How long one attempt may take; absent = by action")] = None
    args: Annotated[
        Nullable[dict[str, Line]], says("What the action needs to know, such as service", maxProperties=16)
    ] = {}


class Validation(Part):
    """How recovery is confirmed."""

    ceiling: Annotated[Duration | None, says("Give up after; absent = by action")] = None
    soak: Annotated[Duration | None, says("Stay well for so long; absent = by action")] = None
    level: Annotated[int | None, says("Diagnostics up to this level", minimum=0, maximum=3)] = None
    checks: Annotated[list[Word] | None, says("Further checks by name", maxItems=16)] = None


class FaultTypeSpec(Part):
    """Recognition, remedy and proof; every field optional, merged over the built-in entry of the same name."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.scope) || self.scope != 'Domain' || (has(self.domain) && self.domain != '')",
            "scope Domain needs a domain",
            "set domain to the topology label whose value names the failure domain",
            field=".domain",
        ),
    )

    class_: Annotated[str | None, says("Arbitration class", enum=FaultClass)] = None
    severity: Annotated[str | None, says("How bad it is", enum=Severity)] = None
    scope: Annotated[str | None, says("What is affected: a device, the node, or a failure domain", enum=Scope)] = None
    domain: Annotated[Key | None, says("Topology label of the domain; required with scope Domain")] = None
    match: Annotated[list[Match] | None, says("How it is recognised: any of", maxItems=16)] = None
    for_: Annotated[
        Duration | None,
        says("The match must last so long; above 2m a repair in phase Pending is the timer"),
    ] = None
    urgency: Annotated[str | None, says("When the node leaves", enum=Urgency)] = None
    ceiling: Annotated[
        Duration | None, says("Longest wait of this urgency; then the next stronger one, behind a gate by People")
    ] = None
    isolate_device: Annotated[
        bool | None, says("Isolating the device is enough; only in pools that opt in for this type")
    ] = None
    remedy: Annotated[list[Rung] | None, says("The ladder: what is tried, in this order", maxItems=8)] = None
    clears_by: Annotated[str | None, says("What proves that the fault is gone", enum=ClearsBy)] = None
    validation: Annotated[Validation | None, says("How recovery is confirmed")] = None
    labels: Annotated[dict[str, Word] | None, says("For selection by rules", maxProperties=16)] = None


class FaultType(Object):
    """What is known about a fault: how to recognise it, what helps, what proves that it is gone."""

    kind: str = msgspec.field(default_factory=lambda: "FaultType")
    spec: Annotated[Nullable[FaultTypeSpec], says("What is known about the fault", required=True)] = msgspec.field(
        default_factory=FaultTypeSpec
    )
    status: Annotated[Nullable[ConditionedStatus], says("What the controller found")] = msgspec.field(
        default_factory=ConditionedStatus
    )
