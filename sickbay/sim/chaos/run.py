"""One seed, run: the storm, the quiet tail in which all must settle, and what broke on the way."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass, field

import msgspec

from sickbay.apiserver.writes import Write
from sickbay.sim.chaos.bystanders import Bystanders, end_weather
from sickbay.sim.chaos.dice import Dice
from sickbay.sim.chaos.plan import Drawing
from sickbay.sim.chaos.settling import left_over, overdue, unsettled
from sickbay.sim.components import Settings, available
from sickbay.sim.hand import EVENTS, LEASES
from sickbay.sim.invariants import Invariants, Violation
from sickbay.sim.logs import listening
from sickbay.sim.loop import DeadlockError, StandstillError, VirtualLoop, run_virtual
from sickbay.sim.scenario.clockwork import Clockwork
from sickbay.sim.scenario.functions import moment
from sickbay.sim.scenario.judge import Case
from sickbay.sim.scenario.judgement import Expressions
from sickbay.sim.scenario.runner import set_the_stage
from sickbay.sim.world import World

REPAIRS = "noderepairs.sickbay.dev"
PACE = 2.0
"""Leases and heartbeats are half as frequent as usual: a good part of a small world's work is nothing else."""
SLACK = 60.0
"""Seconds by which a process may be behind: a Lease outlives its holder by 30, and watches lag, break and back off."""
QUIET_LEAST, QUIET_MOST, LOOK = 120.0, 3 * 3600.0, 30.0
"""Virtual seconds of the tail, and between two looks at whether all has settled."""
MOST_REPAIRS = 200
"""Repairs opened in a run, after which it counts as one without end: the most of seeds 1 to 300 is 10."""
LAST_EVENTS = 10
_ENCODE = msgspec.json.Encoder(order="deterministic").encode


@dataclass
class Finding:
    """Something that must not be."""

    text: str
    at: float
    events: list[str] = field(default_factory=list)


@dataclass
class Result:
    """What came of one seed."""

    seed: int
    findings: list[Finding] = field(default_factory=list)
    trace: str = ""
    """A hash over every write of the run: the same seed gives the same."""
    writes: int = 0
    acts: int = 0
    repairs: int = 0
    seconds: float = 0.0
    """Virtual."""
    reactions: list[str] = field(default_factory=list)
    """What people and detectors did of their own accord."""
    file: str = ""
    """The scenario file, where the world is not drawn."""

    @property
    def ok(self) -> bool:
        return not self.findings


def run(drawing: Drawing, verbose: bool = False) -> Result:
    """Run it to its rest, or until it is clear that it finds none."""
    result = Result(drawing.seed, file=drawing.file)
    mistakes: dict[str, None] = {}
    with listening(lambda text: mistakes.setdefault(text), verbose):
        try:
            run_virtual(lambda loop: _Run(loop, drawing, result).run(), seed=drawing.seed)
        except (DeadlockError, StandstillError) as error:
            result.findings.append(Finding(f"the simulation stopped: {error}", result.seconds))
    result.findings += [Finding(f"broke: {text}", 0.0) for text in mistakes]
    return result


class _Run:
    def __init__(self, loop: VirtualLoop, drawing: Drawing, result: Result) -> None:
        self._drawing, self._result = drawing, result
        self._world = World(loop, drawing.seed, Settings(governor=False, pace=PACE))
        self._dice = Dice(self._world.randomness.fork())
        self._invariants = Invariants(self._world, SLACK)
        expressions = Expressions(self._world)
        self._clockwork = Clockwork(self._world, drawing.scenario.timeline, expressions)
        self._cases = [Case(each, expressions) for each in drawing.scenario.expect if each.form == "never"]
        # In a world of the user's own, people and detectors do what its timeline says.
        self._bystanders = Bystanders(self._world, self._dice.fork(), acting=not drawing.file)
        self._hash = hashlib.sha256()
        self._opened = 0
        self._main: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """The whole run. One that does ever more, and may keep time from moving on, is broken off and says so."""
        self._main = asyncio.current_task()
        try:
            await self._story()
        except asyncio.CancelledError:
            if self._opened <= MOST_REPAIRS:
                raise
            self._find(f"repairs are opened without end: {self._opened} by now")

    async def _story(self) -> None:
        world, scenario = self._world, self._drawing.scenario
        set_the_stage(world, scenario)
        world.store.after_write(self._written)
        world.journal.on_change.append(self._changed)
        self._clockwork.arm()
        world.start_components(tuple(c for c in scenario.components if c in available()), scenario.replicas)
        await world.clock.sleep(self._drawing.storm)
        self._judge_own()
        end_weather(world, self._bystanders)
        heals = self._dice.chance(0.6)
        await self._settle(heals)
        self._finish(heals)
        await world.stop()

    def _judge_own(self) -> None:
        """A user's `never` is about the run the user wrote: what people do in our tail, approving, is no part of it."""
        if self._drawing.file:
            for case in self._cases:
                case.judge_moment(last=True)

    def _changed(self) -> None:
        self._clockwork.look()
        for case in self._cases:
            case.judge_now()

    def _written(self, write: Write) -> None:
        now = self._world.loop.time()
        if write.resource == LEASES:
            return
        if write.old is not write.new:
            self._changed()
        head = f"{now:.6f} {write.verb} {write.resource} {write.namespace}/{write.name} {write.user_agent} "
        self._hash.update(head.encode())
        self._hash.update(_ENCODE(write.new))
        self._result.writes += 1
        if write.verb == "create" and write.resource == REPAIRS:
            self._opened += 1
            if self._opened > MOST_REPAIRS and self._main is not None:
                self._main.cancel()

    async def _settle(self, heals: bool) -> None:
        """Let time pass until all rests, looked at twice; or until it is clear that it never will."""
        world = self._world
        if heals:
            self._bystanders.clear_all()
        begin = world.loop.time()
        await world.clock.sleep(QUIET_LEAST)
        rested = 0
        while rested < 2 and world.loop.time() - begin < QUIET_MOST:
            await world.clock.sleep(LOOK)
            if heals:
                self._bystanders.clear_all()
            for text in overdue(world):
                self._find(text)
            rested = 0 if unsettled(world) else rested + 1

    def _finish(self, heals: bool) -> None:
        world, result = self._world, self._result
        left = unsettled(world)
        for text in left:
            self._find(f"does not settle: {text}")
        if not left:
            for text in left_over(world):
                self._find(text)
        self._invariants.at_end(settled=not left)
        for violation in self._invariants.violations:
            self._find(violation.text, violation)
        for case in self._cases:
            if case.outcome is not None and not case.outcome.ok:
                result.findings.append(Finding(case.outcome.text, case.outcome.at, case.outcome.events))
        result.findings += [Finding(problem, world.loop.time()) for problem in world.problems]
        result.trace, result.seconds = self._hash.hexdigest(), world.loop.time()
        result.acts, result.repairs = len(world.journal.actions), len(world.store.list(REPAIRS))
        result.reactions = self._bystanders.done

    def _find(self, text: str, violation: Violation | None = None) -> None:
        if any(finding.text == text for finding in self._result.findings):
            return
        at = violation.at if violation is not None else self._world.loop.time()
        self._result.findings.append(Finding(text, at, self._events(text, at)))

    def _events(self, text: str, until: float) -> list[str]:
        """The last Events, up to then, of the nodes and pools whose names the text holds."""
        created, found = self._world.history.created, []
        for event in self._world.store.list(EVENTS):
            name = str((event.get("involvedObject") or {}).get("name"))
            at = created.get(event["metadata"]["uid"], 0.0)
            if at <= until + 1 and re.search(rf"\b{re.escape(name)}\b", text):
                found.append((at, f"{moment(at)} {name} {event.get('reason')}: {event.get('message', '')}"))
        return [line for _, line in sorted(found)[-LAST_EVENTS:]]
