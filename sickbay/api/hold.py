"""Hold: stop, pause, opt-out, declared maintenance."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sickbay.api.base import Nullable, Part, Rule, says
from sickbay.api.fields import FaultName, Line, Name, Text, Time
from sickbay.api.meta import ConditionedStatus, LabelSelector, Object, not_empty
from sickbay.api.words import HoldLevel


class HoldScope(Part):
    """What is held; any of."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(has(self.all) && self.all) || (has(self.pools) && size(self.pools) > 0)"
            " || (has(self.nodes) && size(self.nodes) > 0) || has(self.nodeSelector)",
            "the hold is about nothing",
            "give pools, nodes or nodeSelector, or all: true for everything",
        ),
        Rule(
            f"!has(self.nodeSelector) || {not_empty('self.nodeSelector')}",
            "nodeSelector selects every node",
            "give matchLabels or matchExpressions, or use all: true",
            field=".nodeSelector",
        ),
    )

    all: Annotated[bool, says("Everything")] = False
    pools: Annotated[Nullable[list[Name]], says("Nodes of these pools", maxItems=128)] = []
    nodes: Annotated[Nullable[list[Name]], says("These nodes", maxItems=256)] = []
    node_selector: Annotated[LabelSelector | None, says("Nodes with these labels")] = None


class HoldSpec(Part):
    """What is held, how firmly, why and until when."""

    scope: Annotated[Nullable[HoldScope], says("What is held; may not be empty", required=True)] = msgspec.field(
        default_factory=HoldScope
    )
    level: Annotated[
        str,
        says(
            "NewRepairs: no repair starts. NextStep: open ones stop at the end of their step too. EveryAct: all is "
            "frozen as it is, releases and rollbacks too",
            enum=HoldLevel,
        ),
    ] = "NewRepairs"
    reason: Annotated[Text, says("Why, for people")] = ""
    owner: Annotated[Line, says("Who to ask")] = ""
    until: Annotated[Time | None, says("When it ends by itself; absent = when it is deleted")] = None
    faults: Annotated[Nullable[list[FaultName]], says("Only repairs of these fault types", maxItems=128)] = []


class Hold(Object):
    """Stop, pause, opt-out or declared maintenance."""

    kind: str = msgspec.field(default_factory=lambda: "Hold")
    spec: Annotated[Nullable[HoldSpec], says("What is held", required=True)] = msgspec.field(default_factory=HoldSpec)
    status: Annotated[Nullable[ConditionedStatus], says("What the controller found")] = msgspec.field(
        default_factory=ConditionedStatus
    )
