"""Async tests here run on virtual time; those that need sockets or processes say so and run on a real loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from sickbay.clock import Clock, Randomness
from sickbay.sim.loop import VirtualLoop
from tests.support import virtual


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    real = item.get_closest_marker("controlplane") is not None or "real_loop" in item.fixturenames  # type: ignore[attr-defined]
    if real:
        return {"real": asyncio.new_event_loop}
    return {"virtual": lambda: VirtualLoop(virtual.SEED)}


@pytest.fixture
def real_loop() -> None:
    """Asked for by tests that start processes or open sockets."""


@pytest.fixture
async def clock() -> Clock:
    return virtual.clock()


@pytest.fixture
def randomness() -> Randomness:
    return Randomness(1)
