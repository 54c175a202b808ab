"""Injections into the way to the API server, and into clouds' own lists of events."""

from __future__ import annotations

from sickbay.sim.scenario.document import Reader
from sickbay.sim.scenario.injections.registry import Act, injection
from sickbay.sim.wire import Fault, Scope
from sickbay.sim.world import World

CODES = (429, 500, 502, 503, 504, 409)
VERBS = ("get", "list", "watch", "create", "patch", "delete", "evict")


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
            world.compact_history()
        if cut:
            world.cut_watches(fault.scope)
        if rate or fault.latency or fault.stale:
            world.add_fault(fault, lasting)

    return act


def _codes(errors: Reader) -> tuple[int, ...]:
    value = errors.raw("codes", [500])
    if not isinstance(value, list) or not value or any(code not in CODES for code in value):
        raise errors.error("codes", f"must be a list of {', '.join(map(str, CODES))}, not {value!r}")
    return tuple(value)


def _scope(args: Reader) -> Scope:
    """`scope` is a component; `verbs` and `object` (Kind or Kind/name) narrow it further."""
    verbs = args.names("verbs") if args.has("verbs") else ()
    for verb in verbs:
        if verb not in VERBS:
            raise args.error("verbs", f"{verb!r} is none of {', '.join(VERBS)}")
    return Scope(args.text("scope", ""), verbs, args.text("object", ""))
