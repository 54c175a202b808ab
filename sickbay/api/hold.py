"""Hold: stop, pause, opt-out, declared maintenance."""

from __future__ import annotations

from typing import Annotated

import msgspec

from sickbay.api.base import Nullable, Part, says
from sickbay.api.fields import FaultName, Line, Name, Text, Time
from sickbay.api.meta import ConditionedStatus, LabelSelector, Object
from sickbay.api.words import HoldLevel


class HoldScope(Part):
    """What is held; any of."""

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
