"""Running one scenario: a world of its own, the timeline, the judges, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.writes import Write
from sickbay.sim.components import Settings, available, pace_for
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import LEASES
from sickbay.sim.invariants import Invariants
from sickbay.sim.logs import listening
from sickbay.sim.loop import DeadlockError, StandstillError, VirtualLoop, run_virtual
from sickbay.sim.scenario.clockwork import Armed, Clockwork
from sickbay.sim.scenario.defaults import objects_of
from sickbay.sim.scenario.document import BadFileError
from sickbay.sim.scenario.functions import moment
from sickbay.sim.scenario.judge import Case, Outcome
from sickbay.sim.scenario.judgement import Expressions, show
from sickbay.sim.scenario.spec import FleetEntry, Scenario
from sickbay.sim.scenario.unfit import unfit
from sickbay.sim.world import World

CREATOR = "scenario"

UNHURRIED: dict[str, Any] = {"shortcuts": True, "watch_pace": 60.0}
"""Settings of long runs: watches last for hours, with a bookmark in each."""


@dataclass(slots=True)
class Result:
    """What came of one run."""

    scenario: Scenario
    outcomes: list[Outcome] = field(default_factory=list)
    unfit: list[str] = field(default_factory=list)
    """Objects that could not work as they were written, one line each; they explain a failure and are none."""

    @property
    def ok(self) -> bool:
        return all(outcome.ok for outcome in self.outcomes)


def run(scenario: Scenario, verbose: bool = False) -> Result:
    """Run it from its first to its last virtual second. Raises BadFileError for what only a run can find."""
    result = Result(scenario)
    mistakes: dict[str, None] = {}
    with listening(lambda text: mistakes.setdefault(text), verbose):
        try:
            run_virtual(lambda loop: _Run(loop, scenario, result).run(), seed=scenario.seed)
        except (DeadlockError, StandstillError) as error:
            result.outcomes.append(Outcome(f"the simulation stopped: {error}", ok=False))
    result.outcomes += [_broken(text) for text in mistakes]
    return result


def _broken(text: str) -> Outcome:
    first, *rest = text.splitlines()
    return Outcome(f"broke: {first}", ok=False, seen=rest)


class _Run:
    def __init__(self, loop: VirtualLoop, scenario: Scenario, result: Result) -> None:
        self._scenario, self._result = scenario, result
        self._world = World(loop, scenario.seed, _settings(scenario))
        self._expressions = Expressions(self._world)
        self._invariants = Invariants(self._world)
        self._clockwork = Clockwork(self._world, scenario.timeline, self._expressions)
        self._cases = [Case(expectation, self._expressions) for expectation in scenario.expect]
        self._timely = [case for case in self._cases if case.timely]

    async def run(self) -> None:
        world, scenario = self._world, self._scenario
        set_the_stage(world, scenario)
        self._watch()
        self._clockwork.arm()
        self._changed()
        world.start_components(self._components(), scenario.replicas)
        await world.clock.sleep(scenario.until)
        await self._rest()
        self._finish()
        await world.stop()
        self._expressions.view.forget()

    def _components(self) -> tuple[str, ...]:
        """All that the file asks for; where it asks for none by name, all that there are."""
        scenario = self._scenario
        if not scenario.components_given:
            return tuple(name for name in scenario.components if name in available())
        missing = [name for name in scenario.components if name not in available()]
        if missing:
            raise BadFileError(
                scenario.file, scenario.line, "spec.components", f"this version has no {', '.join(missing)}"
            )
        return scenario.components

    def _watch(self) -> None:
        world, loop = self._world, self._world.loop
        world.store.after_write(self._after_write)
        world.journal.on_change.append(self._changed)
        self._clockwork.applied.append(self._changed)
        for case in self._cases:
            for at in case.expectation.moments():
                loop.call_at(at, loop.call_at_rest, case.judge_moment)

    def _after_write(self, write: Write) -> None:
        if write.old is write.new:
            return
        if write.resource != LEASES:
            self._changed()
        elif write.namespace != "kube-node-lease":
            # Heartbeats say nothing that an expression could have been waiting for, but that time goes on.
            self._clockwork.look(beat=True)
            for case in self._timely:
                case.judge_now(whole=not self._clockwork.applying)

    def _changed(self) -> None:
        self._clockwork.look()
        for case in self._cases:
            case.judge_now(whole=not self._clockwork.applying)

    async def _rest(self) -> None:
        """Let everything of the last moment happen."""
        rest = self._world.loop.create_future()
        self._world.loop.call_at_rest(lambda: rest.set_result(None))
        await rest

    def _finish(self) -> None:
        outcomes = self._result.outcomes
        for case in self._cases:
            case.judge_moment(last=True)
            assert case.outcome is not None
            outcomes.append(case.outcome)
        for armed in self._clockwork.armed:
            outcomes += _timeline_outcomes(armed, self._world.loop.time())
        self._result.unfit = unfit(self._world.store)
        self._invariants.at_end()
        outcomes += [Outcome(f"invariant: {v.text}", ok=False, at=v.at) for v in self._invariants.violations]
        outcomes += [_broken(problem) for problem in self._world.problems]


def set_the_stage(world: World, scenario: Scenario) -> None:
    """The fleet and the objects, as they stand at 0s. Raises BadFileError for what the API server does not take."""
    for index, entry in enumerate(scenario.fleet):
        try:
            world.fleet.add_pool(pool_spec(entry))
        except StatusError as error:
            raise BadFileError(scenario.file, entry.line, f"spec.fleet[{index}]", str(error)) from None
    for manifest in objects_of(scenario):
        try:
            world.apply(manifest, CREATOR)
        except (StatusError, LookupError) as error:
            name = f"{manifest['kind']} {manifest['metadata'].get('name', '')}"
            line, path = getattr(manifest, "line", scenario.line), getattr(manifest, "path", "spec.objects")
            raise BadFileError(scenario.file, line, path, f"{name}: {error}") from None
    world.settle()
    world.start()


def _settings(scenario: Scenario) -> Settings:
    pace = pace_for(scenario.until)
    return Settings(governor=not scenario.defaults, pace=pace, **(UNHURRIED if pace > 1.0 else {}))


def _timeline_outcomes(armed: Armed, end: float) -> list[Outcome]:
    """What failed of an entry; `end` is the moment at which the run ended, in seconds."""
    entry = armed.entry
    mishaps = armed.errors if armed.reached or armed.missed is None else [*armed.errors, armed.missed]
    failed = [Outcome(f"{entry}", ok=False, line=entry.line, at=m.at, seen=[m.text]) for m in mishaps]
    if not armed.reached and armed.missed is None:
        failed.append(Outcome(f"{entry}", ok=False, line=entry.line, at=end, seen=_why_never_reached(armed)))
    return failed


def _why_never_reached(armed: Armed) -> list[str]:
    if armed.entry.trigger.at is not None:
        return ["was never reached: that is after the end of the run; raise spec.until"]
    if armed.expression is None:
        return ["was never reached: there was no such write"]
    if armed.came_true:
        after = moment(armed.entry.trigger.after)
        return [f"was never reached: its condition came true less than {after} before the end of the run"]
    verdict = armed.expression.judge()
    return [
        "was never reached",
        verdict.error or f"the expression is {show(verdict.value)}",
        *armed.expression.explain(),
    ]


def pool_spec(entry: FleetEntry) -> PoolSpec:
    """A fleet entry as the fleet takes it."""
    return PoolSpec(
        pool=entry.pool,
        nodes=entry.nodes,
        gpus=entry.gpus,
        labels=dict(entry.labels),
        taints=entry.taints,
        zone=entry.zone,
        rack=entry.rack,
        boot_seconds=entry.provider.reboot,
        behaviour=entry.provider.behaviour(),
    )
