"""AWS: scheduled events of EC2 (API and metadata service) and AWS Health.

EC2 events have no status: they are listed until they are over, and then for up to a week with "[Completed]" or
"[Canceled]" before the description. A Health event concerns many entities; each of them is an event of its own here,
because each ends on its own. 404 of the metadata service means "none"; every other error means nothing.
"""

from __future__ import annotations

import re
from typing import Any

from sickbay.api.words import InfraPhase
from sickbay.convert import payload
from sickbay.convert.kinds import EventKind, plain
from sickbay.convert.notice import Notice, moment
from sickbay.convert.vocabulary import Vocabulary

SOURCE = "aws"

_KINDS = {
    "instance-reboot": EventKind.REBOOT,
    "system-reboot": EventKind.REBOOT,
    "system-maintenance": EventKind.FREEZE,
    "instance-retirement": EventKind.RETIREMENT,
    "instance-stop": EventKind.STOP,
    "instance-action/terminate": EventKind.PREEMPT,
    "instance-action/stop": EventKind.PREEMPT,
    "instance-action/hibernate": EventKind.PREEMPT,
    "status-check": EventKind.IMPAIRED,
    "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED": EventKind.RETIREMENT,
    "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED": EventKind.REBOOT,
    "AWS_EC2_INSTANCE_REBOOT_FLEXIBLE_MAINTENANCE_SCHEDULED": EventKind.REBOOT,
}

VOCABULARY = Vocabulary(
    SOURCE,
    phases={
        "active": InfraPhase.SCHEDULED,
        "completed": InfraPhase.COMPLETED,
        "canceled": InfraPhase.CANCELLED,
        "upcoming": InfraPhase.SCHEDULED,
        "open": InfraPhase.EXECUTING,
        "impaired": InfraPhase.EXECUTING,
        "closed": InfraPhase.COMPLETED,
        "resolved": InfraPhase.COMPLETED,
    },
    kinds={plain(type_): kind for type_, kind in _KINDS.items()},
    patterns=((r"AWS_(BILLING|ACCOUNT|RISK|ABUSE)_.*", EventKind.ACCOUNT),),
)

_ENDED = re.compile(r"\[(Completed|Canceled)\]")


def instance_status(answer: object) -> list[Notice]:
    """An answer of DescribeInstanceStatus as botocore hands it out (moments already as text). Raises Undecodable."""
    found = []
    statuses = payload.mapping(answer, "the answer").get("InstanceStatuses")
    for where, status in payload.entries(statuses, "InstanceStatuses"):
        instance = payload.needed(status, "InstanceId", where)
        for place, event in payload.entries(status.get("Events"), f"{where}.Events"):
            description = payload.text(event.get("Description"))
            ended = _ENDED.match(description)
            found.append(
                Notice(
                    source=SOURCE,
                    id=payload.needed(event, "InstanceEventId", place),
                    type=payload.text(event.get("Code")),
                    phase=ended[1].lower() if ended else "active",
                    resource=instance,
                    not_before=moment(event.get("NotBefore")),
                )
            )
    return found


def metadata(status: int, body: bytes, instance: str, node: str = "") -> list[Notice] | None:
    """An answer of `/latest/meta-data/events/maintenance/scheduled`. None: it says nothing (401, 5xx, a proxy).

    Raises Undecodable for a 200 that is not what the service sends.
    """
    if status == 404:
        return []
    if status != 200:
        return None
    return [
        Notice(
            source=SOURCE,
            id=payload.needed(event, "EventId", where),
            type=payload.text(event.get("Code")),
            phase=payload.text(event.get("State")),
            resource=instance,
            node=node,
            not_before=moment(event.get("NotBefore")),
        )
        for where, event in payload.entries(payload.decode(body), "events")
    ]


def health(body: bytes) -> list[Notice]:
    """An event of AWS Health from EventBridge. Raises Undecodable."""
    event = payload.mapping(payload.decode(body), "the event")
    detail = payload.mapping(event.get("detail"), "detail")
    arn = payload.needed(detail, "eventArn", "detail")
    return [
        _entity(detail, arn, entity, where)
        for where, entity in payload.entries(detail.get("affectedEntities"), "detail.affectedEntities")
    ]


def _entity(detail: dict[str, Any], arn: str, entity: dict[str, Any], where: str) -> Notice:
    """Closed for an entity only where the entity itself is resolved; IMPAIRED after the end is a bad end."""
    value, own = payload.needed(entity, "entityValue", where), payload.text(entity.get("status")).lower()
    phase = payload.text(detail.get("statusCode")) or "open"
    if own in ("resolved", "unimpaired"):
        phase = "resolved"
    elif phase == "closed" and own == "impaired":
        phase = "failed"
    elif phase == "closed" and own in ("pending", "unknown"):
        phase = "open"
    return Notice(
        source=SOURCE,
        id=f"{arn}/{value}"[-payload.TEXT_MAX :],
        type=payload.text(detail.get("eventTypeCode")),
        phase=phase,
        resource=value,
        not_before=moment(detail.get("startTime")),
    )
