"""Injections into our own processes: crashes, starts and stops, leadership, clocks."""

from __future__ import annotations

from sickbay.sim.process import CrashPlan
from sickbay.sim.scenario.document import Reader
from sickbay.sim.scenario.injections.registry import Act, InjectionError, injection
from sickbay.sim.wire import CALL, REQUEST, WRITE
from sickbay.sim.world import World

COMPONENTS = ("agent", "decide", "execute", "recover", "notify", "convert")
LEADING = COMPONENTS[1:]
COUNTED = {"onWrite": WRITE, "onRequest": REQUEST, "onCall": CALL}
"""What a planned crash may count, by its argument."""


def _which(args: Reader) -> tuple[str, tuple[str, ...]]:
    """The component, and for the agent its nodes (empty = all of them)."""
    component = args.choice("component", COMPONENTS, "agent" if args.has("node") else None)
    if args.has("node") and component != "agent":
        raise args.error("node", "goes with component agent")
    return component, args.names("node") if args.has("node") else ()


@injection("crash")
def crash(args: Reader) -> Act:
    component, nodes = _which(args)
    restart = args.seconds("restart", 5.0)
    given = [key for key in COUNTED if args.has(key)]
    if len(given) > 1:
        raise args.error(given[1], f"and {given[0]} exclude each other")
    count = args.integer(given[0], least=1) if given else 0
    phase = args.choice("phase", ("before", "lost", "after"), "before")
    if args.has("phase") and not given:
        raise args.error("phase", f"goes with {' or '.join(COUNTED)}")

    def act(world: World) -> None:
        for process in world.processes_of(component, nodes):
            if given:
                process.crash_on(CrashPlan(count, phase, restart, COUNTED[given[0]]))
            else:
                process.crash(restart)

    return act


@injection("start")
def start(args: Reader) -> Act:
    component, nodes = _which(args)

    def act(world: World) -> None:
        for process in world.processes_of(component, nodes):
            process.start()

    return act


@injection("stop")
def stop(args: Reader) -> Act:
    component, nodes = _which(args)

    def act(world: World) -> None:
        for process in world.processes_of(component, nodes):
            process.stop()

    return act


@injection("leader")
def leader(args: Reader) -> Act:
    action = args.choice("action", ("pause", "resume", "steal"))
    component = args.choice("component", LEADING) if args.has("component") else ""

    def act(world: World) -> None:
        if component:
            _lead(world, component, action)
            return
        led = [c for c in LEADING if world.runs(c) and world.leading_process(c) is not None]
        if not led and action != "resume":
            raise InjectionError("nobody leads at this moment")
        for each in led if action != "resume" else [c for c in LEADING if world.runs(c)]:
            _lead(world, each, action)

    return act


def _lead(world: World, component: str, action: str) -> None:
    if action == "steal":
        world.steal_lease(component)
    elif action == "resume":
        for process in world.processes_of(component, ()):
            process.resume()
    else:
        leading = world.leading_process(component)
        if leading is None:
            raise InjectionError(f"no process of {component} leads at this moment")
        leading.pause()


@injection("clock")
def clock(args: Reader) -> Act:
    if args.has("node") == args.has("component"):
        raise args.error("node", "give either node or component")
    nodes = args.names("node") if args.has("node") else ()
    component = "" if nodes else args.choice("component", COMPONENTS)
    skew = _signed_seconds(args)

    def act(world: World) -> None:
        for node in nodes:
            world.machine(node).clock_skew = skew
        for process in world.processes_of(component, ()) if component else ():
            process.skew = skew

    return act


def _signed_seconds(args: Reader) -> float:
    """A skew may be negative: the clock is behind."""
    text = str(args.need("skew"))
    if not text.startswith("-"):
        return args.seconds("skew")
    args.mapping["skew"] = text[1:]
    try:
        return -args.seconds("skew")
    finally:
        args.mapping["skew"] = text
