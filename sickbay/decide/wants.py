"""Which slot a repair needs where it stands, from its own record alone."""

from __future__ import annotations

from sickbay.api.actions import ACTIONS
from sickbay.api.node_repair import NodeRepair

STARTING = ("WaitingSlot", "Running", "Cancelling")


def wanted_slot(repair: NodeRepair) -> str:
    """Unavailable, Repair, Validate, or "" when it needs none at this point.

    A repair that waits for an approval, for people or for a third party holds no slot: it would keep others from
    being repaired for as long as somebody is asleep.
    """
    status = repair.status
    if repair.spec.group.id and status.phase == "Pending" and status.current.step == "Repair":
        # Drained, and waiting for the others or for the act on the whole domain: the group keeps its slot.
        return "Repair" if status.current.waits_for in ("Pods", "Provider") else ""
    if status.phase not in STARTING:
        return ""
    step = status.current.step
    if status.phase == "Cancelling":
        return ""
    if step == "Quarantine":
        return "Unavailable"
    if step == "Drain":
        return "Repair"
    if step == "Validate":
        return "Validate"
    if step == "Repair":
        action = ACTIONS.get(status.current.action)
        return "Repair" if action is None or (action.disruptive or action.name.startswith("Restart")) else ""
    return ""
