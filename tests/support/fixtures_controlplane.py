"""The control plane as pytest fixtures, one for the whole test session.

A machine without Go skips these tests and says so. Where CI is set and Go is there, they must run: what keeps the
control plane from being built is then a failure, never a skip.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.controlplane import build, jobset
from tests.support.controlplane import ControlPlane
from tests.support.install import install

DROPPED = (
    r"ignore:Exception ignored in. <function _SelectorTransport:pytest.PytestUnraisableExceptionWarning",
    r"ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
)
"""A request that is cancelled in the moment its connection is made leaves that to the garbage collector (asyncio's and
anyio's connect). It happens when a test ends in the midst of it. Elsewhere a socket that is left open fails."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("controlplane"):
            for text in DROPPED:
                item.add_marker(pytest.mark.filterwarnings(text))


@pytest.fixture(scope="session")
def control_plane_binaries() -> Path:
    """The folder with the built binaries. Building takes minutes the first time: `make controlplane` does it ahead."""
    return built_or_skipped(os.environ)


@pytest.fixture(scope="session")
def jobset_binaries() -> Path:
    """The folder with the JobSet controller and its manifests."""
    return built_or_skipped(os.environ, jobset.build)


def built_or_skipped(environment: Mapping[str, str], what: Callable[[Mapping[str, str]], Path] = build.build) -> Path:
    """The folder; otherwise skips the test, or fails it where the machine has no excuse."""
    try:
        return what(environment)
    except build.BuildError as problem:
        if environment.get("CI") == "true" and shutil.which("go", path=environment.get("PATH")):
            pytest.fail(f"control plane not built: {problem}", pytrace=False)
        pytest.skip(f"no control plane (needs Go): {problem}")


@pytest.fixture(scope="session")
def control_plane(control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver alone, with no policy of Sickbay's. Tests share it: give objects names of your own."""
    with ControlPlane(control_plane_binaries, tmp_path_factory.mktemp("controlplane")) as running:
        yield running


@pytest.fixture(scope="session")
def sickbay_control_plane(
    control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver with Sickbay's kinds, roles and policies, as on a cluster that runs it. Shared, too.

    Product processes act here under their own identities: `agent_token(node)`, `controller_token()`.
    """
    with ControlPlane(control_plane_binaries, tmp_path_factory.mktemp("sickbay-controlplane")) as running:
        install(running)
        yield running
