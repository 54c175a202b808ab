"""Every component tells of its work queue on /metrics."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import JOBS
from tests.support.simworld import pod, running_world

QUEUES = {"agent": "tasks", **{name: name for name in ("decide", "execute", "recover", "notify", "convert")}}


@pytest.mark.parametrize("component", QUEUES)
async def test_a_component_tells_of_its_queue(component: str) -> None:
    queue = QUEUES[component]
    async with running_world(PoolSpec("train", nodes=2)) as world:
        world.start_components((component,))
        await world.clock.sleep(30)
        (process, *_) = world.processes_of(component, ())
        text = generate_latest(process.running.registry).decode()
        for word in ("depth", "wait_seconds_count", "work_seconds_count", "adds_total", "retries_total"):
            assert f'sickbay_queue_{word}{{queue="{queue}"}}' in text


async def test_the_counts_are_those_of_the_queue() -> None:
    template = {**pod("ignored", gpus=8), "metadata": {}}
    job = {"metadata": {"name": "j"}, "spec": {"parallelism": 1, "completions": 1, "template": template}}
    async with running_world(PoolSpec("train", nodes=2)) as world:
        world.start_components(("recover",))
        await world.clock.sleep(30)
        before = world.staff.metric("sickbay_queue_adds_total", {"queue": "recover"})
        world.person("admin").create(JOBS, job, "default")
        await world.clock.sleep(30)
        assert world.staff.metric("sickbay_queue_adds_total", {"queue": "recover"}) > before
        assert world.staff.metric("sickbay_queue_depth", {"queue": "recover"}) == 0
