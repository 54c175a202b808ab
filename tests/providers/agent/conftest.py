"""Async tests here run on virtual time; those that start processes ask for `real_loop`."""

from __future__ import annotations

from tests.detect.conftest import clock, pytest_asyncio_loop_factories, real_loop  # noqa: F401
