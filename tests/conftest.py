"""Fixtures and settings for all tests."""

from __future__ import annotations

import os

import structlog
from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.support.fixtures_controlplane",)

# Virtual time makes wall-clock deadlines meaningless, and CI machines are noisy; what is found is printed as a blob.
settings.register_profile(
    "default",
    deadline=None,
    max_examples=int(os.environ.get("SICKBAY_EXAMPLES", "60")),
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
