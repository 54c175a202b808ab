"""Injections into what clouds and other outside systems say."""

from __future__ import annotations

from datetime import timedelta

from sickbay.api.duration import parse_duration
from sickbay.clock import parse_time, rfc3339
from sickbay.convert.notice import Notice
from sickbay.sim.hand import NODES
from sickbay.sim.scenario.document import Reader
from sickbay.sim.scenario.injections.registry import Act, injection
from sickbay.sim.world import World


@injection("cloudEvent")
def cloud_event(args: Reader) -> Act:
    """As the provider's API would list it; each of several nodes is an entry of its own.

    What an entry does not say again (type, notBefore) it keeps. The machine is named by its providerID as it was when
    the event was first listed: an event of a machine is none of the next one that gets its name.
    """
    source, id_, nodes = args.text("source"), args.text("id"), args.names("node")
    type_, phase = args.text("type", ""), args.text("phase", "Scheduled")
    not_before = _moment(args)

    def act(world: World) -> None:
        for node in nodes:
            key = id_ if len(nodes) == 1 else f"{id_}/{node}"
            before = world.listings.entries.get((source, key))
            at = not_before if isinstance(not_before, str) else None
            if isinstance(not_before, timedelta):
                at = rfc3339(world.clock.now() + not_before)
            notice = Notice(
                source=source,
                id=key,
                type=type_ or (before.type if before is not None else ""),
                phase=phase,
                resource=before.resource if before is not None else _provider_id(world, node),
                not_before=at or (before.not_before if before is not None else None),
            )
            world.listings.put(notice)

    return act


def _moment(args: Reader) -> timedelta | str | None:
    """`notBefore`: a moment, or a duration from now (`1h`, `+1h`)."""
    text = args.text("notBefore", "").strip()
    if not text:
        return None
    try:
        return rfc3339(parse_time(text))
    except ValueError:
        pass
    try:
        return parse_duration(text.removeprefix("+"))
    except ValueError:
        raise args.error(
            "notBefore", f"must be a duration from now such as 1h or +30s, or an RFC 3339 time, not {text!r}"
        ) from None


def _provider_id(world: World, node: str) -> str:
    found = world.store.find(NODES, node)
    if found is None:
        raise LookupError(f"there is no node {node!r}")
    return str((found.get("spec") or {}).get("providerID") or "")
