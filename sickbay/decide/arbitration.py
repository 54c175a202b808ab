"""Which of a node's faults leads: the highest class, then severity, then strength of remedy.

The others ride along as secondary faults and must be clear too before the node returns.
"""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.api.actions import ACTIONS
from sickbay.api.fault_type import FaultType
from sickbay.decide.faults import Active

CLASSES = {"Node": 3, "GPU": 2, "System": 1}
SEVERITIES = {"Critical": 4, "Error": 3, "Warning": 2, "Info": 1}


def strength(fault: FaultType) -> int:
    """Strength of the first rung: what the fault asks for before anything was tried."""
    first = next(iter(fault.spec.remedy or ()), None)
    known = ACTIONS.get(first.action) if first is not None else None
    return known.strength if known is not None else 0


def rank(fault: FaultType) -> tuple[int, int, int]:
    """Greater leads."""
    spec = fault.spec
    return CLASSES.get(spec.class_ or "", 0), SEVERITIES.get(spec.severity or "", 0), strength(fault)


def ordered(active: Iterable[Active]) -> list[Active]:
    """The leading fault first; equal ones by name, so that the order of arrival decides nothing."""
    return sorted(active, key=lambda a: (tuple(-part for part in rank(a.type)), a.name))
