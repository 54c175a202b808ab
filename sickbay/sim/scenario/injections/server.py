"""Injections into the way to the API server, and into clouds' own lists of events."""

from __future__ import annotations

from sickbay.sim.scenario.document import Reader
from sickbay.sim.scenario.injections.processes import COMPONENTS
from sickbay.sim.scenario.injections.registry import Act, injection
from sickbay.sim.wire import Fault, Scope
from sickbay.sim.world import World

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "evict")
_ALSO = {"put": "update", "post": "create"}


@injection("api")
def api(args: Reader) -> Act:
    rate = 0.0
    codes: tuple[int, ...] = (500,)
    errors = args.nested("errors")
    if errors is not None:
        rate, codes = errors.number("rate", 1.0, most=1.0), _codes(errors)
        errors.done()
    fault = Fault(
        rate=rate,
        codes=codes,
        latency=args.seconds("latency", 0.0),
        stale=args.seconds("stale", 0.0),
        scope=_scope(args),
    )
    cut = args.has("watch") and args.choice("watch", ("cut",)) == "cut"
    compact = args.has("history") and args.choice("history", ("compact",)) == "compact"
    lasting = args.seconds("for", 0.0) if args.has("for") else None
    if not (rate or fault.latency or fault.stale or cut or compact):
        raise args.error("", "needs one of errors, latency, stale, watch, history")

    def act(world: World) -> None:
        if compact:
            world.compact_history(lasting)
        if cut:
            world.cut_watches(fault.scope, lasting)
        if rate or fault.latency or fault.stale:
            world.add_fault(fault, lasting)

    return act


def _codes(errors: Reader) -> tuple[int, ...]:
    value = errors.raw("codes", [500])
    if not isinstance(value, list) or not value or not all(type(code) is int and 400 <= code < 600 for code in value):
        raise errors.error("codes", f"must be a list of HTTP codes from 400 to 599, such as [429, 503], not {value!r}")
    return tuple(value)


def _scope(args: Reader) -> Scope:
    """`scope` is a component; `verbs` and `object` (Kind or Kind/name) narrow it further."""
    verbs = tuple(_ALSO.get(verb.lower(), verb.lower()) for verb in (args.names("verbs") if args.has("verbs") else ()))
    for verb in verbs:
        if verb not in VERBS:
            raise args.error("verbs", f"{verb!r} is none of {', '.join(VERBS)}")
    component = args.choice("scope", (*COMPONENTS, "sickbay")) if args.has("scope") else ""
    return Scope(component, verbs, args.text("object", ""))
