"""The whole way round on a simulated cluster: decide decides, execute acts, the node comes back as it was."""

from __future__ import annotations

from tests.execute.ward import ward


async def test_a_node_goes_through_all_steps_and_comes_back_as_it_was() -> None:
    async with ward() as hospital:
        hospital.run_pod("train-job")
        await hospital.sleep(3)
        hospital.fault()
        await hospital.healed()
        assert hospital.evicted() == ["default/train-job"]
        assert hospital.calls("reboot") == 1
        states = {name: step["state"] for name, step in hospital.status()["steps"].items()}
        assert states == dict.fromkeys(("Quarantine", "Drain", "Repair", "Validate", "Unquarantine"), "Done")
        assert hospital.status()["outcome"] == "Repaired"


async def test_a_repair_that_waits_for_a_machine_to_boot_costs_no_requests() -> None:
    """But for the comparisons of its caches, one for each kind in five minutes."""
    async with ward(boot=600) as hospital:
        hospital.fault()
        await hospital.until(lambda: hospital.at("Repair"))
        await hospital.sleep(60)
        with hospital.counting() as asked:
            await hospital.sleep(400)
        assert hospital.at("Repair")
        assert len(asked) <= 2 * 4, asked


async def test_nothing_is_asked_for_a_fleet_that_is_well() -> None:
    async with ward(nodes=3) as hospital:
        await hospital.sleep(30)
        with hospital.counting() as asked:
            await hospital.sleep(250)
        assert asked == []
