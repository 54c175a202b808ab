"""Async tests here run on virtual time; those that need processes or real descriptors ask for `real_loop`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from sickbay.clock import Clock
from sickbay.sim.loop import VirtualLoop
from tests.support import virtual


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if "real_loop" in item.fixturenames:  # type: ignore[attr-defined]
        return {"real": asyncio.new_event_loop}
    return {"virtual": lambda: VirtualLoop(virtual.SEED)}


@pytest.fixture
def real_loop() -> None:
    """Asked for by tests that start processes or wait on descriptors."""


@pytest.fixture
async def clock() -> Clock:
    return virtual.clock()
