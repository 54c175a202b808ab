"""Alibaba ECS and EGS: system events, as DescribeInstanceHistoryEvents lists them and as CloudMonitor pushes them.

Explicit ends, and no way back from running to planned. An id may come again for a new occurrence; then its publish time
is later. In the pushed form the envelope's `id` and `name` can be the same in all states of an event: only what stands
in `content` counts.
"""

from __future__ import annotations

from typing import Any

from sickbay.api.words import InfraPhase
from sickbay.convert import payload
from sickbay.convert.kinds import EventKind, plain
from sickbay.convert.notice import Notice, Undecodable, moment
from sickbay.convert.vocabulary import Vocabulary

SOURCE = "alibaba-ecs"

_KINDS = {
    "SystemMaintenance.Reboot": EventKind.REBOOT,
    "SystemMaintenance.Redeploy": EventKind.REDEPLOY,
    "SystemMaintenance.Stop": EventKind.STOP,
    "SystemMaintenance.StopAndRepair": EventKind.HARDWARE,
    "SystemMaintenance.IsolateErrorDisk": EventKind.DISK_REPAIR,
    "SystemMaintenance.ReInitErrorDisk": EventKind.DISK_REPAIR,
    "SystemMaintenance.RebootAndIsolateErrorDisk": EventKind.DISK_REPAIR,
    "SystemMaintenance.RebootAndReInitErrorDisk": EventKind.DISK_REPAIR,
    "SystemMaintenance.PerformanceImpact": EventKind.FREEZE,
    "SystemUpgrade.Migrate": EventKind.REBOOT,
    "SystemFailure.Reboot": EventKind.FAILURE_REBOOT,
    "SystemFailure.Redeploy": EventKind.FAILURE_REDEPLOY,
    "SystemFailure.Stop": EventKind.FAILURE_STOP,
    "SystemFailure.Delete": EventKind.TERMINATE,
    "InstanceFailure.Reboot": EventKind.FAILURE_REBOOT,
    "InstanceFailure.Alert": EventKind.IMPAIRED,
    "ErrorDetected": EventKind.IMPAIRED,
    "Stalled": EventKind.IMPAIRED,
    "PreemptibleInstanceInterruption": EventKind.PREEMPT,
}

VOCABULARY = Vocabulary(
    SOURCE,
    phases={
        "inquiring": InfraPhase.INQUIRING,
        "scheduled": InfraPhase.SCHEDULED,
        "executing": InfraPhase.EXECUTING,
        "executed": InfraPhase.COMPLETED,
        "avoided": InfraPhase.AVOIDED,
        "canceled": InfraPhase.CANCELLED,
        "failed": InfraPhase.FAILED,
    },
    kinds={plain(type_): kind for type_, kind in _KINDS.items()},
    patterns=((r"(InstanceExpiration|AccountUnbalanced|SecurityPunish)\..*", EventKind.ACCOUNT),),
    says_the_end=True,
    moves_back=False,
)


def listed(body: bytes) -> list[Notice]:
    """An answer of DescribeInstanceHistoryEvents. Raises Undecodable.

    One without RequestId or without the list is no empty list: the vendor's models turn anything into one.
    """
    answer = payload.mapping(payload.decode(body), "the answer")
    payload.needed(answer, "RequestId", "the answer")
    events = payload.mapping(answer.get("InstanceSystemEventSet"), "InstanceSystemEventSet")
    if "InstanceSystemEventType" not in events:
        raise Undecodable("InstanceSystemEventSet.InstanceSystemEventType is missing")
    where = "InstanceSystemEventType"
    return [_entry(item, place) for place, item in payload.entries(events["InstanceSystemEventType"], where)]


def _entry(item: dict[str, Any], where: str) -> Notice:
    return Notice(
        source=SOURCE,
        id=payload.needed(item, "EventId", where),
        type=_name(item.get("EventType")),
        phase=_name(item.get("EventCycleStatus")),
        resource=payload.text(item.get("InstanceId")),
        not_before=moment(item.get("NotBefore")),
        published=moment(item.get("EventPublishTime")),
    )


def _name(value: object) -> str:
    """`{Code, Name}`, or the bare name."""
    return payload.text(value.get("Name")) if isinstance(value, dict) else payload.text(value)


def pushed(body: bytes) -> list[Notice]:
    """A message of CloudMonitor. Raises Undecodable. A status notification has no event id and is no event."""
    message = payload.mapping(payload.decode(body), "the message")
    content = payload.mapping(message.get("content"), "content")
    if not payload.text(content.get("eventId")):
        return []
    name = payload.text(message.get("name")).split(":")
    status = payload.text(content.get("eventStatus")) or (name[2] if len(name) > 2 else "")
    made = Notice(
        source=SOURCE,
        id=payload.text(content["eventId"]),
        type=payload.text(content.get("eventType")) or (name[1] if len(name) > 1 else ""),
        phase=status,
        resource=payload.text(content.get("instanceId")),
        not_before=moment(content.get("notBefore")),
        published=moment(content.get("publishTime")),
    )
    return [made]
