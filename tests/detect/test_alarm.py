"""An alarm ends a wait by its bell or by its time, and keeps one ring for who comes later."""

from __future__ import annotations

import asyncio

import pytest

from sickbay.clock import Clock
from sickbay.detect.alarm import Alarm


async def waited(clock: Clock, alarm: Alarm, seconds: float | None) -> float:
    """Seconds that one wait took."""
    began = clock.monotonic()
    await alarm.wait(seconds)
    return clock.monotonic() - began


async def test_a_wait_ends_with_its_time(clock: Clock) -> None:
    assert await waited(clock, Alarm(clock), 30.0) == 30.0


@pytest.mark.parametrize("seconds", [30.0, None], ids=["with a time", "without"])
async def test_a_ring_ends_the_wait_and_is_used_up(clock: Clock, seconds: float | None) -> None:
    alarm = Alarm(clock)
    waiting = asyncio.ensure_future(waited(clock, alarm, seconds))
    await clock.sleep(5)
    alarm.ring()
    assert await waiting == 5.0
    assert await waited(clock, alarm, 30.0) == 30.0


async def test_rings_while_nobody_waits_are_one_for_the_next_wait(clock: Clock) -> None:
    alarm = Alarm(clock)
    alarm.ring()
    alarm.ring()
    assert await waited(clock, alarm, 30.0) == 0.0
    assert await waited(clock, alarm, 30.0) == 30.0


async def test_a_wait_that_was_given_up_leaves_no_timer_and_hears_no_ring(clock: Clock) -> None:
    alarm, before = Alarm(clock), len(asyncio.all_tasks())
    waiting = asyncio.ensure_future(alarm.wait(30.0))
    await clock.sleep(1)
    waiting.cancel()
    await clock.sleep(1)
    assert len(asyncio.all_tasks()) == before
    alarm.ring()
    assert await waited(clock, alarm, 30.0) == 0.0
