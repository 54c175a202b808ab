"""The seeds that every full run of the tests goes through, in two halves: one per worker."""

from __future__ import annotations

from sickbay.sim.chaos import report
from sickbay.sim.chaos.plan import draw
from sickbay.sim.chaos.run import run

FOUND = (378, 1018, 1025)
"""Beyond the first 300, those that have once found something."""
FIRST_HALF = range(1, 151)
SECOND_HALF = (*range(151, 301), *FOUND)


def holds(seed: int) -> None:
    """Whatever goes wrong in the world of this seed, nothing breaks, and in the end all rests."""
    result = run(draw(seed))
    assert result.ok, "\n".join(report.lines(result))
    assert result.writes > 0
