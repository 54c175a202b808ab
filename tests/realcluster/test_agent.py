"""From a line of the kernel to the node back in service, through the real agent and its NodeTask."""

from __future__ import annotations

import pytest

from sickbay.api import kinds, names
from sickbay.api.devices import read_devices
from sickbay.detect import agent, gpus
from tests.realcluster.objects import STEPS, own
from tests.realcluster.world import World
from tests.support.eventually import eventually

pytestmark = pytest.mark.controlplane

LINE = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, name=python3, GPU has fallen off the bus."
FAULT, CONDITION = "gpu.xid.79", "NvidiaXID79Error"


@pytest.fixture(autouse=True)
def quick_proof_of_a_clean_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a minute, and two looks at the GPUs ten seconds apart, are cut short."""
    monkeypatch.setattr(agent, "SETTLE", 2.0)
    monkeypatch.setattr(agent, "RESETTLE", 0.5)
    monkeypatch.setattr(gpus, "POLL", 0.5)


async def test_a_kernel_line_goes_all_the_way_round(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool(pool={"provider": {"name": "agent"}})
    await world.alice.apply(own("FaultType", FAULT, {"validation": {"soak": "1s", "ceiling": "60s", "level": 0}}))
    host = world.run_agent(sick)
    await eventually(lambda: world.condition(sick, names.DETECTION_BLIND) == "False", 30, "the agent sees")
    before, boot = world.marks(sick), world.machines[sick].boot_id
    await world.start()
    world.machines[sick].print_kernel(LINE)
    await world.running(sick, "Repair")
    assert world.condition(sick, CONDITION) == "True"
    assert [d.uuid for d in read_devices(world.typed(sick))] == [world.machines[sick].gpus[0].uuid]
    over = await world.closed(sick, 60)
    assert (over.status.phase, over.status.outcome) == ("Succeeded", "Repaired")
    assert world.ran(sick) == list(STEPS)
    assert [fault.type for fault in over.spec.faults] == [FAULT]
    assert host.reboots == 1
    (attempt,) = over.status.step("Repair").attempts
    assert (attempt.proof["bootBefore"], attempt.proof["bootID"]) == (boot, world.machines[sick].boot_id)
    task = await world.admin.get(kinds.NODE_TASK, f"{over.metadata.uid}-repair-{attempt.n}")
    await eventually(lambda: world.condition(sick, CONDITION) == "False", 30, "the agent has cleared its finding")
    await eventually(lambda: world.marks(sick) == before, 10, lambda: f"{world.marks(sick)} is {before}")
    assert task.spec.node.boot_id == boot
    assert (await world.admin.get(kinds.NODE_TASK, task.metadata.name)).status.phase == "Done"
    await world.alice.kubectl("delete", "faulttype", FAULT)


async def test_an_agent_carries_out_no_task_made_for_another_boot(world: World) -> None:
    """The machine boots by itself between the order and its execution: what was ordered for the old boot is void."""
    (sick,) = await world.nodes(1)
    await world.pool(pool={"provider": {"name": "agent"}})
    world.cured_by_reboot(sick)
    await world.start()
    await world.fault(sick)
    await world.running(sick, "Repair")
    repair = world.repair(sick)
    name = f"{repair.metadata.uid}-repair-{repair.status.current.attempt}"
    await eventually(lambda: world.admin.get(kinds.NODE_TASK, name), 10)
    world.machines[sick].reboot()
    await eventually(lambda: world.machines[sick].up, 10)
    host = world.run_agent(sick)
    over = await world.closed(sick)
    assert over.status.outcome == "Repaired"

    async def refused() -> bool:
        return (await world.admin.get(kinds.NODE_TASK, name)).status.phase == "Refused"

    await eventually(refused, 20, "the task is refused")
    assert host.reboots == 0
