"""A bad way to the API server: errors, lost watches, slow answers, other writers. All is done in the end, and once."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.kube.lease import LeaseTimes
from sickbay.sim.wire import Fault, Scope
from tests.execute.ward import NODE, Ward, ward

LEASE = LeaseTimes(duration=120, deadline=100, period=15)
MINE = Scope(component="execute")


async def goes_round(hospital: Ward) -> None:
    hospital.run_pod("job")
    await hospital.sleep(3)
    hospital.fault()
    await hospital.healed(within=7200)
    assert len(hospital.acts("Reboot")) == 1
    assert hospital.status()["outcome"] == "Repaired"
    assert hospital.evicted() == ["default/job"]
    assert len(hospital.repairs()) == 1


@pytest.mark.case("R40")
@pytest.mark.parametrize("seed", range(2))
async def test_half_of_all_requests_fail(seed: int) -> None:
    async with ward(lease=LEASE, seed=seed) as hospital:
        hospital.world.add_fault(Fault(rate=0.5, codes=(429, 500, 503), scope=MINE), None)
        await goes_round(hospital)


async def test_half_of_all_requests_fail_from_the_very_start() -> None:
    """A leader that cannot read everything afresh goes on trying; it does not end its process."""

    def storm(world: Any) -> None:
        world.add_fault(Fault(rate=0.5, codes=(500,), scope=MINE), None)

    async with ward(lease=LEASE, prepare=storm) as hospital:
        await goes_round(hospital)
        assert hospital.world.processes_of("execute", ())[0].starts == 1


async def test_watches_lag_by_twenty_seconds() -> None:
    async with ward(lease=LEASE) as hospital:
        hospital.world.add_fault(Fault(stale=20, scope=MINE), None)
        await goes_round(hospital)


async def test_every_answer_takes_four_seconds() -> None:
    async with ward(lease=LEASE) as hospital:
        hospital.world.add_fault(Fault(latency=4, scope=MINE), None)
        await goes_round(hospital)


async def test_watches_break_every_ten_seconds() -> None:
    async with ward(lease=LEASE) as hospital:
        for n in range(60):
            hospital.world.loop.call_later(10 * n, hospital.world.cut_watches, MINE)
        await goes_round(hospital)


@pytest.mark.case("R40")
async def test_somebody_else_writes_the_node_at_the_same_moments() -> None:
    """Right before each of our writes another taint appears, and none of theirs is ever lost."""
    async with ward(lease=LEASE) as hospital:
        count = 0

        def meddle(request: Any) -> None:
            nonlocal count
            if (request.component, request.resource, request.name) != ("execute", "nodes", NODE) or count >= 6:
                return
            count += 1
            taints = hospital.world.taints(NODE)
            new = {"key": f"example.com/{count}", "effect": "PreferNoSchedule"}
            hospital.world.person("other").merge("nodes", NODE, {"spec": {"taints": [*taints, new]}})

        hospital.world.weather.before.append(meddle)
        hospital.run_pod("job")
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: hospital.phase() == "Succeeded")
        assert count == 6
        theirs = [f"taint example.com/{n}=:PreferNoSchedule is new" for n in range(1, 7)]
        assert hospital.differences() == theirs
        assert len(hospital.acts("Reboot")) == 1


async def test_a_controller_that_was_away_for_an_hour_finishes_what_it_began() -> None:
    async with ward(lease=LEASE, boot=30) as hospital:
        hospital.fault()
        await hospital.until(lambda: hospital.acts("Reboot") != [])
        both = [hospital.world.processes_of(component, ())[0] for component in ("decide", "execute")]
        for process in both:
            process.kill()
        await hospital.sleep(3600)
        for process in both:
            process.start()
        await hospital.until(lambda: hospital.phase() in ("Succeeded", "NeedsHuman"), 7200)
        assert hospital.phase() == "Succeeded", hospital.story()
        assert len(hospital.acts("Reboot")) == 1
        assert hospital.acts("PowerCycle") == []
