"""The real API server, for the suite that holds our own judgement to it."""

from tests.support.fixtures_controlplane import control_plane, control_plane_binaries  # noqa: F401
