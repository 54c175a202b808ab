"""Acts through the agents of the nodes, on a simulated cluster."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.sim.hand import REPAIRS, TASKS
from tests.execute.ward import NODE, Ward, fault_type, pool, rule, ward

BY_AGENT = pool(provider={"name": "agent"})


def tasks(hospital: Ward) -> list[dict[str, Any]]:
    return hospital.world.records_of(TASKS, NODE)


async def test_a_reboot_by_the_agent_is_one_task_and_its_proof_is_the_new_boot() -> None:
    async with ward(BY_AGENT, agents=True) as hospital:
        before = hospital.world.machine(NODE).boot_id
        hospital.fault()
        await hospital.healed()
        assert len(hospital.acts("Reboot")) == 1
        (task,) = tasks(hospital)
        assert task["metadata"]["name"] == f"{hospital.repair()['metadata']['uid']}-repair-1"
        assert task["spec"]["node"]["bootID"] == before
        proof = hospital.step("Repair")["attempts"][0]["proof"]
        assert proof["bootBefore"] == before
        assert proof["bootID"] == hospital.world.machine(NODE).boot_id


async def test_a_service_is_restarted_by_the_agent_though_the_pool_has_a_cloud_that_cannot() -> None:
    rung = {"action": "RestartService", "args": {"service": "containerd"}}
    kind = fault_type(rung, clearsBy="condition")
    async with ward(kind, rule(order=["Repair"]), BY_AGENT, agents=True) as hospital:
        hospital.fault()
        await hospital.until(lambda: hospital.acts("RestartService") != [])
        hospital.fault(status="False")
        await hospital.until(lambda: hospital.phase() == "Succeeded")
        assert len(tasks(hospital)) == 1
        assert hospital.differences() == []
        assert hospital.lifecycle() == {}


async def test_a_cancel_while_no_agent_is_there_leaves_no_task_for_it_to_find() -> None:
    async with ward(BY_AGENT, agents=True) as hospital:
        (agent,) = hospital.world.processes_of("agent", (NODE,))
        agent.kill()
        hospital.fault()
        await hospital.until(lambda: tasks(hospital) != [])
        hospital.world.person("admin").delete(REPAIRS, hospital.repair()["metadata"]["name"])
        await hospital.until(lambda: not hospital.cordoned())
        assert tasks(hospital) == []
        agent.start()
        await hospital.sleep(300)
        assert hospital.acts("Reboot") == []


@pytest.mark.case("N11")
async def test_a_card_is_reset_only_when_its_pods_are_gone() -> None:
    kind = fault_type("ResetGPU", clearsBy="condition")
    steps = {"order": ["Drain", "Repair", "Validate"], "Drain": {"options": {"scope": "GPUPods"}}}
    async with ward(kind, rule(**steps), BY_AGENT, agents=True) as hospital:
        hospital.run_pod("holder", gpus=1, annotations={"sim.sickbay.dev/stop-takes": "60s"},
                         terminationGracePeriodSeconds=120)  # fmt: skip
        hospital.run_pod("bystander")
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: hospital.at("Drain"))
        await hospital.sleep(30)
        assert [p["pod"] for p in hospital.step("Drain")["report"]["pods"]] == ["default/holder"]
        assert tasks(hospital) == []
        await hospital.until(lambda: hospital.at("Repair"))
        assert hospital.world.store.find("pods", "holder", "default") is None
        assert hospital.running("bystander")


async def test_an_agent_that_never_answers_is_waited_for_until_the_deadline() -> None:
    kind = fault_type({"action": "RebootNode", "timeout": "3m"})
    async with ward(BY_AGENT, kind, agents=True) as hospital:
        hospital.world.processes_of("agent", (NODE,))[0].kill()
        hospital.fault()
        began = await hospital.until(lambda: hospital.at("Repair"))
        with hospital.counting() as asked:
            await hospital.sleep(150)
        assert sum(1 for each in asked if each == "get nodetasks") <= 18
        await hospital.until(lambda: hospital.phase() == "NeedsHuman")
        assert 180 <= hospital.now() - began <= 200
        assert hospital.acts("Reboot") == []
