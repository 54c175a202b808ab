"""Which faults a rule entry or an override is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from sickbay.api.base import Nullable, Part, says
from sickbay.api.fields import FaultName, Word
from sickbay.api.words import FaultClass, Severity


class FaultSelector(Part):
    """Faults by name, class, severity and label; all given keys must match, none given matches every fault."""

    names: Annotated[Nullable[list[FaultName]], says("Names of fault types, any of them", maxItems=128)] = []
    classes: Annotated[
        Nullable[list[Annotated[str, says(enum=FaultClass)]]], says("Classes, any of them", maxItems=3)
    ] = []
    severities: Annotated[
        Nullable[list[Annotated[str, says(enum=Severity)]]], says("Severities, any of them", maxItems=4)
    ] = []
    labels: Annotated[
        Nullable[dict[str, Word]], says("Labels the fault type must carry in spec.labels", maxProperties=16)
    ] = {}

    def matches(self, name: str, class_: str, severity: str, labels: Mapping[str, str]) -> bool:
        if self.names and name not in self.names:
            return False
        if self.classes and class_ not in self.classes:
            return False
        if self.severities and severity not in self.severities:
            return False
        return all(labels.get(key) == value for key, value in self.labels.items())
