"""Does a fault ask anything of the node?"""

from __future__ import annotations

from sickbay.api.actions import NO_NODE_REPAIR
from sickbay.api.fault_type import FaultType


def wants_repair(fault: FaultType) -> bool:
    """False for faults that are only recorded, or whose remedy is the restart of an application.

    An empty ladder is a repair too: the node is taken out and waits for the fault to clear (job.suspect).
    """
    remedy = fault.spec.remedy
    if not remedy:
        return remedy is not None
    return any(rung.action not in NO_NODE_REPAIR for rung in remedy)
