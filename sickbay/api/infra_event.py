"""InfraEvent: what a provider announced for a machine, in our words."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sickbay.api.base import Nullable, Part, Rule, says
from sickbay.api.fields import Line, Name, Time, Uid, Word
from sickbay.api.meta import Condition, Object
from sickbay.api.words import InfraPhase, Scope


class EventNode(Part):
    """The Node concerned; empty when it is not in the cluster."""

    name: Annotated[Name, says("Name of the Node")] = ""
    uid: Annotated[Uid, says("UID of the Node")] = ""


class InfraEventSpec(Part):
    """What was announced."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.source == oldSelf.source && self.id == oldSelf.id",
            "source and id are what the event is",
            "create another InfraEvent for another event",
            field=".id",
        ),
    )

    source: Annotated[Word, says("Where it came from, such as alibaba-ecs", required=True, minLength=1)] = ""
    id: Annotated[Line, says("The provider's own id", required=True, minLength=1)] = ""
    type: Annotated[Line, says("The provider's own type", required=True, minLength=1)] = ""
    resource: Annotated[Line, says("The provider's id of the machine")] = ""
    node: Annotated[Nullable[EventNode], says("The Node concerned")] = msgspec.field(default_factory=EventNode)
    scope: Annotated[str, says("What is affected", enum=Scope)] = "Node"
    not_before: Annotated[Time | None, says("Earliest moment at which the provider acts by itself")] = None


class InfraEventStatus(Part):
    """Where it stands."""

    phase: Annotated[str, says("Where it stands, in our words", enum=InfraPhase)] = "Inquiring"
    upstream_phase: Annotated[Line, says("Where it stands, in the provider's words")] = ""
    since: Annotated[Time | None, says("Since when it is in this phase")] = None
    last_seen: Annotated[Time | None, says("When the provider last listed it")] = None
    terminal: Annotated[bool, says("Nothing more will come of it")] = False
    published: Annotated[Time | None, says("When the provider published this occurrence, where it says so")] = None
    boot_id: Annotated[Uid, says("Boot of the node when it was announced")] = ""
    phase_boot_id: Annotated[Uid, says("Boot of the node when the phase began")] = ""
    notified: Annotated[Nullable[dict[str, Line]], says("What people were told, and when", maxProperties=64)] = {}
    conditions: Annotated[
        Nullable[list[Condition]],
        says("What was found, by type", maxItems=32, list_type="map", list_map_keys=["type"]),
    ] = []


class InfraEvent(Object):
    """What a provider announced for a machine."""

    kind: str = msgspec.field(default_factory=lambda: "InfraEvent")
    spec: Annotated[Nullable[InfraEventSpec], says("What was announced", required=True)] = msgspec.field(
        default_factory=InfraEventSpec
    )
    status: Annotated[Nullable[InfraEventStatus], says("Where it stands")] = msgspec.field(
        default_factory=InfraEventStatus
    )
