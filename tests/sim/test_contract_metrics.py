"""The metrics that the contract names exist under exactly these names; no other name is a silent 0."""

from __future__ import annotations

import pytest

from sickbay.api import names
from sickbay.sim.components import available
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.staff import SUFFIXES
from tests.support.simworld import running_world

CONTRACT = {
    "sickbay_nodes_quarantined": ("gauge", "decide"),
    "sickbay_repairs_total": ("counter", "decide"),
    "sickbay_repair_step_seconds": ("histogram", "decide"),
    "sickbay_breaker_open": ("gauge", "decide"),
    "sickbay_watch_gaps_total": ("counter", "decide"),
    "sickbay_relandings_total": ("counter", "recover"),
}


async def test_every_metric_of_the_contract_exists_under_its_name() -> None:
    async with running_world(PoolSpec("train", nodes=2)) as world:
        world.start_components(tuple(available()))
        await world.clock.sleep(30)
        found = {}
        for component in ("decide", "recover"):
            (process, *_) = world.processes_of(component, ())
            for family in process.registry.collect():
                name = family.name + ("_total" if family.type == "counter" else "")
                found.setdefault(name, (family.type, component))
    assert {name: found.get(name) for name in CONTRACT} == CONTRACT
    assert set(names.METRICS) == set(CONTRACT)


@pytest.mark.parametrize("name", [n for n in names.METRICS if not n.endswith("_seconds")])
async def test_a_metric_of_the_contract_is_0_where_nothing_has_happened_and_nothing_runs(name: str) -> None:
    async with running_world(PoolSpec("train", nodes=2)) as world:
        assert world.staff.metric(name, {}) == 0.0


async def test_a_name_that_nobody_has_ever_had_is_an_error_and_not_0() -> None:
    async with running_world(PoolSpec("train", nodes=2)) as world:
        world.start_components(("decide",))
        await world.clock.sleep(30)
        for name in ("sickbay_breakers_open", "sickbay_repairs", "sickbay_repairs_total_total", "sickbay"):
            with pytest.raises(LookupError, match=f"no component of this run has a metric {name}$"):
                world.staff.metric(name, {})
        with pytest.raises(LookupError, match="sickbay_repair_step_seconds_count"):
            world.staff.metric("sickbay_repair_step_seconds", {})
        for suffix in SUFFIXES["histogram"]:
            assert world.staff.metric("sickbay_repair_step_seconds" + suffix, {}) == 0.0


async def test_a_process_that_is_down_is_still_one_that_has_its_metrics() -> None:
    async with running_world(PoolSpec("train", nodes=2)) as world:
        world.start_components(("decide",))
        await world.clock.sleep(30)
        (process,) = world.processes_of("decide", ())
        assert world.staff.metric("sickbay_leader", {}) == 1.0
        process.stop()
        assert world.staff.metric("sickbay_leader", {}) == 0.0


async def test_the_quarantined_are_counted_once_however_many_replicas_there_are() -> None:
    async with running_world(PoolSpec("train", nodes=3)) as world:
        world.start_components(("decide",), 2)
        world.person("admin").merge("nodes", "train-0", {"metadata": {"annotations": {names.QUARANTINE: "{}"}}})
        await world.clock.sleep(60)
        assert world.staff.metric("sickbay_nodes_quarantined", {}) == 1.0
