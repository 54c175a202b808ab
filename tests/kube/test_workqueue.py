"""Workers on the queue: one per key, later looks on time, failures that back off and end nothing."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sickbay.clock import Clock, Randomness
from sickbay.kube import errors
from sickbay.kube.workqueue import Closed, Reconcile, WorkQueue
from sickbay.sim.loop import LoopClock, VirtualLoop, run_virtual


@pytest.fixture
async def queue(clock: Clock) -> WorkQueue[str]:
    return WorkQueue(clock, Randomness(1))


@asynccontextmanager
async def serving(queue: WorkQueue[str], reconcile: Reconcile[str], workers: int = 2) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run(reconcile, workers))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


class Looks:
    """A reconcile that notes when each key was looked at."""

    def __init__(self, clock: Clock, takes: float = 0.0) -> None:
        self.clock = clock
        self.takes = takes
        self.seen: list[tuple[str, float]] = []
        self.busy: set[str] = set()
        self.most = 0
        self.answers: Iterator[float | Exception | None] = iter(())

    async def __call__(self, key: str) -> float | None:
        assert key not in self.busy, "two workers have one key"
        self.busy.add(key)
        self.most = max(self.most, len(self.busy))
        self.seen.append((key, self.clock.monotonic()))
        try:
            await self.clock.sleep(self.takes)
        finally:
            self.busy.remove(key)
        answer = next(self.answers, None)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def times(self, key: str) -> list[float]:
        return [at for name, at in self.seen if name == key]


async def test_keys_are_served_by_several_workers_but_each_by_one(queue: WorkQueue[str], clock: Clock) -> None:
    looks = Looks(clock, takes=10)
    async with serving(queue, looks, workers=3):
        for key in "abcd":
            queue.add(key)
        await clock.sleep(1)
        for key in "abcd":
            queue.add(key)
        await clock.sleep(100)
    assert looks.most == 3
    assert sorted(key for key, _ in looks.seen) == sorted("abcabcd"), "d waited, so one look serves both"
    assert queue.quiet


async def test_a_key_added_while_in_work_is_looked_at_again(queue: WorkQueue[str], clock: Clock) -> None:
    looks = Looks(clock, takes=10)
    async with serving(queue, looks):
        queue.add("a")
        await clock.sleep(3)
        queue.add("a")
        queue.add("a")
        await clock.sleep(100)
    assert looks.times("a") == [0, 10]


async def test_a_later_look_comes_on_time_and_an_earlier_wish_wins(queue: WorkQueue[str], clock: Clock) -> None:
    looks = Looks(clock)
    async with serving(queue, looks):
        queue.add_after("a", 60)
        queue.add_after("b", 90)
        await clock.sleep(1)
        queue.add_after("b", 9)
        queue.add_after("a", 500)
        await clock.sleep(200)
    assert looks.seen == [("b", 10), ("a", 60)]


async def test_a_wish_made_before_the_workers_start_is_kept(queue: WorkQueue[str], clock: Clock) -> None:
    looks = Looks(clock)
    queue.add_after("a", 5)
    queue.add("b")
    async with serving(queue, looks):
        await clock.sleep(10)
    assert looks.seen == [("b", 0), ("a", 5)]


async def test_no_delay_is_now(queue: WorkQueue[str], clock: Clock) -> None:
    looks = Looks(clock)
    async with serving(queue, looks):
        queue.add_after("a", 0)
        queue.add_after("b", -5)
        await clock.sleep(1)
    assert [at for _, at in looks.seen] == [0, 0]


async def test_a_worker_says_when_it_wants_to_look_again(queue: WorkQueue[str], clock: Clock) -> None:
    looks = Looks(clock)
    looks.answers = iter([30.0, 30.0, None])
    async with serving(queue, looks):
        queue.add("a")
        await clock.sleep(1000)
    assert looks.times("a") == [0, 30, 60]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(errors.Conflict(409, "Conflict", "changed"), id="conflict"),
        pytest.param(errors.Unreachable("refused"), id="no answer"),
        pytest.param(KeyError("bug"), id="a bug"),
    ],
)
async def test_a_failed_key_backs_off_until_it_succeeds_and_then_starts_small_again(
    queue: WorkQueue[str], clock: Clock, failure: Exception
) -> None:
    looks = Looks(clock)
    looks.answers = iter([failure, failure, failure, None, failure, None])
    async with serving(queue, looks):
        queue.add("a")
        await clock.sleep(100)
        queue.add("a")
        await clock.sleep(100)
    times = looks.times("a")
    waits = [after - before for before, after in itertools.pairwise(times[:-2])]
    assert len(waits) == 3
    assert all(low <= wait <= 1.2 * low + 1e-6 for wait, low in zip(waits, [0.5, 1.0, 2.0], strict=True))
    assert 0.5 <= times[-1] - times[-2] <= 0.6
    assert queue.quiet


async def test_back_off_has_a_ceiling(clock: Clock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock, Randomness(1), retry_high=20)
    for _ in range(100):
        wait = queue.retry("a")
    assert 20 <= wait <= 24


async def test_urgent_keys_pass_others_that_came_a_little_earlier(queue: WorkQueue[str], clock: Clock) -> None:
    looks = Looks(clock, takes=1)
    async with serving(queue, looks, workers=1):
        for number in range(5):
            queue.add(f"n{number}")
        await clock.sleep(0.5)
        queue.add("urgent", priority=1)
        await clock.sleep(20)
    assert [key for key, _ in looks.seen][:2] == ["n0", "urgent"]


async def test_a_closed_queue_finishes_what_is_in_work_and_hands_out_no_more(
    queue: WorkQueue[str], clock: Clock
) -> None:
    looks = Looks(clock, takes=10)
    running = asyncio.create_task(queue.run(looks, 1))
    queue.add("a")
    queue.add("b")
    queue.add_after("c", 5)
    await clock.sleep(1)
    queue.close()
    await running
    assert clock.monotonic() == 10
    assert looks.times("b") == []
    with pytest.raises(Closed):
        await queue.get()


async def test_idle_workers_are_ended_by_closing(queue: WorkQueue[str], clock: Clock) -> None:
    running = asyncio.create_task(queue.run(Looks(clock), 3))
    await clock.sleep(1)
    queue.close()
    await running


async def test_cancelling_the_run_leaves_no_task_behind(queue: WorkQueue[str], clock: Clock) -> None:
    before = asyncio.all_tasks()
    async with serving(queue, Looks(clock, takes=50)):
        queue.add("a")
        queue.add_after("b", 1000)
        await clock.sleep(1)
    await clock.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_get_that_is_cancelled_loses_no_key(queue: WorkQueue[str], clock: Clock) -> None:
    waiting = asyncio.create_task(queue.get())
    await clock.sleep(1)
    queue.add("a")
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled() or waiting.result() == "a"
    if waiting.cancelled():
        assert await queue.get() == "a"


async def test_depth_waits_and_retries_are_measured(queue: WorkQueue[str], clock: Clock) -> None:
    metrics = queue._metrics
    queue.add("a")
    queue.add("b")
    assert next(iter(metrics.depth.collect())).samples[0].value == 2
    await clock.sleep(3)
    looks = Looks(clock)
    looks.answers = iter([KeyError("bug")])
    async with serving(queue, looks):
        await clock.sleep(10)
    assert metrics.retries._value.get() == 1
    assert metrics.wait_seconds.total >= 6


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0, 50), st.integers(0, 2), st.sampled_from([0.0, 0.0, 5.0, 30.0])),
        max_size=25,
    ),
    st.integers(1, 3),
    st.integers(0, 1000),
)
def test_after_every_mention_of_a_key_a_look_begins(
    mentions: list[tuple[str, float, int, float]], workers: int, seed: int
) -> None:
    """Mentions come at any time, doubled and in any order, with and without delay; lots decide who runs first."""

    async def main(loop: VirtualLoop) -> None:
        clock = LoopClock(loop)
        queue: WorkQueue[str] = WorkQueue(clock, Randomness(seed))
        looks = Looks(clock, takes=2)
        lots = Randomness(seed)
        owed: list[tuple[str, float, float]] = []

        async def mention(key: str, at: float, priority: int, delay: float) -> None:
            await clock.sleep(at)
            owed.append((key, clock.monotonic(), clock.monotonic() + delay))
            if delay:
                queue.add_after(key, delay, priority)
            else:
                queue.add(key, priority)

        async def look(key: str) -> float | None:
            await looks(key)
            if lots.chance(0.3):
                raise KeyError("bug")
            return None

        async with serving(queue, look, workers):
            await asyncio.gather(*(mention(*each) for each in mentions))
            await clock.sleep(400)
        assert queue.quiet
        # Three keys of two seconds each, head starts of at most a minute: no look is later than that. An earlier wish
        # may bring it before it is due, but a look from before it was mentioned never counts.
        for key, mentioned, due in owed:
            assert any(mentioned <= at <= due + 80 for at in looks.times(key)), (key, mentioned, due)

    run_virtual(main, seed)
