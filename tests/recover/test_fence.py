"""Fence before release: however late a node is isolated, and however late the scheduler sees it, no pod of a new
attempt starts on a suspect. And the fence is what does it: without it they land there."""

from __future__ import annotations

import asyncio

import pytest

from tests.recover.fleet import WIDE, Fleet, fleet, indexed_job, job_set, policy

JOBS = {"job-0": 3, "job-1": 3, "finished": 2, "set": 2, "restarting": 2}


def manifests():
    return [
        policy(budget=WIDE, exclusions={"maxNodes": 20}),
        indexed_job("job-0", 3),
        indexed_job("job-1", 3),
        indexed_job("finished", 2, backoffLimit=0),
        job_set("set", 1, 2),
        job_set("restarting", 2, 1, restarts=100000),
    ]


async def run(failures: int, seed: int, fence: bool = True) -> Fleet:
    made = fleet(asyncio.get_running_loop(), 22, seed=seed, fence=fence)
    world = made.world
    for manifest in manifests():
        world.apply(manifest, "owner")
    world.settle()
    world.start()
    world.start_components(("recover",))
    await world.clock.sleep(10)
    await made.fail_again_and_again(JOBS, failures)
    await world.clock.sleep(90)
    made.relandings = world.staff.metric("sickbay_relandings_total", {})
    made.left = {job: len(made.running(job)) for job in JOBS}
    await world.stop()
    assert world.problems == []
    return made


def assert_fenced(made: Fleet, failures: int) -> None:
    assert made.failures == failures, "every failure was had: no job got stuck"
    assert made.landings == []
    assert made.relandings == 0
    assert made.left == JOBS, "every gang runs again"


async def test_no_pod_starts_on_a_suspect():
    assert_fenced(await run(30, seed=0), 30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
async def test_no_pod_starts_on_a_suspect_in_a_thousand_failures(seed):
    assert_fenced(await run(100, seed=seed), 100)


async def test_without_the_fence_pods_land_on_suspects_and_the_loop_says_so():
    made = await run(30, seed=0, fence=False)
    assert made.landings != []
    assert made.relandings > 0
    assert not any(landing.runs for landing in made.landings), "even then the job is stopped before they run"
