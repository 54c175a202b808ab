"""The timeline: when something is done to the world, and what. This module reads entries; `runner` fires them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sickbay.sim.scenario.document import Map, Reader
from sickbay.sim.scenario.expectation import expression
from sickbay.sim.scenario.injections import INJECTIONS, Act

WRITERS = ("agent", "decide", "execute", "recover", "notify", "convert", "sickbay")
_OBJECT = re.compile(r"[A-Za-z]+(/[^/@]+){1,2}|(NodeRepair|NodeTask)@[^/@]+")


@dataclass(frozen=True, slots=True)
class Trigger:
    """At `at` seconds; or `after` seconds after `when` is first true; or just before a write of `by` to `write`."""

    at: float | None = None
    when: str = ""
    after: float = 0.0
    write: str = ""
    by: str = "sickbay"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the timeline. It fires `times` times, `every` seconds apart.

    Without `every`, a `when` fires again each time it becomes true again, and a `before` at the next such writes.
    """

    do: str
    act: Act
    trigger: Trigger
    file: str
    line: int
    times: int = 1
    every: float = 0.0
    arguments: Reader = field(default_factory=lambda: Reader(Map("", 0)), compare=False)
    """All that the entry says, and how people would name its place."""

    def __str__(self) -> str:
        trigger = self.trigger
        if trigger.at is not None:
            return f"at {trigger.at:g}s: {self.do}"
        if trigger.write:
            return f"before a write of {trigger.by} to {trigger.write}: {self.do}"
        return f"when {trigger.when}: {self.do}"


def read_entry(reader: Reader) -> Entry:
    trigger = _read_trigger(reader)
    times, every = reader.integer("times", 1, least=1), reader.seconds("every", 0.0)
    if times > 1 and not every and trigger.at is not None:
        raise reader.error("times", "needs every: how far apart")
    do = reader.text("do")
    read = INJECTIONS.get(do)
    if read is None:
        raise reader.error("do", f"unknown injection {do!r}; known: {', '.join(sorted(INJECTIONS))}")
    return Entry(do, read(reader), trigger, reader.mapping.file, reader.mapping.line, times, every, reader)


def _read_trigger(reader: Reader) -> Trigger:
    # `at` and `after` are read first: an injection may have arguments of its own, never of these names.
    given = [key for key in ("at", "when", "before") if reader.has(key)]
    if len(given) != 1:
        raise reader.error("", f"needs one of at, when, before, not {' and '.join(given) or 'none'}")
    after = reader.seconds("after", 0.0)
    if given[0] == "at":
        if reader.has("after"):
            raise reader.error("after", "goes with when")
        return Trigger(at=reader.seconds("at"))
    if given[0] == "when":
        return Trigger(when=expression(reader, "when"), after=after)
    before = reader.nested("before")
    assert before is not None
    trigger = Trigger(write=before.text("write"), by=before.choice("by", WRITERS, "sickbay"))
    before.done()
    if not _OBJECT.fullmatch(trigger.write):
        raise before.error("write", f"must be Kind/name, Kind/namespace/name or NodeRepair@node, not {trigger.write!r}")
    return trigger
