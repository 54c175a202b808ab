"""Execute dies at every write and every call: one reboot, and the node is back as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sickbay.kube.lease import LeaseTimes
from sickbay.providers.base import Act
from sickbay.sim.process import CrashPlan, Process
from tests.execute.ward import NODE, Ward, fault_type, rule, ward

PHASES = ("before", "lost", "after")
SHORT = LeaseTimes(duration=6, deadline=4, period=1.5)
PATIENT = rule(Drain={"options": {"grace": {"max": "5s"}}})
WRITES = 22
"""What one undisturbed way round takes; the last are Events, whose time is not fixed."""


def process(hospital: Ward) -> Process:
    return hospital.world.processes_of("execute", ())[0]


async def goes_round(hospital: Ward) -> None:
    hospital.run_pod("job")
    await hospital.sleep(3)
    hospital.fault()
    await hospital.healed(within=1200)
    assert len(hospital.acts("Reboot")) == 1
    assert hospital.status()["outcome"] == "Repaired"
    assert len(hospital.repairs()) == 1
    assert [a for a in hospital.evicted() if a != "default/job"] == []
    assert hospital.world.journal.actions  # an eviction and a reboot reached the world


async def dies_at(write: int, phase: str, seed: int = 0) -> None:
    async with ward(PATIENT, boot=15, lease=SHORT, seed=seed) as hospital:
        process(hospital).crash_on(CrashPlan(write, phase, restart=2))
        await goes_round(hospital)
        assert process(hospital).starts == 2 or write > WRITES - 3


async def test_the_crashes_below_cover_every_write() -> None:
    async with ward(PATIENT, boot=15, lease=SHORT) as hospital:
        await goes_round(hospital)
        await hospital.sleep(60)
        writes = [w for w in hospital.world.journal.writes if w.by == "execute" and "/sickbay-system/" not in w.object]
        assert WRITES - 3 <= len(writes) <= WRITES, [(w.verb, w.object) for w in writes]


@pytest.mark.parametrize("write", range(1, WRITES + 1))
async def test_a_process_that_dies_at_a_write_leaves_nothing_undone_or_done_twice(write: int) -> None:
    await dies_at(write, PHASES[write % 3])


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("write", range(1, WRITES + 1))
async def test_a_process_that_dies_at_a_write_in_any_way_leaves_nothing_undone_or_done_twice(
    write: int, phase: str
) -> None:
    await dies_at(write, phase, seed=1 + write)


@contextmanager
def dying_in_a_call(hospital: Ward, call: str, when: str) -> Iterator[None]:
    """The first call of this kind to the back-end kills the process, before or after it has its effect."""
    cloud, left = hospital.world.cloud, [1]
    before = {"submit": cloud.accept, "observe": cloud.look}[call]

    def dies(act: Act) -> Any:
        answer = before(act) if not left or when == "after" else None
        if left:
            left.pop()
            process(hospital).crash(2)
            raise asyncio.CancelledError
        return answer

    name = {"submit": "accept", "observe": "look"}[call]
    setattr(cloud, name, dies)
    yield
    assert not left, "the call was never made"
    setattr(cloud, name, before)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", ["submit", "observe"])
async def test_a_process_that_dies_in_a_call_reboots_the_machine_once(call: str, when: str) -> None:
    async with ward(PATIENT, boot=15, lease=SHORT) as hospital:
        with dying_in_a_call(hospital, call, when):
            await goes_round(hospital)
        assert process(hospital).starts == 2
        assert hospital.calls("reboot") == 1


async def test_without_keys_a_call_that_was_made_is_found_by_the_new_boot() -> None:
    async with ward(PATIENT, boot=15, lease=SHORT, keeps_keys=False) as hospital:
        with dying_in_a_call(hospital, "submit", "after"):
            await goes_round(hospital)
        assert hospital.calls("reboot") == 1


async def test_without_keys_a_call_that_was_never_made_ends_unknown_and_not_in_a_second_one() -> None:
    ladder = ({"action": "RebootNode", "timeout": "5m"}, {"action": "PowerCycle", "timeout": "5m"})
    slow = fault_type(*ladder, validation={"soak": "20s", "ceiling": "1m"})
    async with ward(PATIENT, slow, boot=15, lease=SHORT, keeps_keys=False) as hospital:
        with dying_in_a_call(hospital, "submit", "before"):
            hospital.fault()
            await hospital.healed()
        assert hospital.calls("reboot") == 0
        assert [a["state"] for a in hospital.step("Repair")["attempts"]] == ["Unknown", "Done"]
        assert hospital.calls("powerCycle") == 1


async def test_a_leader_frozen_in_the_middle_of_a_call_finds_its_act_adopted_when_it_wakes() -> None:
    async with ward(PATIENT, boot=40, lease=SHORT, replicas=2) as hospital:
        hospital.script(("reboot", "acceptThenTimeout"))
        hospital.fault()
        await hospital.until(lambda: hospital.calls("reboot") == 1)
        frozen = hospital.world.leading_process("execute")
        assert frozen is not None
        frozen.pause()
        await hospital.sleep(25)
        assert hospital.step("Repair")["report"]["term"] > 1
        frozen.resume()
        await hospital.healed()
        assert hospital.calls("reboot") == 1
        assert hospital.world.leading_process("execute") is not frozen


@pytest.mark.parametrize("step", ["Quarantine", "Drain", "Repair", "Validate", "Unquarantine"])
async def test_a_stolen_lease_at_any_step_stops_the_old_leader_and_the_next_one_finishes(step: str) -> None:
    async with ward(PATIENT, boot=20, lease=SHORT) as hospital:
        hospital.run_pod("job")
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: step in (hospital.status().get("steps") or {}) if hospital.repairs() else False,
                             step=0.05)  # fmt: skip
        hospital.world.steal_lease("execute")
        await hospital.healed()
        assert hospital.calls("reboot") == 1
        assert hospital.world.store.get("nodes", NODE)["spec"].get("unschedulable") is None
