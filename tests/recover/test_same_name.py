"""A job that has the name of an earlier one is another job: nothing that was known of the earlier one counts for it."""

from __future__ import annotations

import asyncio

import pytest

from tests.recover.fleet import JOB_SETS, JOBS, Fleet, fleet, indexed_job, job_set, policy

MINUTE = 60.0
MANIFESTS = {JOBS: indexed_job("llm", 4, backoffLimit=100), JOB_SETS: job_set("llm", 2, 2, restarts=100)}


def world_of(*manifests, **spec) -> Fleet:
    made = fleet(asyncio.get_running_loop(), 6)
    for manifest in (policy(**spec), *manifests):
        made.world.apply(manifest, "owner")
    made.world.settle()
    made.world.start()
    made.world.start_components(("recover",))
    return made


async def begun_anew(kind: str, pause: float, failures: int = 0) -> Fleet:
    """A gang of four, whose owner deletes it after ten minutes and makes it again."""
    made = world_of(MANIFESTS[kind])
    world = made.world
    for _ in range(failures):
        await world.clock.sleep(MINUTE)
        world.kubelet.exit_pod(made.running("llm")[0], 137)
    await world.clock.sleep(10 * MINUTE)
    world.person("owner").delete(kind, "llm", "default")
    while world.store.find(kind, "llm", "default") is not None:
        await world.clock.sleep(0.1)
    await world.clock.sleep(pause)
    world.apply(MANIFESTS[kind], "owner")
    return made


@pytest.mark.parametrize("failures", [0, 2], ids=["well", "has-failed-twice"])
@pytest.mark.parametrize(
    "pause",
    [
        pytest.param(0.0, marks=pytest.mark.slow, id="at-once"),
        pytest.param(10.0, id="soon"),
        pytest.param(5 * MINUTE, marks=pytest.mark.slow, id="later"),
    ],
)
@pytest.mark.parametrize("kind", [JOBS, JOB_SETS])
async def test_a_job_that_its_owner_deletes_and_makes_again_runs_on_undisturbed(kind, pause, failures):
    """Neither are the ranks of the earlier one its ends, nor does it stand still because it counts from zero."""
    made = await begun_anew(kind, pause, failures)
    await made.world.clock.sleep(MINUTE)
    uid, pods = made.world.store.get(kind, "llm", "default")["metadata"]["uid"], uids(made)
    await made.world.clock.sleep(40 * MINUTE)
    assert made.world.store.get(kind, "llm", "default")["metadata"]["uid"] == uid
    assert (len(pods), uids(made)) == (4, pods)
    assert not any("sickbay.dev/attempt" in pod["metadata"]["labels"] for pod in made.running("llm"))
    assert not made.recovery("llm")["attempts"][-1].get("ended")
    await ended(made)


@pytest.mark.parametrize("failures", [0, 2], ids=["well", "has-failed-twice"])
@pytest.mark.parametrize("kind", [JOBS, JOB_SETS])
async def test_a_job_that_was_made_again_is_looked_after_like_any_other(kind, failures):
    made = await begun_anew(kind, 10.0, failures)
    await made.world.clock.sleep(10 * MINUTE)
    before = uids(made)
    made.world.kubelet.stall_pods(made.running("llm"))
    await made.world.clock.sleep(20 * MINUTE)
    assert made.recovery("llm")["attempts"][-2]["fingerprint"] == "stalled"
    assert (len(before), uids(made) & before) == (4, set())
    await ended(made)


def uids(made: Fleet) -> set[str]:
    return {pod["metadata"]["uid"] for pod in made.running("llm")}


async def ended(made: Fleet) -> None:
    await made.world.stop()
    assert made.world.problems == []
