"""Our processes in a world: killed at any point, frozen, skewed, and cut off from the API server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from sickbay.api import kinds
from sickbay.apiserver.transport import DirectTransport
from sickbay.clock import Randomness
from sickbay.kube import errors
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import NODES
from sickbay.sim.process import CrashPlan, Process, Surroundings
from sickbay.sim.wire import Fault, Scope
from tests.support.simworld import running_world

TRAIN = PoolSpec("train", nodes=1, gpus=0)


@asynccontextmanager
async def bed(main, component="decide"):
    """A world with one process of ours that runs `main(running, log)`."""
    log: list[str] = []
    problems: list[str] = []
    async with running_world(TRAIN) as world:
        around = Surroundings(
            world.clock,
            world.weather,
            lambda: DirectTransport(world.server),
            lambda who, error: problems.append(f"{who}: {error!r}"),
        )
        token = world.controller_token()
        process = Process(component, around, lambda running: main(running, log), token=token, randomness=Randomness(1))
        process.start()
        yield world, process, log
        process.kill()
    assert problems == []


async def count(running, log):
    """Label the node with 1, 2, 3, ..., one second apart."""
    number = 0
    while True:
        await running.clock.sleep(1)
        number += 1
        log.append(f"send {number}")
        await running.client.patch_merge(kinds.NODE, "train-0", {"metadata": {"labels": {"n": str(number)}}})
        log.append(f"sent {number}")


def label(world):
    return (world.node("train-0")["metadata"]["labels"]).get("n")


@pytest.mark.parametrize(
    ("phase", "stored", "last"),
    [
        pytest.param("before", "2", "send 3", id="before: never sent"),
        pytest.param("lost", "3", "send 3", id="lost: carried out, answer never seen"),
        pytest.param("after", "3", "sent 3", id="after: answer seen"),
    ],
)
async def test_a_process_dies_at_its_nth_write(phase, stored, last):
    async with bed(count) as (world, process, log):
        process.crash_on(CrashPlan(3, phase, restart=10))
        await world.clock.sleep(5)
        assert (label(world), log[-1]) == (stored, last)
        assert process.running is None
        await world.clock.sleep(10)
        assert process.starts == 2
        assert log[log.index(last) + 1 :][0] == "send 1"


async def test_a_dead_process_cannot_act_on_its_way_out():
    async def main(running, log):
        try:
            await running.clock.sleep(100)
        finally:
            try:
                await running.client.patch_merge(kinds.NODE, "train-0", {"metadata": {"labels": {"n": "dying"}}})
            finally:
                log.append("gone")

    async with bed(main) as (world, process, log):
        await world.clock.sleep(1)
        process.crash(restart=1000)
        await world.clock.sleep(1)
        assert log == ["gone"]
        assert label(world) is None


async def test_a_process_that_is_asked_to_stop_may_say_goodbye_and_stays_away():
    async def main(running, log):
        try:
            await running.clock.sleep(1000)
        finally:
            await running.client.patch_merge(kinds.NODE, "train-0", {"metadata": {"labels": {"n": "goodbye"}}})

    async with bed(main) as (world, process, _log):
        await world.clock.sleep(1)
        process.stop()
        await world.clock.sleep(60)
        assert label(world) == "goodbye"
        assert process.starts == 1


async def test_tasks_that_a_process_started_die_with_it():
    async def main(running, log):
        async def child():
            await count(running, log)

        log.append(str(asyncio.ensure_future(child())))
        await running.clock.sleep(1000)

    async with bed(main) as (world, process, _log):
        await world.clock.sleep(2.5)
        process.kill()
        await world.clock.sleep(100)
        assert label(world) == "2"


async def test_a_frozen_process_goes_on_as_if_nothing_had_been():
    async with bed(count) as (world, process, _log):
        await world.clock.sleep(2.5)
        process.pause()
        await world.clock.sleep(100)
        assert label(world) == "2"
        process.resume()
        await world.clock.sleep(1)
        assert label(world) == "3"


async def test_a_frozen_process_gets_no_events_until_it_goes_on():
    async def main(running, log):
        listing = await running.client.list(kinds.NODE)
        async for event in running.client.watch(kinds.NODE, listing.resource_version):
            if event.object is not None:
                log.append(event.object.labels.get("n", ""))

    async with bed(main) as (world, process, log):
        await world.clock.sleep(1)
        process.pause()
        world.person("admin").merge(NODES, "train-0", {"metadata": {"labels": {"n": "x"}}})
        await world.clock.sleep(10)
        assert log == []
        process.resume()
        await world.clock.sleep(1)
        assert log == ["x"]


async def test_a_skewed_process_sees_another_wall_clock_and_the_same_durations():
    async def main(running, log):
        await running.clock.sleep(10)
        log.append(str((running.clock.now() - clock.now()).total_seconds()))
        await running.clock.sleep(1000)

    clock = None
    async with bed(main) as (world, process, log):
        clock = world.clock
        process.skew = 600
        await world.clock.sleep(10.5)
        assert log == ["600.0"]


async def read_every_second(running, log):
    while True:
        await running.clock.sleep(1)
        try:
            await running.client.get(kinds.NODE, "train-0")
            log.append("ok")
        except errors.ApiError as error:
            log.append(type(error).__name__)


async def test_errors_strike_as_often_as_they_should_and_only_within_their_scope():
    async with bed(read_every_second) as (world, _process, log):
        world.add_fault(Fault(rate=0.5, codes=(500, 503), scope=Scope("decide", ("get",), "Node")), lasting=200)
        world.add_fault(Fault(rate=1.0, scope=Scope("execute")), lasting=None)
        world.add_fault(Fault(rate=1.0, scope=Scope("decide", ("patch",))), lasting=None)
        world.add_fault(Fault(rate=1.0, scope=Scope("decide", (), "Pod")), lasting=None)
        await world.clock.sleep(200.5)
        assert 60 < log.count("ServerError") < 140
        assert log.count("ok") == 200 - log.count("ServerError")
        log.clear()
        await world.clock.sleep(50)
        assert set(log) == {"ok"}


async def test_latency_delays_requests():
    async with bed(count) as (world, _process, log):
        world.add_fault(Fault(latency=5.0), lasting=None)
        await world.clock.sleep(5.5)
        assert log == ["send 1"]
        await world.clock.sleep(1)
        assert log == ["send 1", "sent 1"]


async def watch_nodes(running, log):
    listing = await running.client.list(kinds.NODE)
    try:
        async for event in running.client.watch(kinds.NODE, listing.resource_version):
            if event.object is not None:
                log.append(event.object.labels.get("n", ""))
        log.append("ended")
    except errors.ApiError as error:
        log.append(type(error).__name__)
    await running.clock.sleep(10000)


async def test_a_watch_can_lag_behind():
    async with bed(watch_nodes) as (world, _process, log):
        world.add_fault(Fault(stale=5.0), lasting=None)
        await world.clock.sleep(1)
        world.person("admin").merge(NODES, "train-0", {"metadata": {"labels": {"n": "x"}}})
        await world.clock.sleep(4)
        assert log == []
        await world.clock.sleep(7)
        assert log == ["x"]


async def test_a_watch_can_be_cut():
    async with bed(watch_nodes) as (world, _process, log):
        await world.clock.sleep(1)
        world.cut_watches(Scope("execute"))
        world.person("admin").merge(NODES, "train-0", {"metadata": {"labels": {"n": "x"}}})
        await world.clock.sleep(1)
        world.cut_watches(Scope("decide"))
        await world.clock.sleep(1)
        assert log[0] == "x"
        assert log[1] in ("ended", "Unreachable")


async def test_a_process_that_ends_by_itself_is_a_finding_and_is_started_again():
    async def main(running, log):
        await running.clock.sleep(1)
        raise ValueError("broken")

    problems: list[str] = []
    async with running_world(TRAIN) as world:
        around = Surroundings(
            world.clock,
            world.weather,
            lambda: DirectTransport(world.server),
            lambda who, e: problems.append(repr(e)),
        )
        process = Process("decide", around, lambda r: main(r, []), token="t", randomness=Randomness(1))
        process.start()
        await world.clock.sleep(7)
        process.kill()
    assert problems == ["ValueError('broken')"]
    assert process.starts == 2


async def test_listeners_are_told_just_before_a_write_arrives():
    async with bed(count) as (world, _process, _log):
        seen = []

        def before(request):
            if request.verb == "patch" and request.name == "train-0":
                seen.append((request.component, request.resource, label(world)))

        world.weather.before.append(before)
        await world.clock.sleep(2.5)
        assert seen == [("decide", "nodes", None), ("decide", "nodes", "1")]


async def test_renewals_of_leases_are_no_writes():
    async def main(running, log):
        spec = {"holderIdentity": "x"}
        await running.client.create(kinds.LEASE, {"metadata": {"name": "l"}, "spec": spec}, "default")
        await count(running, log)

    async with bed(main) as (world, process, _log):
        process.crash_on(CrashPlan(1, "lost", restart=1000))
        await world.clock.sleep(3)
        assert label(world) == "1"


async def test_of_several_writes_at_once_only_the_nth_kills():
    async def main(running, log):
        async def write(number):
            meta = {"labels": {f"n{number}": "x"}}
            await running.client.patch_merge(kinds.NODE, "train-0", {"metadata": meta})
            log.append(f"sent {number}")

        await asyncio.gather(*(write(number) for number in range(5)))
        await running.clock.sleep(1000)

    async with bed(main) as (world, process, log):
        process.crash_on(CrashPlan(3, "after", restart=1000))
        await world.clock.sleep(1)
        assert process.running is None
        assert 1 <= len(log) <= 5
