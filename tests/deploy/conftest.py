"""Two control planes with Sickbay's roles: one with its admission policies, one without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.controlplane import ControlPlane
from tests.support.install import apply_crds, apply_objects, install_policies, install_roles

# Checks nothing itself, so that what is refused is refused by a policy.
NODE_TASKS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "nodetasks.sickbay.dev"},
    "spec": {
        "group": "sickbay.dev",
        "scope": "Cluster",
        "names": {"plural": "nodetasks", "singular": "nodetask", "kind": "NodeTask", "listKind": "NodeTaskList"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
PLATFORM = {"kind": "ServiceAccount", "name": "trainer", "namespace": "platform"}
PEOPLE = {"kind": "Group", "name": "people", "apiGroup": "rbac.authorization.k8s.io"}


def bind(control_plane: ControlPlane, role: str, name: str, *subjects: dict[str, str]) -> None:
    apply_objects(
        control_plane,
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": list(subjects),
        },
    )


def with_roles(binaries: Path, folder: Path) -> ControlPlane:
    """A running control plane where people and a training platform may patch nodes, as approvers do."""
    control_plane = ControlPlane(binaries, folder)
    control_plane.start()
    try:
        apply_crds(control_plane, NODE_TASKS)
        install_roles(control_plane)
        bind(control_plane, "sickbay-approver", "people-approve", PEOPLE, PLATFORM)
    except BaseException:
        control_plane.stop()
        raise
    return control_plane


@pytest.fixture(scope="package")
def guarded(control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Roles and policies."""
    control_plane = with_roles(control_plane_binaries, tmp_path_factory.mktemp("guarded"))
    try:
        install_policies(control_plane)
        yield control_plane
    finally:
        control_plane.stop()


@pytest.fixture(scope="package")
def unguarded(control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Roles alone: what a policy refuses must pass here, or the test of that policy proves nothing."""
    control_plane = with_roles(control_plane_binaries, tmp_path_factory.mktemp("unguarded"))
    try:
        yield control_plane
    finally:
        control_plane.stop()
