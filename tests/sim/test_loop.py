"""The virtual loop: time, order, reproducibility, and what it refuses."""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta

import pytest

from sickbay.sim.loop import (
    EPOCH,
    DeadlockError,
    LoopClock,
    OutsideError,
    StandstillError,
    VirtualLoop,
    run_virtual,
)
from tests.support import virtual

DAY = 86400.0


async def test_a_folder_of_tests_runs_on_the_virtual_loop():
    clock = virtual.clock()
    await clock.sleep(30 * DAY)
    assert clock.monotonic() == 30 * DAY
    assert clock.now() == EPOCH + timedelta(days=30)


def test_time_moves_exactly_to_the_next_timer():
    async def main(loop: VirtualLoop) -> list[float]:
        seen: list[float] = []
        for delay in (0.1, 3.3, 7 * DAY):
            loop.call_later(delay, lambda: seen.append(loop.time()))
        await LoopClock(loop).sleep(8 * DAY)
        return seen

    assert run_virtual(main) == [0.1, 3.3, 7 * DAY]


def test_time_stands_still_while_anything_is_ready():
    async def main(loop: VirtualLoop) -> float:
        clock = LoopClock(loop)
        for _ in range(1000):
            await clock.sleep(0)
        return loop.time()

    assert run_virtual(main) == 0.0


def _order_of_ten_tasks(seed: int | None) -> list[int]:
    async def main(loop: VirtualLoop) -> list[int]:
        order: list[int] = []

        async def step(number: int) -> None:
            await LoopClock(loop).sleep(1)
            order.append(number)

        await asyncio.gather(*(step(number) for number in range(10)))
        return order

    return run_virtual(main, seed=seed)


def test_the_same_seed_gives_the_same_order_and_others_give_others():
    orders = {seed: tuple(_order_of_ten_tasks(seed)) for seed in range(20)}
    assert all(tuple(_order_of_ten_tasks(seed)) == order for seed, order in orders.items())
    assert len(set(orders.values())) > 15


def test_without_a_seed_tasks_run_first_in_first_out():
    assert _order_of_ten_tasks(None) == list(range(10))


def _lost_updates(seed: int) -> bool:
    """Two tasks read, yield and write a counter: a planted race."""

    async def main(loop: VirtualLoop) -> bool:
        counter = [0]

        async def add(pauses: int) -> None:
            for _ in range(pauses):
                await LoopClock(loop).sleep(0)
            seen = counter[0]
            await LoopClock(loop).sleep(0)
            counter[0] = seen + 1

        await asyncio.gather(add(0), add(2))
        return counter[0] != 2

    return run_virtual(main, seed=seed)


def test_a_planted_race_shows_under_some_seeds_and_not_under_others():
    found = [_lost_updates(seed) for seed in range(50)]
    assert any(found)
    assert not all(found)


@pytest.mark.parametrize("seed", range(10))
def test_bytes_of_one_stream_keep_their_order(seed):
    async def main(loop: VirtualLoop) -> list[int]:
        stream: asyncio.Queue[int] = asyncio.Queue()
        got: list[int] = []

        async def read() -> None:
            for _ in range(50):
                got.append(await stream.get())

        async def noise() -> None:
            for _ in range(50):
                await LoopClock(loop).sleep(0)

        for number in range(50):
            loop.call_soon(stream.put_nowait, number)
        await asyncio.gather(read(), noise(), noise())
        return got

    assert run_virtual(main, seed=seed) == list(range(50))


def test_a_deadlock_names_the_tasks_and_where_they_wait():
    async def main(loop: VirtualLoop) -> None:
        async def waits_for_ever() -> None:
            await asyncio.Event().wait()

        waiting = loop.create_task(waits_for_ever(), name="stuck-one")
        await waiting

    with pytest.raises(DeadlockError, match=r"stuck-one at .*Event\.wait"):
        run_virtual(main)


def test_a_loop_that_spins_is_stopped_with_the_spinning_task_named(monkeypatch):
    monkeypatch.setattr("sickbay.sim.loop.STEPS_PER_INSTANT", 1000)

    async def main(loop: VirtualLoop) -> None:
        async def spins() -> None:
            while True:
                await LoopClock(loop).sleep(0)

        await loop.create_task(spins(), name="spinner")

    with pytest.raises(StandstillError, match=r"time stands at 0\.000 s; busiest: spinner at "):
        run_virtual(main)


def test_until_bounds_the_run_and_says_what_was_still_waiting():
    async def main(loop: VirtualLoop) -> None:
        await LoopClock(loop).sleep(100)

    with pytest.raises(TimeoutError, match=r"not done after 60 virtual seconds; waiting: main at"):
        run_virtual(main, until=60)


def test_tasks_left_behind_are_cancelled():
    ended: list[str] = []

    async def main(loop: VirtualLoop) -> str:
        async def background() -> None:
            try:
                await LoopClock(loop).sleep(DAY)
            finally:
                ended.append("background")

        task = loop.create_task(background())
        await LoopClock(loop).sleep(1)
        assert not task.done()
        return "result"

    assert run_virtual(main) == "result"
    assert ended == ["background"]


def test_the_outside_world_is_refused():
    async def thread(loop: VirtualLoop) -> None:
        await asyncio.to_thread(print)

    async def address(loop: VirtualLoop) -> None:
        await loop.getaddrinfo("example.com", 80)

    async def connection(loop: VirtualLoop) -> None:
        await asyncio.open_connection("127.0.0.1", 80)

    async def port(loop: VirtualLoop) -> None:
        await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0, family=socket.AF_INET)

    for attempt in (thread, address, connection, port):
        with pytest.raises(OutsideError):
            run_virtual(attempt)


@pytest.mark.parametrize("seed", range(5))
def test_what_goes_first_goes_before_every_task_of_the_moment_and_what_waits_for_rest_after_them(seed):
    async def main(loop: VirtualLoop) -> list[str]:
        order: list[str] = []

        async def works() -> None:
            await LoopClock(loop).sleep(5)
            for _ in range(3):
                order.append("task")
                await LoopClock(loop).sleep(0)

        tasks = [loop.create_task(works()) for _ in range(3)]
        loop.call_at(5, lambda: loop.call_at_rest(lambda: order.append("rest")))
        loop.call_first_at(5, lambda: order.append("first"))
        loop.call_first_at(5, lambda: loop.call_first(lambda: order.append("third")))
        loop.call_first_at(5, lambda: order.append("second"))
        await asyncio.gather(*tasks)
        await LoopClock(loop).sleep(1)
        return order

    assert run_virtual(main, seed=seed) == ["first", "second", "third", *["task"] * 9, "rest"]


def test_a_skewed_clock_shifts_wall_time_and_never_durations():
    async def main(loop: VirtualLoop) -> None:
        ahead = LoopClock(loop, skew=600)
        await ahead.sleep(10)
        assert ahead.now() == EPOCH + timedelta(seconds=610)
        assert ahead.monotonic() == 10

    run_virtual(main)
