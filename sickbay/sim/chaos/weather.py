"""What befalls Sickbay itself: crashes at any write, request and call, lost leadership, bad clocks, a bad server."""

from __future__ import annotations

from typing import Any

from sickbay.sim.chaos.dice import Dice, seconds
from sickbay.sim.chaos.faults import Entry, at

CODES = ([500], [429], [503, 504], [409], [500, 429, 409])
PHASES = ("before", "lost", "after")
LEADING = ("decide", "execute", "recover", "notify", "convert")
CALLING = ("execute", "agent", "convert")
"""Components that call something beside the API server."""


def draw(dice: Dice, components: list[str], nodes: list[str], storm: float) -> list[Entry]:
    """Entries within the first `storm` seconds."""
    entries: list[Entry] = []
    for _ in range(dice.between(1, 4)):
        entries.append(_crash(dice, components, dice.moment(1, storm)))
    for _ in range(dice.between(0, 3)):
        entries += _leader(dice, components, dice.moment(20, storm))
    for _ in range(dice.between(0, 3)):
        entries.append(_server(dice, components, dice.moment(1, storm)))
    if dice.chance(0.2):
        entries += _clock(dice, components, nodes, dice.moment(1, storm))
    return entries


def _crash(dice: Dice, components: list[str], when: float) -> Entry:
    component = dice.one(components)
    entry = at(when, "crash", component=component, restart=seconds(dice.one([1, 5, 30])))
    kind = dice.weighted([(5, "onWrite"), (2, "onRequest"), (3, "onCall"), (2, "")])
    if kind == "onCall" and component not in CALLING:
        kind = "onWrite"
    if kind:
        entry |= {kind: dice.between(1, {"onWrite": 8, "onRequest": 30, "onCall": 3}[kind]), "phase": dice.one(PHASES)}
    return entry


def _leader(dice: Dice, components: list[str], when: float) -> list[Entry]:
    led = [component for component in components if component in LEADING]
    component = dice.one(led)
    if dice.chance(0.4):
        return [at(when, "leader", action="steal", component=component)]
    return [
        at(when, "leader", action="pause", component=component),
        at(when + dice.one([3, 12, 28, 45, 75]), "leader", action="resume", component=component),
    ]


def _server(dice: Dice, components: list[str], when: float) -> Entry:
    scope = {"scope": dice.one(components)} if dice.chance(0.7) else {}
    lasting = {"for": seconds(dice.between(5, 60))}
    arguments: dict[str, Any] = dice.weighted(
        [
            (5, {"errors": {"rate": dice.one([0.1, 0.4, 0.9]), "codes": dice.one(CODES)}, **lasting}),
            (2, {"latency": seconds(dice.one([0.2, 1, 3])), **lasting}),
            (2, {"stale": seconds(dice.one([1, 5])), **lasting}),
            (2, {"watch": "cut"}),
            (1, {"watch": "cut", "history": "compact"}),
        ]
    )
    if "errors" in arguments and dice.chance(0.4):
        arguments["verbs"] = dice.some(["get", "list", "create", "patch", "evict"], 1)
    return at(when, "api", **arguments, **scope)


def _clock(dice: Dice, components: list[str], nodes: list[str], when: float) -> list[Entry]:
    skew = dice.one(["30s", "-30s", "2m", "-2m"])
    whose: dict[str, Any] = {"component": dice.one(components)} if dice.chance(0.7) else {"node": dice.one(nodes)}
    return [at(when, "clock", **whose, skew=skew)]
