"""A pool in Observe decides and reports, and touches nothing."""

from __future__ import annotations

import pytest

from sickbay.api import names
from tests.realcluster.world import World
from tests.support.eventually import eventually

pytestmark = pytest.mark.controlplane


async def test_observe_reports_and_writes_nothing_but_its_record(world: World) -> None:
    sick, spare = await world.nodes(2)
    await world.pool(pool={"mode": "Observe"})
    before = world.marks(sick)
    decide, execute = await world.start()
    await world.fault(sick)
    seen = await world.phase(sick, "WouldAct")
    assert "would run Quarantine, Drain, Repair (RebootNode)" in seen.status.message
    await execute.stop()
    execute.start()
    await world.looked_again(decide, spare)
    assert world.repair(sick).status.phase == "WouldAct"
    await world.fault(sick, "False")
    over = await world.closed(sick)
    assert (over.status.phase, over.status.outcome) == ("WouldAct", "Observed")
    assert world.marks(sick) == before
    ours = [e for e in world.written() if e.agent in ("sickbay-decide", "sickbay-execute")]
    # Beside the record only the statuses of what people wrote for Sickbay.
    statuses = {e.resource for e in ours if e.subresource == "status"}
    assert statuses <= {"noderepairs", "repairpools", "repairrules", "faulttypes"}
    assert {e.resource for e in ours if e.subresource != "status"} <= {"noderepairs", "leases", "events"}
    assert world.calls(sick) == 0


async def test_a_pool_that_is_let_act_repairs_what_is_still_wrong(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool(pool={"mode": "Observe"})
    world.cured_by_reboot(sick)
    await world.start()
    await world.fault(sick)
    await world.phase(sick, "WouldAct")
    await world.alice.kubectl("patch", "repairpool", world.name, "--type=merge", "-p", '{"spec": {"mode": "Act"}}')
    await eventually(lambda: len(world.repairs(sick)) == 2, 30, lambda: world.story(sick))
    over = await world.closed(sick)
    assert over.status.outcome == "Repaired"
    assert world.calls(sick) == 1
    assert names.QUARANTINE not in world.typed(sick).annotations
