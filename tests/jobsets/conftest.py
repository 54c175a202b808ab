"""The fixture `cluster`: the simulated JobSet controller on virtual time, and the real one on a real control plane.

As in the conformance suite the two runs of a test differ by the event loop it gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sickbay.sim.loop import VirtualLoop
from tests.jobsets.cluster import Cluster, real_cluster, simulated_cluster
from tests.support.both import mark_real, pytest_asyncio_loop_factories  # noqa: F401
from tests.support.controlplane import ControlPlane
from tests.support.hollow import allow_kubelets
from tests.support.jobset import JobSetController


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_real(items, "cluster")


@pytest.fixture(scope="package")
def jobset_plane(
    control_plane_binaries: Path, jobset_binaries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with Kubernetes' controllers, its scheduler and the JobSet controller."""
    folder = tmp_path_factory.mktemp("jobsets")
    with ControlPlane(control_plane_binaries, folder, controllers=True, scheduling=True) as plane:
        allow_kubelets(plane)
        with JobSetController(plane, jobset_binaries):
            yield plane


@pytest.fixture
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """Nodes of its own, and an empty namespace."""
    if isinstance(asyncio.get_running_loop(), VirtualLoop):
        async with simulated_cluster() as found:
            yield found
    else:
        async with real_cluster(request.getfixturevalue("jobset_plane")) as found:
            yield found
