"""Hours of faults leave nothing behind: no memory, no task, no object. `benchmarks/soak.py` does the same for a day."""

from __future__ import annotations

import pytest

from benchmarks import soak
from sickbay.execute.permit import Permit
from sickbay.recover.ends import End
from sickbay.sim.history import Taken

GROWTH = 0.02
"""Of all blocks of memory: caches that fill once, and the odd object that is there at one count only."""

NODES = 6
SPARE = 3
"""Tasks of a moment: an alarm of a queue, a request on its way."""


@pytest.mark.slow
@pytest.mark.case("P221")
def test_memory_tasks_and_objects_stay_as_they_were() -> None:
    found = soak.run([0.5, 1.0], NODES)
    assert found.problems == []
    assert found.ended >= 10
    first, last = found.first, found.last
    assert last.tasks <= first.tasks + SPARE
    assert last.strays == 0
    # One that is over holds a whole record. The last ones were given at one moment: at most one for each node.
    assert 0 < last.types[Permit] <= NODES
    assert last.types[End] == 0
    assert last.types[Taken] == 0  # the simulator's own
    assert set(last.repairs) <= {"Succeeded", "Cancelled", "Failed"}  # ended less than an hour ago
    assert len(list(last.repairs.elements())) <= found.ended / 2
    passing = ("pods", "events", "noderepairs.sickbay.dev", "nodetasks.sickbay.dev")
    kept = [{key: number for key, number in count.store.items() if key not in passing} for count in (first, last)]
    assert kept[0] == kept[1]
    assert last.store["pods"] <= first.store["pods"] + 2  # failed ones that their Job keeps
    assert last.blocks <= first.blocks * (1 + GROWTH)
