"""A process can die before, in the middle of and after a call to a back-end or to its host."""

from __future__ import annotations

import asyncio

import pytest

from sickbay.clock import Randomness, SystemClock
from sickbay.providers.base import Act, ActState, Observation, Target
from sickbay.sim.calls import Calls
from sickbay.sim.cloud import Behaviour, Cloud, FakeProvider, ScriptLine
from sickbay.sim.journal import Journal
from sickbay.sim.life import Life
from sickbay.sim.machine import Machine
from sickbay.sim.wire import CALL, WRITE, CrashPlan, Doom

ACT = Act("u/Repair/1", "RebootNode", Target("n", "uid"), "r")


class Backend:
    keeps_keys = True

    def __init__(self) -> None:
        self.submitted = 0

    def supports(self, action: str) -> bool:
        return True

    async def submit(self, act: Act) -> None:
        self.submitted += 1

    async def observe(self, act: Act) -> Observation:
        return Observation(ActState.RUNNING)


class Bench:
    def __init__(self, plan: CrashPlan) -> None:
        self.life, self.doom, self.crashes, self.backend = Life(), Doom(plan), [], Backend()
        self.provider = Calls(self.life, self.doom, self.crash).to_backend(self.backend)

    def crash(self, restart: float) -> None:
        self.crashes.append(restart)
        self.life.end()


@pytest.mark.parametrize(("phase", "effect", "answered"), [("before", 0, 0), ("lost", 1, 0), ("after", 1, 1)])
async def test_a_process_dies_at_the_call_that_was_named(phase, effect, answered):
    bench, answers = Bench(CrashPlan(2, phase, restart=7, counts=CALL)), []
    await bench.provider.observe(ACT)
    assert bench.crashes == []

    async def submits():
        await bench.provider.submit(ACT)
        answers.append(True)

    await asyncio.gather(submits(), return_exceptions=True)
    await asyncio.sleep(0)  # noqa: TID251
    assert (bench.backend.submitted, len(answers), bench.crashes) == (effect, answered, [7])
    with pytest.raises(asyncio.CancelledError):
        await bench.provider.observe(ACT)


async def test_calls_are_no_writes():
    bench = Bench(CrashPlan(1, "before", counts=WRITE))
    await bench.provider.submit(ACT)
    assert bench.crashes == []
    assert bench.doom.due(WRITE) is not None
    assert bench.doom.due(WRITE) is None, "a plan is used up"


@pytest.mark.parametrize(("keeps", "times"), [(True, 1), (False, 2)])
async def test_a_back_end_without_keys_does_again_what_it_is_asked_again(keeps, times):
    journal = Journal(lambda: 0.0)
    cloud = Cloud(SystemClock(), Randomness(0), journal)
    cloud.behaviours["n"] = Behaviour(script=[ScriptLine("reboot", "liesDone", times=2)], keeps_keys=keeps)
    cloud.machines["n"] = Machine("n", 0, SystemClock(), Randomness(0))
    provider = FakeProvider(cloud, SystemClock())
    for _ in range(2):
        await provider.submit(ACT)
    assert [action.kind for action in journal.actions] == ["Reboot"] * times
