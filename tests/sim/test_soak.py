"""Hours of faults leave nothing behind: no memory, no task, no object. `benchmarks/soak.py` does the same for a day."""

from __future__ import annotations

import pytest

from benchmarks import soak

GROWTH = 0.02
"""Of all blocks of memory: caches that fill once, and the odd object that is there at one count only."""


@pytest.mark.slow
@pytest.mark.case("P221")
def test_memory_tasks_and_objects_stay_as_they_were() -> None:
    found = soak.run(hours=1.0, nodes=6, first=0.5)
    assert found.problems == []
    assert found.ended >= 10
    first, last = found.first, found.last
    assert last.tasks == first.tasks
    assert not {"Running", "Pending", "Succeeded"} & set(last.repairs)
    assert {k: v for k, v in last.store.items() if k != "pods"} == {k: v for k, v in first.store.items() if k != "pods"}
    assert last.store["pods"] <= first.store["pods"] + 2  # failed ones that their Job keeps
    assert last.blocks <= first.blocks * (1 + GROWTH)
