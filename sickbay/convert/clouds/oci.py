"""OCI: instance maintenance events. Explicit ids and explicit ends; the time of an event can be moved."""

from __future__ import annotations

from sickbay.api.words import InfraPhase
from sickbay.convert import payload
from sickbay.convert.kinds import EventKind, plain
from sickbay.convert.notice import Notice, moment
from sickbay.convert.vocabulary import Vocabulary

SOURCE = "oci"

_KINDS = {
    "REBOOT_MIGRATION": EventKind.REBOOT,
    "TERMINATE": EventKind.TERMINATE,
    "STOP": EventKind.STOP,
    "NONE": EventKind.FREEZE,
    "HARDWARE_REPLACEMENT": EventKind.HARDWARE,
    "EVACUATION": EventKind.REBOOT,
    "ENVIRONMENTAL_FACTORS": EventKind.REBOOT,
    "DECOMMISSION": EventKind.RETIREMENT,
    "FIRMWARE_UPDATE": EventKind.REBOOT,
    "SECURITY_UPDATE": EventKind.REBOOT,
}

VOCABULARY = Vocabulary(
    SOURCE,
    phases={
        "scheduled": InfraPhase.SCHEDULED,
        "scheduledcanreschedule": InfraPhase.INQUIRING,
        "started": InfraPhase.EXECUTING,
        "processing": InfraPhase.EXECUTING,
        "succeeded": InfraPhase.COMPLETED,
        "failed": InfraPhase.FAILED,
        "canceled": InfraPhase.CANCELLED,
    },
    kinds={plain(type_): kind for type_, kind in _KINDS.items()},
    says_the_end=True,
)


def maintenance_events(body: bytes) -> list[Notice]:
    """A page of list_instance_maintenance_events. Raises Undecodable."""
    answer = payload.decode(body)
    items = answer.get("items") if isinstance(answer, dict) else answer
    found = []
    for where, item in payload.entries(items, "items"):
        phase = payload.text(item.get("lifecycleState"))
        if phase == "SCHEDULED" and item.get("canReschedule") is True:
            phase = "SCHEDULED canReschedule"
        found.append(
            Notice(
                source=SOURCE,
                id=payload.needed(item, "id", where),
                type=payload.text(item.get("instanceAction")) or payload.text(item.get("maintenanceReason")),
                phase=phase,
                resource=payload.text(item.get("instanceId")),
                not_before=moment(item.get("timeWindowStart")),
            )
        )
    return found
