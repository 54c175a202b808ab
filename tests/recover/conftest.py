from tests.support.virtual import pytest_asyncio_loop_factories  # noqa: F401
