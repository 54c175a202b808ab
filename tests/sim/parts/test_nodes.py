"""Hollow kubelets and the node lifecycle controller: what a Node shows of its machine."""

from __future__ import annotations

import pytest

from sickbay.sim.components import Settings, pace_for
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import LEASES, NODES, PODS, condition_of
from sickbay.sim.loop import run_virtual
from sickbay.sim.machine import BUSES
from sickbay.sim.world import World
from tests.support.simworld import phases, pod, ready, running_world, taint_keys

TRAIN = PoolSpec("train", nodes=2, gpus=8, zone="z1", rack=1, boot_seconds=180)


async def test_nodes_are_ready_at_once_and_say_what_they_are():
    async with running_world(TRAIN) as world:
        node = world.node("train-1")
        assert ready(world, "train-1") == "True"
        assert taint_keys(world, "train-1") == set()
        assert node["metadata"]["labels"]["pool"] == "train"
        assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "z1"
        assert node["metadata"]["labels"]["sickbay.dev/rack"] == "train-rack-1"
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        assert node["status"]["nodeInfo"]["bootID"] == world.machine("train-1").boot_id
        assert node["spec"]["providerID"].startswith("fake:///train-1/")


async def test_gpus_have_the_uuids_and_buses_of_the_format():
    async with running_world(PoolSpec("train", nodes=1, gpus=10)) as world:
        cards = world.machine("train-0").gpus
        assert [card.uuid for card in cards[:2]] == ["GPU-train-0-0", "GPU-train-0-1"]
        assert [card.pci.split(":")[1] for card in cards] == [*BUSES, "1b", "2a"]


async def test_a_kubelet_renews_its_lease_every_ten_seconds_and_its_status_every_five_minutes():
    async with running_world(PoolSpec("train", nodes=1)) as world:
        statuses: list[float] = []
        renewals: list[float] = []

        def note(write):
            if write.resource == NODES and write.user == "system:node:train-0":
                statuses.append(world.loop.time())
            if write.resource == LEASES and write.name == "train-0":
                renewals.append(world.loop.time())

        world.store.after_write(note)
        await world.clock.sleep(905)
        assert statuses == [300, 600, 900]
        assert renewals == [10.0 * k for k in range(1, 91)]


async def test_a_silent_node_turns_unknown_in_forty_to_fifty_seconds_and_is_tainted():
    async with running_world(TRAIN) as world:
        await world.clock.sleep(15)
        world.machine("train-0").set_heartbeat(False)
        await world.clock.sleep(30)
        assert ready(world, "train-0") == "True"
        await world.clock.sleep(20)
        assert ready(world, "train-0") == "Unknown"
        assert taint_keys(world, "train-0") == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
        assert ready(world, "train-1") == "True"
        world.machine("train-0").set_heartbeat(True)
        await world.clock.sleep(1)
        assert ready(world, "train-0") == "True"
        assert taint_keys(world, "train-0") == set()


async def test_a_broken_runtime_makes_the_node_not_ready():
    async with running_world(TRAIN) as world:
        world.machine("train-0").set_service("containerd", "hung")
        await world.clock.sleep(1)
        assert ready(world, "train-0") == "False"
        assert taint_keys(world, "train-0") == {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}


async def test_a_reboot_takes_its_time_and_brings_a_new_boot_id():
    async with running_world(TRAIN) as world:
        before = world.node("train-0")["status"]["nodeInfo"]["bootID"]
        world.machine("train-0").reboot()
        await world.clock.sleep(179)
        assert world.node("train-0")["status"]["nodeInfo"]["bootID"] == before
        assert ready(world, "train-0") == "Unknown"
        await world.clock.sleep(2)
        assert ready(world, "train-0") == "True"
        assert world.node("train-0")["status"]["nodeInfo"]["bootID"] not in ("", before)


async def test_a_cordon_becomes_the_unschedulable_taint_and_goes_with_it():
    async with running_world(TRAIN) as world:
        world.person("admin").merge(NODES, "train-0", {"spec": {"unschedulable": True}})
        await world.clock.sleep(1)
        assert taint_keys(world, "train-0") == {("unschedulable", "NoSchedule")}
        world.person("admin").merge(NODES, "train-0", {"spec": {"unschedulable": None}})
        await world.clock.sleep(1)
        assert taint_keys(world, "train-0") == set()


async def test_a_foreign_taint_is_left_alone_by_the_lifecycle_controller():
    foreign = {"key": "example.com/maintenance", "effect": "NoSchedule"}
    async with running_world(TRAIN) as world:
        world.person("admin").merge(NODES, "train-0", {"spec": {"taints": [foreign]}})
        world.machine("train-0").set_heartbeat(False)
        await world.clock.sleep(60)
        world.machine("train-0").set_heartbeat(True)
        await world.clock.sleep(60)
        assert world.taints("train-0") == [foreign]


async def test_pods_leave_an_unreachable_node_when_their_toleration_is_over():
    def prepare(world):
        hand = world.person("admin")
        hand.create(PODS, pod("default-five-minutes", "train-0"), "default")
        forever = [{"operator": "Exists"}]
        hand.create(PODS, pod("for-ever", "train-0", tolerations=forever), "default")

    async with running_world(TRAIN, prepare=prepare) as world:
        await world.clock.sleep(21)
        world.machine("train-0").power_off()
        await world.clock.sleep(44 + 299)
        assert all("deletionTimestamp" not in p["metadata"] for p in world.store.list(PODS, "default"))
        await world.clock.sleep(10)
        marked = {p["metadata"]["name"] for p in world.store.list(PODS) if p["metadata"].get("deletionTimestamp")}
        assert marked == {"default-five-minutes"}
        assert phases(world)["default-five-minutes"] == "Running"  # nobody can tell, the node is down


async def test_pods_of_a_node_that_is_back_are_ready_again():
    """A node out of sight has pods that are called not ready; they ran on, and their kubelet says so."""

    def prepare(world):
        world.person("admin").create(PODS, pod("p", "train-0", tolerations=[{"operator": "Exists"}]), "default")

    async with running_world(TRAIN, prepare=prepare) as world:
        await world.clock.sleep(10)

        def found():
            return world.store.find(PODS, "p", "default")

        begun = found()["status"]["containerStatuses"]
        world.machine("train-0").set_heartbeat(False)
        await world.clock.sleep(120)
        assert condition_of(found(), "Ready")["status"] == "False"
        world.machine("train-0").set_heartbeat(True)
        await world.clock.sleep(25)
        assert condition_of(found(), "Ready")["status"] == "True"
        assert found()["status"]["containerStatuses"] == begun


async def test_a_pod_that_somebody_calls_unready_stays_so():
    def prepare(world):
        world.person("admin").create(PODS, pod("p", "train-0"), "default")

    async with running_world(TRAIN, prepare=prepare) as world:
        await world.clock.sleep(10)
        unready = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        world.person("admin").strategic(PODS, "p", unready, "default", "status")
        await world.clock.sleep(600)
        assert condition_of(world.store.find(PODS, "p", "default"), "Ready")["status"] == "False"


async def test_a_deleted_node_stays_away_and_its_pods_are_collected():
    def prepare(world):
        world.person("admin").create(PODS, pod("p", "train-0"), "default")

    async with running_world(TRAIN, prepare=prepare) as world:
        await world.clock.sleep(5)
        world.delete_node("train-0", "admin")
        await world.clock.sleep(120)
        assert world.store.find(NODES, "train-0") is None
        assert phases(world) == {}


@pytest.mark.parametrize("keep_boot", [False, True], ids=["new boot", "same boot"])
async def test_a_node_created_again_has_a_new_uid_and_reports_ten_seconds_later(keep_boot):
    async with running_world(TRAIN) as world:
        old = world.node("train-0")
        await world.clock.sleep(5)
        world.delete_node("train-0", "admin")
        await world.clock.sleep(60)
        world.recreate_node("train-0", "fake:///other", keep_boot=keep_boot)
        new = world.node("train-0")
        assert new["metadata"]["uid"] != old["metadata"]["uid"]
        assert new["spec"]["providerID"] == "fake:///other"
        assert (new["status"]["nodeInfo"]["bootID"] == old["status"]["nodeInfo"]["bootID"]) is keep_boot
        await world.clock.sleep(9)
        assert ready(world, "train-0") == "False"
        await world.clock.sleep(2)
        assert ready(world, "train-0") == "True"


async def test_a_machine_that_is_down_prints_nothing_and_a_boot_empties_its_log():
    async with running_world(TRAIN) as world:
        machine = world.machine("train-0")
        machine.print_kernel("before\nsecond")
        assert [(line.seq, line.text) for line in machine.kernel_log] == [(0, "before"), (1, "second")]
        machine.reboot()
        machine.print_kernel("lost")
        await world.clock.sleep(181)
        assert machine.kernel_log == []
        machine.print_kernel("after")
        assert [(line.seq, line.text) for line in machine.kernel_log] == [(0, "after")]


async def test_a_reboot_restores_what_the_driver_forgets_and_keeps_what_is_broken():
    async with running_world(TRAIN) as world:
        machine = world.machine("train-0")
        machine.set_gpu(2, recovery_action="Reset", row_remap_pending=True, row_remap_failure=True, lost=True)
        machine.reboot()
        await world.clock.sleep(181)
        state = machine.gpu(2).state
        assert (state.recovery_action, state.row_remap_pending, state.lost) == ("None", False, False)
        assert state.row_remap_failure
        machine.replace_hardware()
        assert not machine.gpu(2).state.row_remap_failure


async def test_power_off_keeps_a_machine_down_until_power_on_boots_it():
    async with running_world(TRAIN) as world:
        machine = world.machine("train-0")
        machine.power_off()
        machine.reboot()
        await world.clock.sleep(1000)
        assert not machine.up
        machine.power_on()
        await world.clock.sleep(179)
        assert not machine.up
        await world.clock.sleep(2)
        assert machine.up
        assert ready(world, "train-0") == "True"


async def test_a_node_made_by_hand_has_no_kubelet_and_turns_unknown():
    async with running_world(TRAIN) as world:
        world.person("admin").create(NODES, {"metadata": {"name": "lonely"}})
        await world.clock.sleep(60)
        assert taint_keys(world, "lonely") == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}


def test_two_weeks_are_not_made_of_heartbeats():
    async def main(loop):
        world = World(loop, settings=Settings(pace=pace_for(14 * 86400)))
        world.fleet.add_pool(PoolSpec("train", nodes=4))
        writes = []
        world.store.after_write(writes.append)
        world.settle()
        world.start()
        await world.clock.sleep(13 * 86400)
        world.machine("train-0").set_heartbeat(False)
        await world.clock.sleep(60)
        assert ready(world, "train-0") == "Unknown"
        assert ready(world, "train-1") == "True"
        await world.stop()
        return len(writes)

    assert run_virtual(main) < 4 * (2200 + 100)
