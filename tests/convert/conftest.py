"""These tests run on virtual time."""

from __future__ import annotations

from tests.support.virtual import pytest_asyncio_loop_factories  # noqa: F401
