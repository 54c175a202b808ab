"""A real control plane of their own for these tests, and a small world on it for each.

The controllers of Kubernetes are real; nodes are hollow. Times are real and short. Each test has nodes, a pool, a rule
and a fault type of its own, so nothing is shared but the server; what it leaves behind is removed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.realcluster import agents
from tests.realcluster.world import World
from tests.support.controlplane import ControlPlane
from tests.support.hollow import allow_kubelets
from tests.support.install import apply_objects, install
from tests.support.logs import tracebacks

HERE = Path(__file__).parent
PEOPLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "people"}
ROLES_OF_PEOPLE = ("sickbay-viewer", "sickbay-approver", "sickbay-operator")


@pytest.fixture(scope="package")
def real_cluster(control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Everything that a cluster with Sickbay has but Sickbay's processes and nodes. Writes are recorded."""
    folder = tmp_path_factory.mktemp("realcluster")
    with ControlPlane(control_plane_binaries, folder, controllers=True, scheduling=True, audit=True) as running:
        install(running)
        allow_kubelets(running)
        apply_objects(running, *(_bound(role) for role in ROLES_OF_PEOPLE), agents.daemon_set())
        yield running


@pytest.fixture
async def world(real_cluster: ControlPlane) -> AsyncIterator[World]:
    with tracebacks() as found:
        async with World(real_cluster) as made:
            yield made
    assert not found, "\n".join(found)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A task that is cancelled in the middle of a TLS handshake leaves its socket to the garbage collector (httpcore).

    Processes here die at any moment, so that happens; everything else that nobody could raise still fails a test.
    """
    sockets = r"ignore:Exception ignored in. <(function _SelectorTransport|socket\.socket)"
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.filterwarnings(f"{sockets}:pytest.PytestUnraisableExceptionWarning"))


def _bound(role: str) -> dict[str, object]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"people-{role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [PEOPLE],
    }
