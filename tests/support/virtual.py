"""Run a folder of tests on virtual time: in its conftest.py,

    from tests.support.virtual import pytest_asyncio_loop_factories  # noqa: F401

and every async test there runs on a `VirtualLoop`. `SICKBAY_TEST_SEED` chooses the order in which ready tasks run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

import pytest

from sickbay.sim.loop import LoopClock, VirtualLoop

SEED = int(os.environ.get("SICKBAY_TEST_SEED", "0"))


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual": lambda: VirtualLoop(SEED)}


def clock() -> LoopClock:
    """A clock on the loop that runs the calling test."""
    return LoopClock(asyncio.get_running_loop())
