"""A job that has failed more often than its record has room for is looked after as on its first day."""

from __future__ import annotations

import asyncio

import pytest

from sickbay.recover.view import MAX_ATTEMPTS
from tests.recover.fleet import WIDE, Fleet, fleet, indexed_job, policy

MINUTE = 60.0


async def killed_often(times: int, **spec) -> Fleet:
    """A gang of two, of which one rank is killed `times` times, by nobody known, each time as soon as all run."""
    made = fleet(asyncio.get_running_loop(), 4)
    world = made.world
    for manifest in (policy(**{"budget": WIDE, "hang": {"stall": "5m"}, **spec}), indexed_job("llm", 2)):
        world.apply(manifest, "owner")
    world.settle()
    world.start()
    world.start_components(("recover",))
    for turn in range(times):
        await runs(made, turn + 1)
        kill(made)
    return made


async def runs(made: Fleet, attempt: int) -> None:
    for _ in range(40):
        await made.world.clock.sleep(5)
        status = made.recovery("llm")
        if status.get("phase") in ("Running", "Recovered") and status["attempts"][-1]["n"] == attempt:
            return
    raise AssertionError(f"attempt {attempt} does not run: {made.recovery('llm')}")


def kill(made: Fleet) -> None:
    made.world.kubelet.exit_pod(made.running("llm")[0], 137)


async def ended(made: Fleet) -> None:
    await made.world.stop()
    assert made.world.problems == []


@pytest.mark.parametrize("before", [2, MAX_ATTEMPTS + 3], ids=["few", "more-than-are-kept"])
async def test_what_an_attempt_had_reached_is_not_asked_of_the_next_one(before):
    """It begins at zero, and takes longer than the stall limit to come as far as the last one had come."""
    made = await killed_often(before)
    await runs(made, before + 1)
    await made.world.clock.sleep(20 * MINUTE)
    assert int(made.running("llm")[0]["metadata"]["annotations"]["sickbay.dev/step"]) > 1100
    kill(made)
    await runs(made, before + 2)
    await made.world.clock.sleep(15 * MINUTE)
    status = made.recovery("llm")
    assert (status["attempts"][-1]["n"], status["attempts"][-2]["step"] > 1100) == (before + 2, True)
    assert len(status["attempts"]) == min(before + 2, MAX_ATTEMPTS)
    await ended(made)


async def test_a_stall_is_still_seen_when_the_record_is_full():
    made = await killed_often(MAX_ATTEMPTS + 2)
    await runs(made, MAX_ATTEMPTS + 3)
    await made.world.clock.sleep(2 * MINUTE)
    made.world.kubelet.stall_pods(made.running("llm"))
    await made.world.clock.sleep(6 * MINUTE)
    status = made.recovery("llm")
    assert [(a["n"], a.get("fingerprint", "")) for a in status["attempts"][-2:]] == [
        (MAX_ATTEMPTS + 3, "stalled"),
        (MAX_ATTEMPTS + 4, ""),
    ]
    await ended(made)


async def test_a_budget_larger_than_the_record_is_used_up_too():
    """Some are taken for the fault of the node on which most have failed; what was before is counted by its rate."""
    budget = MAX_ATTEMPTS + 8
    made = await killed_often(budget, budget={"transient": budget})
    attempt = budget + 1
    while made.recovery("llm")["phase"] != "Held":
        await runs(made, attempt)
        kill(made)
        await made.world.clock.sleep(8)  # a longer life would be progress, which restores the budget
        attempt += 1
    assert attempt <= budget + 5
    assert f"({budget} retries) is used up" in made.recovery("llm")["message"]
    assert made.running("llm") == []
    await ended(made)
