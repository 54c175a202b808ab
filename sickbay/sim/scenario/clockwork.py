"""Firing the timeline: at moments, when conditions come true, just before writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sickbay.apiserver.errors import StatusError
from sickbay.sim.scenario.injections import InjectionError, NothingThereError
from sickbay.sim.scenario.judgement import Expression, Expressions
from sickbay.sim.scenario.timeline import Entry
from sickbay.sim.wire import Request
from sickbay.sim.world import World


@dataclass(frozen=True, slots=True)
class Mishap:
    """Why an entry could not be carried out, and when (seconds since the start)."""

    at: float
    text: str


@dataclass(slots=True)
class Armed:
    """An entry in one run."""

    entry: Entry
    left: int
    expression: Expression | None = None
    was_true: bool = False
    fired: int = 0
    errors: list[Mishap] = field(default_factory=list)
    missed: Mishap | None = None
    """Why it struck nothing, when it was fired and nothing was there to be struck."""

    @property
    def came_true(self) -> bool:
        """Whether its `when` was true at some moment."""
        return self.expression is not None and self.left < self.entry.times

    @property
    def reached(self) -> bool:
        return self.fired > 0


class Clockwork:
    """See the module. Entries of one moment are applied in file order, before any component runs."""

    def __init__(self, world: World, entries: tuple[Entry, ...], expressions: Expressions) -> None:
        self._world = world
        self.applying = False
        """Some entries of this moment are applied and others are not yet: what they do stands only as a whole."""
        self.applied: list[Callable[[], None]] = []
        """Called when all entries of a moment stand."""
        self.armed = [Armed(entry, entry.times) for entry in entries]
        for armed in self.armed:
            if armed.entry.trigger.when:
                armed.expression = expressions.compile(armed.entry.trigger.when)

    def arm(self) -> None:
        """Set the clocks; entries at 0s are applied now."""
        self._world.weather.before.append(self._before)
        moments: dict[float, list[Armed]] = {}
        for armed in self.armed:
            at = armed.entry.trigger.at
            for number in range(armed.entry.times if at is not None else 0):
                moments.setdefault((at or 0.0) + number * armed.entry.every, []).append(armed)
        for when in sorted(moments):
            self._at(when, *moments[when])
        self.look()

    def _at(self, when: float, *batch: Armed) -> None:
        if when <= self._world.loop.time():
            self._fire_all(batch)
        else:
            self._world.loop.call_first_at(when, lambda: self._fire_all(batch))

    def _firing(self, armed: Armed) -> Callable[[], None]:
        return lambda: self._fire(armed)

    def _fire_all(self, batch: tuple[Armed, ...]) -> None:
        self.applying = True
        for armed in batch:
            self._fire(armed)
        self.applying = False
        for told in self.applied:
            told()

    def look(self, beat: bool = False) -> None:
        """Something has changed (only a Lease, for a `beat`): see which conditions have come true."""
        for armed in self.armed:
            if armed.expression is None or armed.left <= 0 or (beat and not armed.expression.timely):
                continue
            true = armed.expression.judge().true
            if true and not armed.was_true:
                self._came_true(armed)
            armed.was_true = true

    def _came_true(self, armed: Armed) -> None:
        loop, entry = self._world.loop, armed.entry
        times = armed.left if entry.every else 1
        armed.left -= times
        for number in range(times):
            delay = entry.trigger.after + number * entry.every
            if delay:
                loop.call_first_at(loop.time() + delay, self._firing(armed))
            else:
                loop.call_first(self._firing(armed))

    def _before(self, request: Request) -> None:
        for armed in self.armed:
            trigger = armed.entry.trigger
            if not trigger.write or armed.left <= 0 or not self._matches(trigger.write, trigger.by, request):
                continue
            armed.left -= 1
            self._fire(armed)
            for number in range(1, armed.left + 1 if armed.entry.every else 1):
                self._at(self._world.loop.time() + number * armed.entry.every, armed)
            armed.left = 0 if armed.entry.every else armed.left

    def _matches(self, target: str, by: str, request: Request) -> bool:
        if by not in ("sickbay", request.component):
            return False
        try:
            resource, namespace, name = self._world.resolve(target)
        except LookupError:
            return False
        return (resource.partition(".")[0], namespace, name) == (request.resource, request.namespace, request.name)

    def _fire(self, armed: Armed) -> None:
        armed.fired += 1
        now = self._world.loop.time()
        try:
            armed.entry.act(self._world)
        except NothingThereError as error:
            armed.fired -= 1
            armed.missed = Mishap(now, str(error))
        except (InjectionError, LookupError) as error:
            armed.errors.append(Mishap(now, str(error)))
        except StatusError as error:
            armed.errors.append(Mishap(now, f"the API server refuses: {error.message}"))
