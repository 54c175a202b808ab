"""The fake cloud: what each answer means for the caller and for the machine."""

from __future__ import annotations

import asyncio

import pytest

from sickbay.clock import Randomness
from sickbay.providers.base import Act, ActState, Ambiguous, Permanent, Target, Transient
from sickbay.sim.cloud import Behaviour, Cloud, FakeProvider, ScriptLine
from sickbay.sim.journal import Journal
from sickbay.sim.machine import Machine
from tests.support import virtual


class Bed:
    """One machine and the cloud it is in."""

    def __init__(self, *script: ScriptLine, fail: float = 0.0, keys: bool = True) -> None:
        self.clock = virtual.clock()
        self.journal = Journal(asyncio.get_running_loop().time)
        self.cloud = Cloud(self.clock, Randomness(1), self.journal)
        self.machine = Machine("train-0", 8, self.clock, Randomness(2), "train", boot_seconds=180)
        self.cloud.machines["train-0"] = self.machine
        self.cloud.behaviours["train"] = Behaviour(fail, list(script), keys)
        self.provider = FakeProvider(self.cloud, self.clock)
        self.boot = self.machine.boot_id

    def act(self, action: str = "RebootNode", key: str = "uid/Repair/1", **args: str) -> Act:
        return Act(key, action, Target("train-0", "node-uid"), "repair", args)

    async def state(self, act: Act) -> ActState:
        return (await self.provider.observe(act)).state

    @property
    def rebooted(self) -> bool:
        return self.machine.boot_id != self.boot


async def test_an_accepted_reboot_runs_until_the_machine_is_up_again():
    bed = Bed()
    await bed.provider.submit(bed.act())
    assert not bed.machine.up
    await bed.clock.sleep(179)
    assert await bed.state(bed.act()) == ActState.RUNNING
    await bed.clock.sleep(2)
    assert await bed.state(bed.act()) == ActState.DONE
    assert bed.rebooted
    assert [(a.kind, a.key, a.node_uid) for a in bed.journal.actions] == [("Reboot", "uid/Repair/1", "node-uid")]


@pytest.mark.parametrize(
    ("answer", "error", "accepted"),
    [
        pytest.param("transient", Transient, False, id="transient"),
        pytest.param("permanent", Permanent, False, id="permanent"),
        pytest.param("timeout", Ambiguous, False, id="timeout"),
        pytest.param("acceptThenTimeout", Ambiguous, True, id="acceptThenTimeout"),
    ],
)
async def test_what_an_answer_tells_and_what_it_does(answer, error, accepted):
    bed = Bed(ScriptLine("reboot", answer, "because"))
    with pytest.raises(error, match="because"):
        await bed.provider.submit(bed.act())
    assert await bed.state(bed.act()) == (ActState.RUNNING if accepted else ActState.ABSENT)
    await bed.clock.sleep(200)
    assert bed.rebooted is accepted
    assert len(bed.journal.actions) == int(accepted)
    assert next((c.call, c.answer) for c in bed.journal.calls) == ("reboot", answer)


async def test_a_lie_says_done_and_does_nothing():
    bed = Bed(ScriptLine("reboot", "liesDone"))
    await bed.provider.submit(bed.act())
    assert await bed.state(bed.act()) == ActState.DONE
    await bed.clock.sleep(1000)
    assert not bed.rebooted
    assert bed.machine.up


async def test_a_script_is_used_up_line_by_line_and_then_all_is_well():
    bed = Bed(ScriptLine("reboot", "transient", times=2), ScriptLine("powerCycle", "permanent"))
    for _ in range(2):
        with pytest.raises(Transient):
            await bed.provider.submit(bed.act())
    await bed.provider.submit(bed.act())
    assert [c.answer for c in bed.journal.calls] == ["transient", "transient", "ok"]


async def test_the_same_key_is_the_same_act():
    bed = Bed()
    await bed.provider.submit(bed.act())
    await bed.clock.sleep(200)
    first = bed.machine.boot_id
    await bed.provider.submit(bed.act())
    await bed.clock.sleep(200)
    assert bed.machine.boot_id == first
    await bed.provider.submit(bed.act(key="uid/Repair/2"))
    await bed.clock.sleep(200)
    assert bed.machine.boot_id != first


async def test_a_back_end_without_keys_cannot_tell_what_it_never_got():
    bed = Bed(ScriptLine("reboot", "timeout"), keys=False)
    assert not bed.provider.keeps_keys
    with pytest.raises(Ambiguous):
        await bed.provider.submit(bed.act())
    assert await bed.state(bed.act()) == ActState.UNKNOWN


async def test_an_act_can_fail_after_it_was_accepted():
    bed = Bed(fail=1.0)
    await bed.provider.submit(bed.act())
    seen = await bed.provider.observe(bed.act())
    assert (seen.state, seen.message) == (ActState.FAILED, "reboot of train-0 failed")
    assert not bed.rebooted


@pytest.mark.parametrize("answer", ["transient", "timeout", "permanent"])
async def test_a_back_end_that_cannot_be_asked_says_so(answer):
    bed = Bed(ScriptLine("observe", answer))
    await bed.provider.submit(bed.act())
    with pytest.raises(Transient):
        await bed.provider.observe(bed.act())
    assert await bed.state(bed.act()) == ActState.RUNNING


async def test_an_unknown_machine_is_refused_for_good():
    bed = Bed()
    act = Act("k", "RebootNode", Target("nowhere", "u"), "repair")
    with pytest.raises(Permanent, match="no instance nowhere"):
        await bed.provider.submit(act)


async def test_a_card_is_reset_and_the_others_are_left_alone():
    bed = Bed()
    for index in (2, 3):
        bed.machine.set_gpu(index, recovery_action="Reset")
    await bed.provider.submit(bed.act("ResetGPU", devices="GPU-train-0-2"))
    await bed.clock.sleep(11)
    assert [card.state.recovery_action for card in bed.machine.gpus[2:4]] == ["None", "Reset"]


async def test_a_service_runs_again_after_its_restart():
    bed = Bed()
    bed.machine.set_service("containerd", "hung")
    await bed.provider.submit(bed.act("RestartService", service="containerd"))
    await bed.clock.sleep(2)
    assert bed.machine.services["containerd"] == "active"


async def test_a_hardware_repair_takes_hours_and_gives_well_cards():
    bed = Bed()
    bed.machine.set_gpu(0, row_remap_failure=True)
    serial = bed.machine.gpus[0].serial
    await bed.provider.submit(bed.act("RepairHardware"))
    await bed.clock.sleep(3600)
    assert bed.machine.gpus[0].state.row_remap_failure
    await bed.clock.sleep(4 * 3600)
    assert not bed.machine.gpus[0].state.row_remap_failure
    assert bed.machine.gpus[0].serial != serial


async def test_a_replacement_is_left_to_the_fleet():
    bed = Bed()
    replaced: list[str] = []
    bed.cloud.on_replace = lambda machine: replaced.append(machine.name)
    await bed.provider.submit(bed.act("ReplaceNode"))
    await bed.clock.sleep(601)
    assert replaced == ["train-0"]
