"""The fixture `server`: ours in process and on virtual time, the real one over HTTPS and on a real loop.

The two runs of a test differ by the event loop it gets, and the loop decides which server it speaks to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from sickbay.apiserver.store import Store
from sickbay.clock import Randomness
from sickbay.sim.loop import VirtualLoop
from tests.conformance.server import Server, clients_of
from tests.support import virtual
from tests.support.both import mark_real, pytest_asyncio_loop_factories  # noqa: F401


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_real(items, "server")


@pytest.fixture
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    real = not isinstance(asyncio.get_running_loop(), VirtualLoop)
    if real:
        plane = request.getfixturevalue("control_plane")
        # A new process starts with an empty watch cache.
        found = Server(plane.http_client, plane.restart_apiserver, real=True)
    else:
        store = Store(virtual.clock(), Randomness(1))
        found = Server(clients_of(store), store.compact, real=False)
    async with found.client:
        yield found
