"""Metadata, conditions and selectors: what every kind shares with Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from sickbay.api import names
from sickbay.api.base import CorePart, Nullable, Part, Rule, says
from sickbay.api.fields import Key, LabelValue, Time


class OwnerReference(CorePart, frozen=True):
    """Who an object belongs to, by UID."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(CorePart, frozen=True):
    """metadata without managedFields, which nothing here reads. Times are RFC 3339 text."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Nullable[dict[str, str]] = {}
    annotations: Nullable[dict[str, str]] = {}
    finalizers: Nullable[list[str]] = []
    owner_references: Nullable[list[OwnerReference]] = []

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object, if any."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Condition(Part):
    """A condition in the status of an own kind."""

    type: Annotated[str, says("What is judged", required=True, maxLength=316, minLength=1)] = ""
    status: Annotated[str, says("True, False or Unknown", required=True, enum=["True", "False", "Unknown"])] = ""
    observed_generation: Annotated[int, says("metadata.generation of the spec that was judged", minimum=0)] = 0
    last_transition_time: Annotated[Time | None, says("When status last changed")] = None
    reason: Annotated[str, says("One word for machines", maxLength=1024)] = ""
    message: Annotated[str, says("For people", maxLength=4096)] = ""


class SelectorRequirement(CorePart, frozen=True):
    """One expression of a label selector."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "operator and values do not go together",
            "give values with In and NotIn, and none with Exists and DoesNotExist",
            field=".values",
        ),
    )

    key: Annotated[Key, says("Label key", required=True, minLength=1)] = ""
    operator: Annotated[
        str,
        says("How key and values relate", required=True, enum=["In", "NotIn", "Exists", "DoesNotExist"]),
    ] = ""
    values: Annotated[
        Nullable[list[LabelValue]],
        says("Needed for In and NotIn, empty otherwise", maxItems=64),
    ] = []

    def matches(self, labels: Mapping[str, str]) -> bool:
        """False for an operator this version does not know: an unknown selector selects nothing."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return self.key not in labels or labels[self.key] not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
        return False


class LabelSelector(CorePart, frozen=True):
    """A Kubernetes label selector: all parts must match, and the empty one matches everything."""

    match_labels: Annotated[
        Nullable[dict[str, LabelValue]],
        says("Labels that must have exactly these values", maxProperties=32),
    ] = {}
    match_expressions: Annotated[
        Nullable[list[SelectorRequirement]], says("Further requirements, all of which must hold", maxItems=16)
    ] = []

    def matches(self, labels: Mapping[str, str]) -> bool:
        if any(labels.get(key) != value for key, value in self.match_labels.items()):
            return False
        return all(requirement.matches(labels) for requirement in self.match_expressions)

    @property
    def empty(self) -> bool:
        return not self.match_labels and not self.match_expressions


def not_empty(selector: str) -> str:
    """CEL: the label selector at this path, which must exist, names at least one requirement."""
    return (
        f"(has({selector}.matchLabels) && size({selector}.matchLabels) > 0)"
        f" || (has({selector}.matchExpressions) && size({selector}.matchExpressions) > 0)"
    )


class ConditionedStatus(Part):
    """Status of a kind that people write: was it read, and what was found."""

    observed_generation: Annotated[int, says("metadata.generation of the spec last read", minimum=0)] = 0
    conditions: Annotated[
        Nullable[list[Condition]],
        says("What was found, by type", maxItems=32, list_type="map", list_map_keys=["type"]),
    ] = []

    def condition(self, type_: str) -> Condition | None:
        return next((c for c in self.conditions if c.type == type_), None)


class Identified:
    """What every object says of itself in its metadata."""

    __slots__ = ()

    if TYPE_CHECKING:
        metadata: ObjectMeta

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None


class Object(Part, Identified):
    """Base of our own kinds. Mutable, unlike its metadata: build it, then create it or work on a copy."""

    api_version: str = msgspec.field(default_factory=lambda: names.API_VERSION)
    kind: str = ""
    metadata: Nullable[ObjectMeta] = msgspec.field(default_factory=ObjectMeta)
