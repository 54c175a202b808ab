"""The control plane as pytest fixtures, one for the whole test session.

A machine without Go skips these tests and says so. Where CI is set and Go is there, they must run: what keeps the
control plane from being built is then a failure, never a skip.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import build
from tests.support.controlplane import ControlPlane


@pytest.fixture(scope="session")
def control_plane_binaries() -> Path:
    """The folder with the built binaries. Building takes minutes the first time: `make controlplane` does it ahead."""
    try:
        return build.build(os.environ)
    except build.BuildError as problem:
        if os.environ.get("CI") == "true" and shutil.which("go"):
            pytest.fail(f"control plane not built: {problem}", pytrace=False)
        pytest.skip(f"no control plane (needs Go): {problem}")


@pytest.fixture(scope="session")
def control_plane(control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """etcd and kube-apiserver alone, with nothing of Sickbay in it. Tests share it: give objects names of your own."""
    with ControlPlane(control_plane_binaries, tmp_path_factory.mktemp("controlplane")) as running:
        yield running
