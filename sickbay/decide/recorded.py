"""A fault whose type is in the catalogue no more, judged by what its record kept of it.

Open repairs go on with the catalogue they began with. A FaultType that is deleted in mid-repair takes its match away,
but the record knows which condition showed the fault, with which status, and which proof its type asked for. What was
recognised by an expression cannot be seen any more: that is neither a fault nor a recovery, so nothing begins for it.
"""

from __future__ import annotations

from sickbay.api.core import Node
from sickbay.api.fault_type import ConditionMatch, FaultType, FaultTypeSpec, Match, Validation
from sickbay.api.meta import ObjectMeta
from sickbay.api.node_repair import RepairFault
from sickbay.decide.faults import Active, moment

BY_CONDITION = "condition/"


def type_of(fault: RepairFault, node: Node | None) -> FaultType | None:
    """What the record says of its type; None where it was not read from a condition, or the node has that no more.

    A condition that has gone from the node along with the type was removed, not cleared.
    """
    source, status = fault.source.id.partition("@")[0], fault.source.status
    named = source.removeprefix(BY_CONDITION)
    if named == source or not status or node is None or node.condition(named) is None:
        return None
    match = Match(condition=ConditionMatch(type=named, status=status))
    validation = Validation(soak=fault.soak) if fault.soak else None
    spec = FaultTypeSpec(match=[match], clears_by=fault.clears_by, for_=fault.for_, validation=validation)
    return FaultType(metadata=ObjectMeta(name=fault.type), spec=spec)


def active(fault: RepairFault, known: FaultType, node: Node) -> Active | None:
    """The fault as the node shows it now; None when it does not."""
    match = (known.spec.match or [Match()])[0].condition
    condition = node.condition(match.type) if match is not None else None
    if match is None or condition is None or condition.status != match.status:
        return None
    since, source = moment(condition.last_transition_time), f"{BY_CONDITION}{match.type}"
    devices, status = tuple(fault.devices), condition.status
    return Active(fault.type, known, since, source, condition.reason, condition.message, devices, status)
