"""A rack on a real control plane: admitted as one, asked about once, taken down once, returned together."""

from __future__ import annotations

import pytest

from sickbay.api import kinds
from sickbay.sim import cloud
from tests.realcluster.objects import gated
from tests.realcluster.world import World
from tests.support.eventually import eventually

pytestmark = pytest.mark.controlplane

RACK = "sickbay.dev/rack"


async def rack(world: World, count: int) -> list[str]:
    """Nodes that one label makes a failure domain."""
    names = await world.nodes(count)
    for name in names:
        await world.admin.patch_merge(kinds.NODE.raw, name, {"metadata": {"labels": {RACK: world.name}}})
    await eventually(lambda: all(RACK in world.marks(name)["labels"] for name in names), 30)
    return names


async def domain_pool(world: World, *steps: object, **pool: object) -> None:
    remedy = [{"action": "RecoverDomain", "attempts": 1, "timeout": "60s"}]
    await world.pool(*steps, pool=pool, scope="Domain", domain=RACK, remedy=remedy)


async def test_a_rack_is_repaired_as_one_under_our_own_identities(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cloud.DURATIONS, "recoverDomain", 1.0)
    sick, *others = members = await rack(world, 3)
    before = {name: world.marks(name) for name in members}
    await domain_pool(world, "Quarantine", gated("Drain"), "Repair", "Validate", "Unquarantine")
    await world.start()
    await world.fault(sick)
    await eventually(lambda: world.label(sick, "Drain") == "inquiring", 30, "the leader's node asks")
    await eventually(lambda: all(world.quarantined(name) for name in members), 20)
    assert [world.label(name, "Drain") for name in others] == ["", ""], "one question for all"
    await world.alice.answer(sick, "Drain", "approved")
    await eventually(lambda: world.calls(sick, "recoverDomain") == 1, 30)
    await world.fault(sick, "False")
    for name in members:
        ended = await world.closed(name, 60)
        assert (ended.status.phase, ended.status.outcome) == ("Succeeded", "Repaired"), world.story(name)
        assert ended.spec.group.members == sorted(members)
        assert world.marks(name) == before[name]
    assert [world.calls(name, "recoverDomain") for name in members] == [1, 0, 0]


async def test_a_group_that_can_never_fit_goes_to_people_and_nothing_is_touched(world: World) -> None:
    sick, *others = await rack(world, 3)
    await domain_pool(world, maxUnavailable=2)
    await world.start()
    await world.fault(sick)
    waiting = await world.phase(sick, "NeedsHuman")
    for name in others:
        await world.phase(name, "NeedsHuman")
    assert waiting.status.needs == "GroupCannotFit"
    assert f"maxUnavailable of pool {world.name} is 2" in waiting.status.message
    assert not any(world.quarantined(name) for name in (sick, *others))
