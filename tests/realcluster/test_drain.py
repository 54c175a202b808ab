"""Drains under disruption budgets that the real disruption controller keeps."""

from __future__ import annotations

import pytest

from sickbay.api import kinds, names
from tests.realcluster import objects
from tests.realcluster.objects import STEPS
from tests.realcluster.world import World
from tests.support.eventually import eventually

pytestmark = pytest.mark.controlplane


async def placed(world: World, app: str, replicas: int, node: str, elsewhere: list[str]) -> None:
    """A workload whose pods all run on one node, while other nodes are there for them to go to."""
    for other in elsewhere:
        await world.dev.cordon(other)
    await world.workload(objects.deployment(app, world.name, replicas))
    await eventually(lambda: world.places(app) == [node] * replicas, 30)
    for other in elsewhere:
        await world.dev.uncordon(other)


async def counted(world: World, app: str, healthy: int) -> None:
    """Wait until the disruption controller has counted the pods of a budget."""

    async def seen() -> bool:
        return (await world.admin.get(kinds.PDB, app, "default")).status.current_healthy == healthy

    await eventually(seen, 30, f"the budget of {app} counts {healthy} healthy pods")


async def test_a_budget_that_never_allows_is_named_and_kept_until_people_come(world: World) -> None:
    sick, well = await world.nodes(2)
    app = world.name
    await world.pool("Quarantine", {"step": "Drain", "timeout": "6s"}, *STEPS[2:])
    await placed(world, app, 2, sick, [well])
    await world.workload(objects.budget(app, minAvailable=2))
    await counted(world, app, 2)
    await world.start()
    await world.fault(sick)
    blocked = await world.until(
        sick, lambda r: any(p.state == "Blocked" for p in r.status.step("Drain").report.pods), "a pod is blocked"
    )
    told = blocked.status.step("Drain").report.pods
    assert {(p.why, p.pdb) for p in told if p.state == "Blocked"} == {("Never", app)}
    waiting = await world.phase(sick, "NeedsHuman")
    assert waiting.status.needs == "DrainBlocked"
    assert world.places(app) == [sick, sick]
    assert world.evicted() == []
    assert world.calls(sick) == 0
    assert world.quarantined(sick)
    events = await world.events(sick, "DrainBlocked")
    assert len(events) == 2, f"one for each pod, not one for each pass: {events}"
    assert all(f"PodDisruptionBudget {app}, which can never let it go" in event for event in events), events


async def test_a_budget_that_allows_one_at_a_time_is_never_broken(world: World) -> None:
    sick, well = await world.nodes(2)
    app = world.name
    await world.pool()
    await placed(world, app, 3, sick, [well])
    await world.workload(objects.budget(app, maxUnavailable=1))
    await counted(world, app, 3)
    world.cured_by_reboot(sick)
    least = [3]
    world.on_pod.append(lambda: least.append(len(world.places(app))))
    await world.start()
    await world.fault(sick)
    over = await world.closed(sick, 90)
    assert over.status.outcome == "Repaired"
    assert world.places(app) == [well] * 3
    assert len(world.evicted()) == 3
    assert min(least) >= 2


@pytest.mark.case("R23")
async def test_a_pod_under_two_budgets_is_named_and_the_others_go(world: World) -> None:
    """Part (a): the eviction API does not judge such a pod and answers with an error of its own."""
    sick, well = await world.nodes(2)
    app, other = world.name, f"{world.name}-other"
    await world.pool("Quarantine", {"step": "Drain", "timeout": "6s"}, *STEPS[2:])
    await placed(world, app, 1, sick, [well])
    await placed(world, other, 1, sick, [well])
    second = objects.budget(app, maxUnavailable=1) | {"metadata": {"name": f"{app}-second", "namespace": "default"}}
    await world.workload(objects.budget(app, maxUnavailable=1), second)
    await counted(world, app, 1)
    await world.start()
    await world.fault(sick)
    await world.phase(sick, "NeedsHuman")
    told = [p for r in world.tape for p in r.status.step("Drain").report.pods if p.state == "Blocked"]
    assert {(p.why, p.pdb) for p in told} == {("Error", f"{app},{app}-second")}
    assert world.places(app) == [sick]
    await eventually(lambda: world.places(other) == [well], 10)


@pytest.mark.case("N01")
async def test_a_drain_that_recovery_has_cancelled_leads_to_no_reboot(world: World) -> None:
    (sick,) = await world.nodes(1)
    app = world.name
    await world.pool()
    long = objects.deployment(app, world.name, 1)
    long["spec"]["template"]["metadata"]["labels"][names.WAIT_FOR_COMPLETION] = "true"
    await world.workload(long)
    await eventually(lambda: world.places(app) == [sick], 30)
    before = world.marks(sick)
    await world.start()
    await world.fault(sick)
    await world.until(sick, lambda r: bool(r.status.step("Drain").report.pods), "the drain waits for the pod")
    await world.fault(sick, "False")
    over = await world.closed(sick)
    assert (over.status.phase, over.status.outcome) == ("Cancelled", "SelfRecovered")
    assert over.status.step("Drain").state == "Cancelled"
    assert not world.ever(sick, "Drain", "Done")
    assert world.evicted() == []
    assert world.places(app) == [sick]
    assert world.calls(sick) == 0
    assert world.marks(sick) == before
