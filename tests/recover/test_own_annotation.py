"""Steps in an annotation of the job's own choice are followed as the usual ones are, whenever the loop comes to know of
it."""

from __future__ import annotations

import asyncio

import pytest

from sickbay.sim.hand import PODS
from tests.recover.fleet import POLICY, Fleet, fleet, indexed_job, policy

MINUTE, OWN, USUAL = 60.0, "example.com/step", "sickbay.dev/step"


async def gang(annotation: str) -> Fleet:
    made = fleet(asyncio.get_running_loop(), 4)
    for manifest in (policy(hang={"progress": {"annotation": annotation}}), indexed_job("llm", 4)):
        made.world.apply(manifest, "owner")
    made.world.settle()
    made.world.start()
    made.world.start_components(("recover",))
    await made.world.clock.sleep(MINUTE)
    return made


def report(made: Fleet, annotation: str, step: int) -> None:
    for pod in made.running("llm"):
        patch = {"metadata": {"annotations": {annotation: str(step)}}}
        made.world.person("trainer").merge(PODS, pod["metadata"]["name"], patch, "default")


async def ended(made: Fleet) -> None:
    await made.world.stop()
    assert made.world.problems == []


@pytest.mark.parametrize("restarted", [False, True], ids=["watched", "restarted-in-the-middle"])
async def test_a_stall_is_seen_at_most_one_time_later_after_a_restart(restarted):
    made = await gang(OWN)
    report(made, OWN, 100)
    if restarted:
        await made.world.clock.sleep(5 * MINUTE)
        made.world.processes_of("recover", ())[0].crash(5.0)
    await made.world.clock.sleep(22 * MINUTE)
    status = made.recovery("llm")
    assert [a.get("fingerprint", "") for a in status["attempts"]] == ["stalled", ""]
    assert status["attempts"][0]["step"] == 100
    await ended(made)


@pytest.mark.parametrize(("first", "second"), [(OWN, USUAL), (USUAL, OWN)], ids=["to-the-usual-one", "to-its-own"])
async def test_a_policy_that_names_another_annotation_is_no_stall(first, second):
    """The job reports there from then on, and counts something else."""
    made = await gang(first)
    made.world.kubelet.stall_pods(made.running("llm"))
    report(made, first, 90_000)
    await made.world.clock.sleep(MINUTE)
    hang = {"spec": {"hang": {"progress": {"annotation": second}}}}
    made.world.person("owner").merge(POLICY, "training", hang, "default")
    for step in range(30):
        report(made, second, step)
        await made.world.clock.sleep(MINUTE)
    assert [a.get("ended") for a in made.recovery("llm")["attempts"]] == [None]
    await ended(made)
