"""Repairs on a simulated cluster: what back-ends answer, ladders, other owners, nodes that leave."""

from __future__ import annotations

import pytest

from sickbay.execute.governor import Limits
from sickbay.sim.hand import LEASES, REPAIRS, condition_of
from sickbay.sim.world import World
from tests.execute.ward import FAULT, NODE, fault_type, pool, rule, ward

LADDER = [{"action": "RebootNode", "timeout": "10m"}, {"action": "PowerCycle", "timeout": "10m"}]


def shared_leases(world: World) -> None:
    world.person("admin").create("namespaces", {"metadata": {"name": "medik8s-leases"}})


@pytest.mark.case("N05")
async def test_a_permanent_error_ends_the_step_and_is_told_in_the_providers_words() -> None:
    async with ward() as hospital:
        hospital.script(("reboot", "permanent"))
        hospital.fault()
        await hospital.until(lambda: hospital.phase() == "NeedsHuman")
        assert hospital.step("Repair")["state"] == "Failed"
        assert "by script" in hospital.step("Repair")["report"]["message"]
        assert any("by script" in message for message in hospital.events("RepairFailed"))
        assert hospital.calls("reboot") == 1
        assert hospital.acts("Reboot") == []
        assert hospital.cordoned()


@pytest.mark.case("N05")
async def test_two_transient_errors_are_one_attempt_that_succeeds() -> None:
    async with ward() as hospital:
        hospital.script(("reboot", "transient", 2))
        hospital.fault()
        await hospital.healed()
        assert hospital.calls("reboot") == 3
        assert len(hospital.step("Repair")["attempts"]) == 1
        assert len({c.key for c in hospital.world.journal.calls if c.call == "reboot"}) == 1


@pytest.mark.parametrize("keeps_keys", [True, False], ids=["keeps-keys", "no-keys"])
@pytest.mark.case("N05")
async def test_an_accepted_call_whose_answer_is_lost_is_adopted(keeps_keys: bool) -> None:
    async with ward(keeps_keys=keeps_keys) as hospital:
        hospital.script(("reboot", "acceptThenTimeout"))
        hospital.fault()
        await hospital.healed()
        assert len(hospital.acts("Reboot")) == 1
        assert hospital.calls("reboot") == 1


@pytest.mark.case("N05")
async def test_a_call_that_never_arrived_at_a_back_end_without_keys_is_not_repeated_but_climbed_over() -> None:
    async with ward(fault_type(*LADDER), keeps_keys=False) as hospital:
        hospital.script(("reboot", "timeout"))
        hospital.fault()
        await hospital.healed(within=7200)
        assert hospital.calls("reboot") == 1
        assert hospital.calls("powerCycle") == 1
        states = [(a["action"], a["state"]) for a in hospital.step("Repair")["attempts"]]
        assert states == [("RebootNode", "Unknown"), ("PowerCycle", "Done")]


@pytest.mark.case("N06")
@pytest.mark.case("N08")
async def test_a_back_end_that_lies_does_not_make_the_step_succeed_and_the_next_rung_does() -> None:
    async with ward(fault_type(*LADDER)) as hospital:
        hospital.script(("reboot", "liesDone"))
        hospital.fault()
        await hospital.until(lambda: hospital.at("Repair"))
        await hospital.sleep(300)
        assert hospital.at("Repair")
        assert not hospital.at("Validate")
        await hospital.healed()
        states = [(a["action"], a["state"]) for a in hospital.step("Repair")["attempts"]]
        assert states == [("RebootNode", "Failed"), ("PowerCycle", "Done")]
        assert hospital.calls("powerCycle") == 1


@pytest.mark.case("N08")
async def test_a_reboot_that_leaves_the_node_hanging_is_followed_by_one_power_cycle_at_its_time_out() -> None:
    async with ward(fault_type(*LADDER)) as hospital:
        hospital.fault()
        await hospital.until(lambda: hospital.acts("Reboot") != [])
        hospital.world.machine(NODE).go_down()  # it never comes up by itself
        await hospital.healed()
        first, second = hospital.step("Repair")["attempts"]
        assert (first["action"], first["state"]) == ("RebootNode", "Failed")
        assert (second["action"], second["state"]) == ("PowerCycle", "Done")
        assert all(a["started"] and a["ended"] for a in (first, second))
        gap = hospital.acts("PowerCycle")[0] - hospital.acts("Reboot")[0]
        assert 600 <= gap <= 680
        assert len(hospital.acts("PowerCycle")) == 1


@pytest.mark.case("N08")
async def test_a_fault_that_outlives_the_reboot_is_followed_by_the_power_cycle() -> None:
    async with ward(fault_type(*LADDER)) as hospital:
        hospital.incurable.add(NODE)
        hospital.fault()
        await hospital.until(lambda: hospital.acts("PowerCycle") != [])
        hospital.incurable.clear()
        await hospital.healed()
        assert [a["state"] for a in hospital.step("Repair")["attempts"]] == ["Done", "Done"]
        assert [a["state"] for a in hospital.step("Validate")["attempts"]] == ["Failed", "Done"]


@pytest.mark.case("N08")
async def test_a_ladder_may_begin_with_the_power_cycle() -> None:
    async with ward(fault_type("PowerCycle")) as hospital:
        hospital.fault()
        await hospital.healed()
        assert (hospital.calls("reboot"), hospital.calls("powerCycle")) == (0, 1)


@pytest.mark.case("N10")
async def test_a_failed_reset_falls_back_to_a_reboot_and_both_faults_belong_to_one_incident() -> None:
    second = fault_type("RebootNode", name="test.reset-failed")
    second["spec"]["match"] = [{"condition": {"type": "ResetFailed", "status": "True"}}]
    first = fault_type({"action": "ResetGPU"}, {"action": "RebootNode"}, clearsBy="reset")
    async with ward(first, second) as hospital:
        hospital.script(("resetGPU", "permanent"))
        hospital.fault()
        await hospital.until(lambda: hospital.calls("resetGPU") == 1)
        report = {"type": "ResetFailed", "status": "True", "reason": "R", "message": "m"}
        hospital.world.set_condition(NODE, "npd", report)

        def clears(what: str) -> None:
            if what == "up":
                hospital.world.set_condition(NODE, "npd", {**report, "status": "False"})

        hospital.world.machine(NODE).listeners.append(clears)
        await hospital.healed()
        assert len(hospital.repairs()) == 1
        assert {f["type"] for f in hospital.repair()["spec"]["faults"]} == {"test.reboot", "test.reset-failed"}
        assert (hospital.calls("resetGPU"), hospital.calls("reboot")) == (1, 1)
        for type_ in (FAULT, "ResetFailed"):
            assert condition_of(hospital.world.node(NODE), type_)["status"] == "False"


@pytest.mark.case("R43")
@pytest.mark.parametrize("taint", ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"])
async def test_a_node_that_an_autoscaler_takes_away_in_mid_repair_is_not_rebooted(taint: str) -> None:
    async with ward() as hospital:
        hospital.run_pod("slow", labels={"sickbay.dev/wait-for-completion": "true"})
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: hospital.at("Drain"))
        theirs = [{"key": taint, "effect": "NoSchedule"}]
        hospital.world.person("autoscaler").merge("nodes", NODE, {"spec": {"taints": theirs}})
        pod = hospital.world.store.get("pods", "slow", "default")
        hospital.world.kubelet.exit_pod(pod, 0)
        await hospital.until(lambda: hospital.status()["current"]["step"] == "Repair")
        await hospital.sleep(120)
        assert hospital.calls("reboot") == 0
        assert hospital.status()["current"]["waitsFor"] == "OtherOwner"
        assert taint in hospital.status()["message"]
        hospital.world.delete_node(NODE, "autoscaler")
        await hospital.until(lambda: hospital.phase() == "Cancelled")
        assert hospital.status()["outcome"] == "NodeGone"


async def test_a_lease_held_by_another_keeps_the_repair_waiting_and_its_end_lets_it_go_on() -> None:
    async with ward(prepare=shared_leases) as hospital:
        now = "2027-03-01T08:00:00.000000Z"
        spec = {"holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600, "renewTime": now}
        theirs = {"metadata": {"name": f"node-{NODE}"}, "spec": spec}
        other = hospital.world.person("nmo")
        other.create(LEASES, theirs, "medik8s-leases")
        hospital.fault()
        await hospital.until(lambda: hospital.at("Quarantine"))
        with hospital.counting() as asked:
            await hospital.sleep(1200)
        assert len(asked) <= 1200 / 10 * 5, "four reads for each look at another's Lease, one look in 15 s"
        assert not hospital.cordoned()
        assert hospital.differences() == []
        assert hospital.status()["current"]["waitsFor"] == "OtherOwner"
        assert "node-maintenance" in hospital.status()["message"]
        assert len(hospital.events("QuarantineStopped")) == 1
        other.delete(LEASES, f"node-{NODE}", "medik8s-leases")
        await hospital.healed()
        assert hospital.world.store.list(LEASES, "medik8s-leases") == []


async def test_the_lease_is_ours_from_the_cordon_to_the_return() -> None:
    async with ward(prepare=shared_leases) as hospital:
        hospital.fault()
        holders: list[tuple[bool, bool]] = []

        def look(write: object) -> None:
            leases = hospital.world.store.list(LEASES, "medik8s-leases")
            held = any(o["spec"].get("holderIdentity") == "sickbay" for o in leases)
            holders.append((hospital.cordoned(), held))

        hospital.world.store.after_write(look)
        await hospital.healed()
        assert all(held for cordoned, held in holders if cordoned)
        assert hospital.world.store.list(LEASES, "medik8s-leases") == []


async def test_a_service_restart_touches_nothing_else_and_leaves_nothing_behind() -> None:
    async with ward(
        fault_type("RestartService", clearsBy="condition"), rule(order=["Repair"]), prepare=shared_leases
    ) as hospital:
        hospital.run_pod("job")
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: hospital.calls("restartService") == 1)
        hospital.fault(status="False")
        await hospital.until(lambda: hospital.phase() in ("Succeeded", "Cancelled", "Failed", "NeedsHuman"))
        await hospital.sleep(5)
        assert hospital.status()["outcome"] == "Repaired", hospital.story()
        assert hospital.running("job")
        assert hospital.differences() == []
        assert hospital.lifecycle() == {}
        assert hospital.world.store.list(LEASES, "medik8s-leases") == []


async def test_a_fleet_of_reboots_stops_at_the_governors_limit_and_goes_on_when_time_has_passed() -> None:
    async with ward(nodes=4, governor=Limits(per_10_minutes=2, per_hour=30)) as hospital:
        for n in range(4):
            hospital.fault(f"train-{n}")
        reboots = lambda: sum(len(hospital.acts("Reboot", f"train-{n}")) for n in range(4))  # noqa: E731
        await hospital.until(lambda: reboots() == 2)
        await hospital.sleep(400)
        assert reboots() == 2
        told = hospital.events("RepairStopped")
        assert len(told) == 2
        assert all("governor" in message for message in told)
        for n in range(4):
            await hospital.until(lambda n=n: hospital.phase(f"train-{n}") == "Succeeded", 3600)  # type: ignore[misc]
        assert reboots() == 4


async def test_every_act_freezes_and_its_end_thaws() -> None:
    async with ward(boot=120) as hospital:
        hospital.fault()
        await hospital.until(lambda: hospital.at("Repair") and hospital.acts("Reboot") != [])
        spec = {"scope": {"all": True}, "level": "EveryAct", "reason": "audit"}
        admin = hospital.world.person("admin")
        admin.create("holds.sickbay.dev", {"metadata": {"name": "stop"}, "spec": spec})
        await hospital.sleep(1800)
        assert hospital.cordoned()
        assert hospital.calls("reboot") == 1
        admin.delete("holds.sickbay.dev", "stop")
        await hospital.healed()
        assert hospital.calls("reboot") == 1


async def test_a_record_deleted_while_the_act_is_refused_for_now_ends_the_sending() -> None:
    async with ward() as hospital:
        hospital.script(("reboot", "transient", 3))
        hospital.fault()
        await hospital.until(lambda: hospital.calls("reboot") == 1)
        hospital.world.person("admin").delete(REPAIRS, hospital.repair()["metadata"]["name"])
        await hospital.sleep(600)
        assert hospital.calls("reboot") == 1
        assert hospital.differences() == []
        assert hospital.lifecycle() == {}


@pytest.mark.case("R38")
async def test_a_node_made_again_under_its_name_is_not_rebooted_for_the_old_one() -> None:
    async with ward(pool()) as hospital:
        hospital.run_pod("slow", labels={"sickbay.dev/wait-for-completion": "true"})
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: hospital.at("Drain"))
        hospital.world.delete_node(NODE, "cloud")
        hospital.world.recreate_node(NODE, "fake:///other", keep_boot=False)
        await hospital.sleep(300)
        assert hospital.calls("reboot") == 0
        assert hospital.repair()["status"]["outcome"] == "NodeGone"
        assert not hospital.cordoned()


async def test_a_rule_without_a_return_leaves_the_node_to_a_person_whose_uncordon_takes_the_rest_away() -> None:
    steps = ["Quarantine", "Drain", "Repair", "Validate"]
    async with ward(rule(order=steps), prepare=shared_leases) as hospital:
        hospital.fault()
        await hospital.until(lambda: hospital.phase() == "Succeeded")
        assert hospital.status()["outcome"] == "LeftQuarantined"
        await hospital.sleep(300)
        assert hospital.cordoned()
        hospital.world.person("admin").merge("nodes", NODE, {"spec": {"unschedulable": None}})
        await hospital.until(lambda: hospital.differences() == [], 120)
        await hospital.sleep(5)
        assert hospital.lifecycle() == {}
        assert hospital.world.store.list(LEASES, "medik8s-leases") == []
        assert hospital.repair()["metadata"].get("finalizers") in (None, [])
