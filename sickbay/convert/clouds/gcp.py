"""GCP: upcoming maintenance of an instance, from the API and from the metadata server.

There is no event id and no word for the end: what is announced is a field of the instance that disappears. The id made
up here is the numeric instance id alone, because the window moves when maintenance is accepted or rescheduled, and a
moved window is the same event.
"""

from __future__ import annotations

from typing import Any

from sickbay.api.words import InfraPhase
from sickbay.convert import payload
from sickbay.convert.kinds import EventKind, plain
from sickbay.convert.notice import Notice, Undecodable, moment
from sickbay.convert.vocabulary import Vocabulary

SOURCE = "gcp"

_KINDS = {
    "SCHEDULED": EventKind.REBOOT,
    "MULTIPLE": EventKind.REBOOT,
    "PLANNED_UPDATE": EventKind.REBOOT,
    "PLANNED_NETWORK_UPDATE": EventKind.REBOOT,
    "INFRASTRUCTURE_RELOCATION": EventKind.REBOOT,
    "TERMINATE_ON_HOST_MAINTENANCE": EventKind.REBOOT,
    "MIGRATE_ON_HOST_MAINTENANCE": EventKind.FREEZE,
    "UNSCHEDULED": EventKind.HARDWARE,
    "hostError": EventKind.FAILURE_REBOOT,
}

VOCABULARY = Vocabulary(
    SOURCE,
    phases={
        "pending": InfraPhase.SCHEDULED,
        "pendingcanreschedule": InfraPhase.INQUIRING,
        "ongoing": InfraPhase.EXECUTING,
    },
    kinds={plain(type_): kind for type_, kind in _KINDS.items()},
    patterns=((r"FAILURE_[A-Z_]+", EventKind.HARDWARE),),
)
_NOTHING = ("NONE", "FALSE", "")


def upcoming(instance: object, node: str = "") -> list[Notice]:
    """An instance as the API shows it. Raises Undecodable for one without its numeric id."""
    found = payload.mapping(instance, "the instance")
    id_ = payload.needed(found, "id", "the instance")
    if not id_.isdecimal():
        raise Undecodable(f"id of the instance must be its numeric id, not {id_!r}: names are used again")
    status = payload.mapping(found.get("resourceStatus") or {}, "resourceStatus")
    maintenance = status.get("upcomingMaintenance")
    if maintenance is None:
        return []
    return [_notice(payload.mapping(maintenance, "upcomingMaintenance"), id_, node)]


def metadata(status: int, body: bytes, instance: str, node: str = "") -> list[Notice] | None:
    """An answer of `instance/upcoming-maintenance?alt=json`. None: it says nothing; only 200 decides.

    Raises Undecodable for a 200 that is not what the server sends.
    """
    if status != 200:
        return None
    if body.decode("utf-8", "replace").strip().strip('"').upper() in _NOTHING:
        return []
    found = payload.mapping(payload.decode(body), "the answer")
    if "error" in found:
        return []
    return [_notice({_camel(str(key)): value for key, value in found.items()}, instance, node)]


def _camel(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _notice(found: dict[str, Any], instance: str, node: str) -> Notice:
    phase = payload.text(found.get("maintenanceStatus")) or "PENDING"
    if phase == "PENDING" and found.get("canReschedule") in (True, "true", "True", "TRUE"):
        phase = "PENDING canReschedule"
    return Notice(
        source=SOURCE,
        id=instance,
        type=_type(found),
        phase=phase,
        resource=instance,
        node=node,
        not_before=moment(found.get("windowStartTime") or found.get("startTime")),
    )


def _type(found: dict[str, Any]) -> str:
    """A reason that names broken hardware says more than the type; so does a type more than a planned reason."""
    reasons = found.get("maintenanceReasons")
    words = sorted(filter(None, map(payload.text, reasons if isinstance(reasons, list) else [])))
    failures = [word for word in words if word.startswith("FAILURE_")]
    return failures[0] if failures else payload.text(found.get("type")) or (words[0] if words else "")
