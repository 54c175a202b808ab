"""Azure: scheduled events of the metadata service.

Every machine of an availability set sees the events of all, so those of others have to be left out; an event for
several machines is one event for each. There is no word for the end: the event is no longer listed. `NotBefore` is
empty once an event has started.
"""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.api.words import InfraPhase
from sickbay.convert import payload
from sickbay.convert.kinds import EventKind
from sickbay.convert.notice import Notice, Undecodable, moment
from sickbay.convert.vocabulary import Vocabulary

SOURCE = "azure"

VOCABULARY = Vocabulary(
    SOURCE,
    phases={"scheduled": InfraPhase.SCHEDULED, "started": InfraPhase.EXECUTING},
    kinds={
        "freeze": EventKind.FREEZE,
        "reboot": EventKind.REBOOT,
        "redeploy": EventKind.REDEPLOY,
        "preempt": EventKind.PREEMPT,
        "terminate": EventKind.TERMINATE,
    },
)


def scheduled_events(body: bytes, nodes: Iterable[tuple[str, str]] = ()) -> list[Notice]:
    """An answer of `/metadata/scheduledevents`. Raises Undecodable; one without `Events` is no empty list.

    `nodes` are (name of the machine as Azure has it, name of its Node) of those to report on; empty = all.
    """
    document = payload.mapping(payload.decode(body), "the document")
    if "Events" not in document:
        raise Undecodable("the document has no Events")
    known = {machine.lower(): node for machine, node in nodes}
    found = []
    for where, event in payload.entries(document["Events"], "Events"):
        id_, resources = payload.needed(event, "EventId", where), event.get("Resources") or []
        if not isinstance(resources, list):
            raise Undecodable(f"{where}.Resources must be a list")
        for resource in map(payload.text, resources):
            if resource and (not known or resource.lower() in known):
                found.append(
                    Notice(
                        source=SOURCE,
                        id=f"{id_}/{resource}"[: payload.TEXT_MAX],
                        type=payload.text(event.get("EventType")),
                        phase=payload.text(event.get("EventStatus")),
                        resource=resource,
                        node=known.get(resource.lower(), ""),
                        not_before=moment(event.get("NotBefore")),
                    )
                )
    return found
