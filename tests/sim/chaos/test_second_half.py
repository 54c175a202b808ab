"""Chaos: the second half of the seeds."""

from __future__ import annotations

import pytest

from tests.sim.chaos import seeds


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds.SECOND_HALF)
def test_a_seed_holds(seed: int) -> None:
    seeds.holds(seed)
