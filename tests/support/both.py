"""Run a folder of tests twice, on ours in virtual time and on the real thing in real time: in its conftest.py,

    from tests.support.both import pytest_asyncio_loop_factories  # noqa: F401

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
        mark_real(items, "cluster")

The two runs of a test differ by the event loop it gets, and a fixture of that name tells by the loop which one it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from sickbay.sim.loop import VirtualLoop
from tests.support import virtual

OURS, REAL = "ours", "real"


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {OURS: lambda: VirtualLoop(virtual.SEED), REAL: asyncio.new_event_loop}


def mark_real(items: list[pytest.Item], fixture: str) -> None:
    """The runs on the real thing need a control plane."""
    for item in items:
        parameters = item.name.rpartition("[")[2].rstrip("]").split("-")
        if fixture in getattr(item, "fixturenames", ()) and REAL in parameters:
            item.add_marker(pytest.mark.controlplane)
