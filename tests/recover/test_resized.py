"""An elastic Job that its owner gives more ranks, or fewer, while it runs: no failure, and nothing to restart."""

from __future__ import annotations

import asyncio

import pytest

from tests.recover.fleet import JOBS, Fleet, fleet, indexed_job, policy

MINUTE = 60.0


async def resized(ranks: int) -> Fleet:
    """A gang of four, of another size after ten minutes. The simulated controller takes away no pod of a Job."""
    made = fleet(asyncio.get_running_loop(), 8)
    for manifest in (policy(), indexed_job("llm", 4, backoffLimit=100)):
        made.world.apply(manifest, "owner")
    made.world.settle()
    made.world.start()
    made.world.start_components(("recover",))
    await made.world.clock.sleep(10 * MINUTE)
    size = {"spec": {"completions": ranks, "parallelism": ranks}}
    made.world.person("owner").merge(JOBS, "llm", size, "default")
    for pod in made.running("llm"):
        if int(rank_of(pod)) >= ranks:
            made.world.person("job-controller").delete("pods", pod["metadata"]["name"], "default")
    return made


def rank_of(pod) -> str:
    return pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]


def uids(made: Fleet) -> dict[str, str]:
    return {rank_of(pod): pod["metadata"]["uid"] for pod in made.running("llm")}


async def ended(made: Fleet) -> None:
    await made.world.stop()
    assert made.world.problems == []


@pytest.mark.parametrize("ranks", [6, 5, 3, 2], ids=["two-more", "one-more", "one-less", "half"])
async def test_a_job_that_its_owner_resizes_runs_on(ranks):
    made = await resized(ranks)
    before = uids(made)
    await made.world.clock.sleep(30 * MINUTE)
    after = uids(made)
    assert sorted(after) == [str(rank) for rank in range(ranks)]
    assert all(before.get(rank, uid) == uid for rank, uid in after.items())
    assert [(a["n"], sorted(a["placement"])) for a in made.recovery("llm")["attempts"]] == [(1, sorted(after))]
    await ended(made)


@pytest.mark.parametrize(("ranks", "rank"), [(6, 0), (6, 5), (3, 2)], ids=["an-old-one", "a-new-one", "of-fewer"])
async def test_a_rank_that_is_replaced_after_it_is_the_end_of_the_attempt(ranks, rank):
    """The gang is restarted as a whole, at its new size; the newcomer is one of it like any other."""
    made = await resized(ranks)
    await made.world.clock.sleep(5 * MINUTE)
    before = uids(made)
    victim = next(pod for pod in made.running("llm") if rank_of(pod) == str(rank))
    made.world.kubelet.exit_pod(victim, 137)
    await made.world.clock.sleep(3 * MINUTE)
    assert len(uids(made)) == ranks
    assert not set(before.values()) & set(uids(made).values())
    assert made.recovery("llm")["phase"] == "Recovered"
    await ended(made)
