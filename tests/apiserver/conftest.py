"""Async tests run on virtual time; those that open sockets ask for `real_loop`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import httpx2
import pytest

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.store import Store
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import Caller
from sickbay.clock import Randomness, SystemClock
from sickbay.sim.loop import VirtualLoop
from tests.support import virtual

ADMIN = Caller("admin", ("system:masters",))


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if "real_loop" in getattr(item, "fixturenames", ()) or item.get_closest_marker("controlplane") is not None:
        return {"real": asyncio.new_event_loop}
    return {"virtual": lambda: VirtualLoop(virtual.SEED)}


@pytest.fixture
def real_loop() -> None:
    """Asked for by tests that open sockets."""


@pytest.fixture
def store() -> Store:
    """A store on the system's clock, for tests that let no time pass."""
    return Store(SystemClock(), Randomness(1))


@pytest.fixture
async def timed_store() -> Store:
    """A store on the test's own loop."""
    return Store(virtual.clock(), Randomness(1))


@pytest.fixture
async def client(timed_store: Store) -> AsyncIterator[httpx2.AsyncClient]:
    app = ApiServer(timed_store, {"secret": ADMIN})
    headers = {"authorization": "Bearer secret"}
    async with httpx2.AsyncClient(
        transport=InProcessTransport(app), base_url="http://ours", headers=headers
    ) as connected:
        yield connected
