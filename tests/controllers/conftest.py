"""The fixture `cluster`: Kubernetes as a workload sees it, simulated and real.

The same tests run on our API server with the simulator's controllers, on virtual time, and on the real kube-apiserver,
kube-controller-manager and kube-scheduler with hollow kubelets, in real time. Where the two differ, ours is wrong, or
the module of the simulated part says what is left out. The two runs of a test differ by the event loop it gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sickbay.sim.loop import VirtualLoop
from tests.controllers.cluster import Cluster, RealCluster, SimulatedCluster, strand_a_pod
from tests.support.both import mark_real, pytest_asyncio_loop_factories  # noqa: F401
from tests.support.controlplane import ControlPlane
from tests.support.hollow import allow_kubelets


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_real(items, "cluster")


@pytest.fixture(scope="package")
def full_control_plane(
    control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """Controllers that look at nodes more often than usual."""
    folder = tmp_path_factory.mktemp("controllers")
    with ControlPlane(control_plane_binaries, folder, controllers=True, scheduling=True, hurried=True) as running:
        allow_kubelets(running)
        strand_a_pod(running)
        yield running


@pytest.fixture
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    if isinstance(asyncio.get_running_loop(), VirtualLoop):
        async with SimulatedCluster() as simulated:
            yield simulated
    else:
        async with RealCluster(request.getfixturevalue("full_control_plane")) as real:
            yield real
