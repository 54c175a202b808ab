"""The agent of a node: what the host shows stands on the Node, once, and ends when there is proof that it is over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from sickbay.api.kinds import NODE as KIND
from sickbay.clock import Clock
from tests.detect.kit import NODE, Machine, Ring, agent_on, machine, pci

XID = "NVRM: Xid (PCI:0000:{bus}:00): {code}, pid=1, name=python3, {text}"
XID79 = XID.format(bus="3b", code=79, text="GPU has fallen off the bus.")
XID154 = XID.format(
    bus="3b", code=154, text="GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
)
XID95 = "NVRM: Xid (PCI:0000:{bus}:00{mig}): 95, pid=1, Uncontained: LTC TAG (0x2,0x0)"
XID120 = "NVRM: Xid (PCI:0000:3b:00): 120, pid='<unknown>', name=<unknown>, GSP task exception: {detail}"
XID45 = "NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=python3, Ch 00000008"
XID63 = "NVRM: Xid (PCI:0000:3b:00): 63, pid=1, Row Remapper: New row marked for remapping, reset gpu to activate."
FALLEN = (
    "NVRM: The NVIDIA GPU 0000:3b:00.0",
    "NVRM: (PCI ID: 10de:2330) installed in this system has",
    "NVRM: fallen off the bus and is not responding to commands.",
)
REBOOTED = 60.0
"""Seconds after which an agent has settled in a new boot."""


@pytest.fixture
async def host(clock: Clock) -> Machine:
    return await machine(clock)


async def report(host: Machine, *lines: str, seconds: float = 15.0) -> None:
    for line in lines:
        host.ring.print(line)
    await host.clock.sleep(seconds)


# --- from a line to the Node


async def test_a_fatal_line_is_a_condition_with_its_device_within_two_seconds(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79, seconds=2)
        found = host.condition("NvidiaXID79Error")
        assert (found["status"], found["reason"]) == ("True", "XID79")
        assert found["message"] == "GPU has fallen off the bus on GPU 2 0000:3b:00 (GPU-2) (gpu.xid.79)"
        assert host.devices() == [
            {
                "uuid": "GPU-2",
                "pci": pci(2),
                "index": 2,
                "faults": ["gpu.xid.79"],
                "since": found["lastTransitionTime"],
            }
        ]
        (event,) = host.events("NvidiaXID79Error")
        assert (event["type"], event["count"], event["involvedObject"]["name"]) == ("Warning", 1, NODE)


@pytest.mark.case("P014")
async def test_what_one_process_repeats_is_told_once_and_another_process_counts(host: Machine) -> None:
    line = "NVRM: Xid (PCI:0000:3b:00): 43, pid={}, name=j, Ch 00000008"
    async with agent_on(host):
        for pid in (7, 7, 7, 8, 8):
            await report(host, line.format(pid), seconds=30)
        (event,) = host.events("NvidiaXID43Error")
        assert event["count"] == 2
        assert event["related"] == {"kind": "Device", "name": "0000:3b:00.0"}


async def test_only_items_that_were_ever_bad_are_present(host: Machine) -> None:
    async with agent_on(host):
        await host.clock.sleep(300)
    assert [c["type"] for c in host.node["status"]["conditions"]] == ["DetectionBlind"]
    assert len(host.writes) == 1


async def test_what_asks_for_no_act_is_an_event(host: Machine) -> None:
    async with agent_on(host):
        await report(host, "NVRM: Xid (PCI:0000:3b:00): 13, pid=1, name=python3, Graphics Exception: ESR 0x505648")
        assert host.bad() == set()
        (event,) = host.events("NvidiaXID13Error")
        assert "0000:3b:00" in event["message"]


async def test_an_unknown_bus_is_a_fault_of_the_node_with_an_unnamed_device(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID.format(bus="77", code=79, text="GPU has fallen off the bus."))
        assert host.status("NvidiaXID79Error") == "True"
        (device,) = host.devices()
        assert "uuid" not in device and device["faults"] == ["gpu.xid.79"]


async def test_a_bus_is_learned_from_the_drivers_own_line(host: Machine) -> None:
    async with agent_on(host, gpus=None):
        await report(host, "NVRM: GPU at PCI:0000:77:00: GPU-0f1e2d3c-0000-1111-2222-333344445555")
        await report(host, XID.format(bus="77", code=79, text="GPU has fallen off the bus."))
    assert host.devices()[0]["uuid"] == "GPU-0f1e2d3c-0000-1111-2222-333344445555"
    async with agent_on(host, gpus=None):
        await report(host, XID.format(bus="77", code=95, text="Uncontained"))
    assert host.devices()[0]["uuid"] == "GPU-0f1e2d3c-0000-1111-2222-333344445555"


async def test_lines_that_user_space_wrote_are_not_believed(host: Machine) -> None:
    async with agent_on(host):
        host.ring.print(XID79, facility=1)
        await host.clock.sleep(30)
        assert host.bad() == set()


@pytest.mark.case("P007")
async def test_a_loss_told_over_three_records_is_told_once(host: Machine) -> None:
    async with agent_on(host):
        await report(host, *FALLEN, XID79, seconds=30)
        assert host.bad() == {"NvidiaXID79Error"}
        await report(host, *FALLEN, seconds=30)
        assert host.bad() == {"NvidiaXID79Error"}
        assert len(host.events("NvidiaXID79Error")) == 1


@pytest.mark.case("P007")
async def test_a_loss_without_a_code_is_found_too(host: Machine) -> None:
    async with agent_on(host):
        await report(host, *FALLEN, seconds=20)
        assert host.bad() == {"GpuFallenOffBus"}
        assert host.devices()[0]["uuid"] == "GPU-2"


@pytest.mark.case("P018")
async def test_a_reset_that_is_required_without_a_name_is_the_troubled_gpus(host: Machine) -> None:
    async with agent_on(host):
        await report(
            host,
            XID120.format(detail="a"),
            "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000061)",
        )
        assert host.bad() == {"NvidiaXID120Error", "GpuResetRequired"}
        assert [d["uuid"] for d in host.devices()] == ["GPU-2"]


@pytest.mark.case("N36")
async def test_sympathetic_codes_never_add_up(host: Machine) -> None:
    async with agent_on(host):
        for number in range(672):
            host.ring.print(XID45, at=number * 16.0)
        await host.clock.sleep(60)
        assert host.bad() == set()
        assert len(host.writes) == 1
        host.ring.print(XID79, at=20000.0)
        host.ring.print(XID45, at=20000.5)
        await host.clock.sleep(60)
        assert host.bad() == {"NvidiaXID79Error"}


# --- repetition


@pytest.mark.case("N31")
async def test_800_000_repeats_of_29_faults_cost_29_faults(host: Machine) -> None:
    """Twenty-nine instances of eight GPUs, told 8,000 times in all at full speed: the same code path as 800,000."""
    buses = ("1b", "2a", "3b", "5d", "9b", "ab", "bb", "db")
    lines = [XID95.format(bus=buses[n % 8], mig=f" GPU-I:{n // 8:02d}") for n in range(29)]
    async with agent_on(host):
        before = len(host.writes)
        for number in range(8000):
            host.ring.print(lines[number % 29])
        await host.clock.sleep(120)
        assert len(host.writes) - before <= 29
        assert len(host.events("NvidiaXID95Error")) <= 29
        assert sum(len(d["faults"]) for d in host.devices()) == 8
        counted = host.registry.get_sample_value("sickbay_agent_findings_total", {"fault": "gpu.xid.95"})
        assert counted == 8000
        since, told = host.condition("NvidiaXID95Error")["lastTransitionTime"], len(host.writes)

        for number in range(600):  # and as a live stream
            host.ring.print(lines[number % 29])
            await host.clock.sleep(1)
        assert len(host.writes) == told
        assert host.condition("NvidiaXID95Error")["lastTransitionTime"] == since


@pytest.mark.case("N31")
async def test_after_a_fault_has_cleared_a_new_occurrence_is_told_again(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79)
    host.reboot()
    async with agent_on(host):
        await host.clock.sleep(REBOOTED)
        assert host.status("NvidiaXID79Error") == "False"
        cleared = host.condition("NvidiaXID79Error")["lastTransitionTime"]
        await report(host, XID79)
        assert host.status("NvidiaXID79Error") == "True"
        assert host.condition("NvidiaXID79Error")["lastTransitionTime"] > cleared


async def test_writes_are_gathered_after_the_first(host: Machine) -> None:
    async with agent_on(host, settle=30):
        before = len(host.writes)
        for bus in ("1b", "2a", "3b", "5d"):
            await report(host, XID.format(bus=bus, code=79, text="GPU has fallen off the bus."), seconds=1)
        assert len(host.writes) == before + 1
        await host.clock.sleep(15)
        assert len(host.writes) == before + 2
        assert len(host.devices()) == 4


async def test_a_fatal_finding_does_not_wait_for_a_write_that_was_not(host: Machine) -> None:
    async with agent_on(host, settle=30):
        await report(host, XID63, seconds=1)
        assert host.status("NvidiaXID63Error") == "True"
        await report(host, XID79, seconds=1)
        assert host.status("NvidiaXID79Error") == "True"


# --- starts


@pytest.mark.case("N35")
async def test_what_was_printed_before_the_start_is_found_once(host: Machine) -> None:
    async with agent_on(host):
        await host.clock.sleep(60)
    host.reboot()
    host.ring.print("Linux version 6.8.0")
    host.ring.print(XID79, at=15.0)
    host.ring.print(XID154, at=17.0)
    async with agent_on(host):
        await host.clock.sleep(60)
        assert host.bad() == {"NvidiaXID79Error", "GpuXid154Reboot"}
    told = (len(host.writes), len(host.events("NvidiaXID79Error")), len(host.events("GpuXid154Reboot")))
    assert told[1:] == (1, 1)
    async with agent_on(host):
        await host.clock.sleep(120)
        await report(host, "NVRM: Xid (PCI:0000:5d:00): 13, pid=1, name=python3, Graphics Exception")
    assert host.bad() == {"NvidiaXID79Error", "GpuXid154Reboot"}
    assert (len(host.writes), len(host.events("NvidiaXID79Error")), len(host.events("GpuXid154Reboot"))) == told


@pytest.mark.case("N35")
async def test_what_comes_while_the_agent_is_away_is_found(host: Machine) -> None:
    async with agent_on(host):
        await report(host, "nothing of interest", seconds=60)
    host.ring.print(XID79)
    async with agent_on(host):
        await host.clock.sleep(5)
        assert host.bad() == {"NvidiaXID79Error"}


async def test_lost_evidence_is_told(host: Machine) -> None:
    host.ring.lost = 12
    async with agent_on(host):
        await host.clock.sleep(5)
        (event,) = host.events("EvidenceLost")
        assert "at least 12 records of the kernel log" in event["message"]


@pytest.mark.case("R48")
async def test_the_agent_waits_for_its_node_and_says_so(clock: Clock) -> None:
    host = await machine(clock, register=False)
    host.ring.print(XID79)
    async with agent_on(host) as running:
        await clock.sleep(600)
        assert running.agent.awaited() == [f"node {NODE} to be registered"]
        host.register()
        await clock.sleep(5)
        assert running.agent.awaited() == []
        assert host.bad() == {"NvidiaXID79Error"}


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    """What is logged as a warning or worse."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with structlog.testing.capture_logs() as lines:
        yield lines
    structlog.configure(**before)


async def test_a_node_that_never_comes_is_named_in_the_log_at_once_and_each_minute(
    clock: Clock, logged: list[Any]
) -> None:
    host = await machine(clock, register=False)
    async with agent_on(host):
        await clock.sleep(1)
        (line,) = logged
        assert (line["event"], line["node"]) == ("waiting for the node to be registered", NODE)
        assert "--node NAME" in line["remedy"]
        await clock.sleep(600)
        assert len(logged) == 11
        host.register()
        await clock.sleep(600)
        assert len(logged) == 11


async def test_the_log_of_an_agent_whose_node_is_there_says_nothing_of_waiting(
    host: Machine, logged: list[Any]
) -> None:
    async with agent_on(host):
        await host.clock.sleep(600)
    assert logged == []


async def test_readiness_names_the_source_that_is_awaited(host: Machine) -> None:
    class Slow(Ring):
        async def read(self) -> Any:
            await host.clock.sleep(100)
            return await super().read()

    host.ring = Slow()
    async with agent_on(host) as running:
        assert running.agent.awaited() == ["the kernel log to be read"]
        assert host.status("DetectionBlind") == ""
        await host.clock.sleep(120)
        assert running.agent.awaited() == []
        assert host.status("DetectionBlind") == "False"


async def test_a_node_made_anew_is_told_what_stands(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79)
        old = host.node["metadata"]["uid"]
        host.server.store.delete("nodes", NODE)
        await host.clock.sleep(60)
        host.register()
        await host.clock.sleep(60)
        assert host.node["metadata"]["uid"] != old
        assert host.bad() == {"NvidiaXID79Error"}
        lease = host.server.get("leases.coordination.k8s.io", NODE, "sickbay-agents")
        assert lease["metadata"]["ownerReferences"][0]["uid"] in (old, host.node["metadata"]["uid"])


# --- what is over, and what is not


@pytest.mark.case("R18")
async def test_a_new_boot_and_a_clean_look_end_what_lines_told(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79)
    host.reboot()
    async with agent_on(host):
        await host.clock.sleep(10)
        assert host.status("NvidiaXID79Error") == "True"
        await host.clock.sleep(REBOOTED)
        found = host.condition("NvidiaXID79Error")
        assert (found["status"], found["reason"]) == ("False", "Rebooted")
        assert host.devices() == []
        assert len(host.events("NvidiaXID79ErrorCleared")) == 1
        await host.clock.sleep(3600)
        assert host.condition("NvidiaXID79Error") == found


@pytest.mark.parametrize("trouble", ["lost", "missing", "hung", "error"])
async def test_a_boot_is_no_proof_while_the_gpus_are_not_seen_well(host: Machine, trouble: str) -> None:
    async with agent_on(host):
        await report(host, XID79)
    host.reboot()
    if trouble == "lost":
        host.gpus.states[2] = {"lost": True}
    elif trouble == "missing":
        host.gpus.missing = {2}
    elif trouble == "hung":
        host.gpus.hung = [pci(2)]
    else:
        host.gpus.error = "NVML cannot be initialised"
    async with agent_on(host):
        await host.clock.sleep(600)
        assert host.status("NvidiaXID79Error") == "True"


async def test_what_comes_again_in_the_new_boot_stays(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79, XID.format(bus="5d", code=79, text="GPU has fallen off the bus."))
        since = host.condition("NvidiaXID79Error")["lastTransitionTime"]
    host.reboot()
    host.ring.print(XID79, at=12.0)
    async with agent_on(host):
        await host.clock.sleep(600)
        assert host.condition("NvidiaXID79Error")["lastTransitionTime"] == since
        assert [d["uuid"] for d in host.devices()] == ["GPU-2"]


async def test_a_restart_of_the_agent_is_no_boot(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79)
    for _ in range(3):
        async with agent_on(host):
            await host.clock.sleep(600)
    assert host.bad() == {"NvidiaXID79Error"}


async def test_a_state_that_was_lost_clears_nothing(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79, seconds=60)
    host.store.saved = type(host.store.saved)()
    host.ring = Ring()
    async with agent_on(host):
        await host.clock.sleep(600)
        assert host.bad() == {"NvidiaXID79Error"}
        assert host.devices()[0]["uuid"] == "GPU-2"


async def test_conditions_that_somebody_set_unknown_are_put_right(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79)
        since = host.condition("NvidiaXID79Error")["lastTransitionTime"]
    silent = {"status": "Unknown", "reason": "AgentSilent", "message": "", "lastTransitionTime": "2027-03-01T09:00:00Z"}
    conditions = [{"type": type_, **silent} for type_ in ("NvidiaXID79Error", "DetectionBlind")]
    client, _ = host.server.client()
    await client.patch_strategic(KIND, NODE, {"status": {"conditions": conditions}}, subresource="status")
    async with agent_on(host):
        await host.clock.sleep(20)
        assert host.status("DetectionBlind") == "False"
        found = host.condition("NvidiaXID79Error")
        assert (found["status"], found["lastTransitionTime"]) == ("True", since)
    await client.aclose()


async def test_an_outage_of_the_api_delays_and_loses_nothing(host: Machine) -> None:
    async with agent_on(host) as running:
        running.cut.down = True
        await report(host, XID79, seconds=300)
        assert host.bad() == set()
        running.cut.down = False
        await host.clock.sleep(60)
        assert host.bad() == {"NvidiaXID79Error"}


async def test_a_finding_that_was_never_written_is_read_again(host: Machine) -> None:
    async with agent_on(host) as running:
        await host.clock.sleep(60)
        running.cut.down = True
        await report(host, XID79, seconds=60)
    assert host.bad() == set()
    async with agent_on(host):
        assert host.bad() == {"NvidiaXID79Error"}


# --- the driver's own word


@pytest.mark.case("P012")
async def test_the_recovery_action_counts_though_the_gpu_calls_itself_healthy(host: Machine) -> None:
    async with agent_on(host):
        host.gpus.states[2] = {"recovery_action": 1}
        await host.clock.sleep(60)
        assert host.bad() == {"GpuXid154Reset"}
        assert host.devices()[0]["uuid"] == "GPU-2"
        host.gpus.states[2] = {"recovery_action": 2}
        await host.clock.sleep(60)
        assert host.bad() == {"GpuXid154Reboot"}
        host.gpus.states[2] = {"recovery_action": 0}
        await host.clock.sleep(60)
        assert host.bad() == set()


async def test_a_recovery_action_told_by_line_and_look_is_one(host: Machine) -> None:
    async with agent_on(host):
        host.gpus.states[2] = {"recovery_action": 2}
        await report(host, XID154, seconds=60)
        assert host.bad() == {"GpuXid154Reboot"}
        assert len(host.events("GpuXid154Reboot")) == 1


@pytest.mark.case("P003")
async def test_uncorrectable_errors_mark_the_gpu_until_they_are_gone(host: Machine) -> None:
    async with agent_on(host):
        host.gpus.states[3] = {"ecc_volatile_uncorrectable": 2}
        await host.clock.sleep(60)
        assert host.bad() == {"GpuEccUncorrectable"}
        assert host.condition("GpuEccUncorrectable")["message"].startswith(
            "Volatile uncorrectable ECC errors: 2 since the last reset on GPU 3 0000:5d:00.0 (GPU-3)"
        )
        host.gpus.states[3] = {"ecc_volatile_uncorrectable": 0}
        await host.clock.sleep(60)
        assert host.status("GpuEccUncorrectable") == "False"


@pytest.mark.case("P023")
async def test_a_change_after_many_looks_at_which_all_was_well_is_seen(host: Machine) -> None:
    async with agent_on(host):
        host.gpus.states[5] = {"recovery_action": 0, "ecc_volatile_uncorrectable": 0}
        await host.clock.sleep(900)
        host.gpus.states[5] = {"recovery_action": 0, "ecc_volatile_uncorrectable": 2}
        await host.clock.sleep(60)
        assert host.bad() == {"GpuEccUncorrectable"}
        host.gpus.states[5] = {"recovery_action": 0, "ecc_volatile_uncorrectable": 0}
        await host.clock.sleep(60)
        assert host.bad() == set()


async def test_what_a_line_says_between_looks_at_which_all_is_well_is_judged_by_the_next(host: Machine) -> None:
    async with agent_on(host):
        host.gpus.states[2] = {"recovery_action": 0}
        await host.clock.sleep(900)
        await report(host, XID154, seconds=1)
        assert host.bad() == {"GpuXid154Reboot"}
        await host.clock.sleep(60)
        assert host.bad() == set()


async def test_errors_that_were_remapped_are_no_fault(host: Machine) -> None:
    healed = {"ecc_volatile_uncorrectable": 0, "row_remap_pending": False, "row_remap_failure": False}
    host.gpus.states[0] = healed
    async with agent_on(host):
        await host.clock.sleep(300)
        assert host.bad() == set()


@pytest.mark.case("P017")
async def test_a_counter_of_a_lifetime_is_no_fault(host: Machine) -> None:
    """Links are judged by how many are up against how many ever were, never by a counter of errors."""
    host.gpus.states[0] = {"nvlinks_up": 18}
    async with agent_on(host):
        await host.clock.sleep(300)
        assert host.bad() == set()
        host.gpus.states[0] = {"nvlinks_up": 17}
        await host.clock.sleep(90)
        assert host.bad() == {"NvlinkDown"}


@pytest.mark.case("P016")
async def test_a_missing_gpu_is_a_fault_after_one_confirming_look(host: Machine) -> None:
    async with agent_on(host):
        host.gpus.missing = {6}
        await host.clock.sleep(29)
        assert host.bad() == set()
        await host.clock.sleep(31)
        assert host.bad() == {"GpuCountMismatch"}
        assert "the driver shows 7 of 8" in host.condition("GpuCountMismatch")["message"]


async def test_a_gpu_that_is_back_by_itself_is_still_to_be_repaired(host: Machine) -> None:
    async with agent_on(host):
        host.gpus.states[2] = {"lost": True}
        await host.clock.sleep(60)
        assert host.bad() == {"GpuLost"}
        host.gpus.states[2] = {}
        await host.clock.sleep(600)
        assert host.bad() == {"GpuLost"}
    host.reboot()
    async with agent_on(host):
        await host.clock.sleep(REBOOTED)
        assert host.bad() == set()


async def test_a_gpu_that_is_still_lost_after_the_boot_stays_a_fault(host: Machine) -> None:
    host.gpus.states[2] = {"lost": True}
    async with agent_on(host):
        await host.clock.sleep(60)
    host.reboot()
    async with agent_on(host):
        await host.clock.sleep(600)
        assert host.bad() == {"GpuLost"}


async def test_another_card_in_the_slot_ends_the_faults_of_the_old(host: Machine) -> None:
    async with agent_on(host):
        host.gpus.states[2] = {"row_remap_failure": True}
        await report(host, XID79, seconds=60)
        assert host.bad() == {"GpuRowRemapFailure", "NvidiaXID79Error"}
        host.gpus.states[2] = {"row_remap_failure": False, "serial": "S-NEW", "uuid": "GPU-NEW"}
        await host.clock.sleep(60)
        assert host.bad() == set()
        assert host.condition("NvidiaXID79Error")["reason"] == "Replaced"


@pytest.mark.case("P019")
async def test_a_driver_that_hangs_is_not_seen_at_once_and_a_fault_at_the_second_look(host: Machine) -> None:
    async with agent_on(host):
        await host.clock.sleep(25)
        host.gpus.hung, host.gpus.error = [pci(2)], "the driver does not answer"
        await host.clock.sleep(20)
        assert host.status("DetectionBlind") == "Unknown"
        assert host.bad() == set()
        await host.clock.sleep(40)
        assert host.bad() == {"GpuDriverHang"}
        assert host.devices()[0]["uuid"] == "GPU-2"


@pytest.mark.case("P006")
async def test_gpus_that_are_not_offered_for_long_are_a_fault_with_both_numbers(host: Machine) -> None:
    async with agent_on(host):
        await offer(host, 7)
        await host.clock.sleep(240)
        assert host.bad() == set()
        await host.clock.sleep(120)
        found = host.condition("GpuCountMismatch")
        assert (found["status"], found["reason"]) == ("True", "GpusNotOffered")
        assert "7 of 8 are allocatable" in found["message"]
    async with agent_on(host):
        await host.clock.sleep(60)
        assert host.bad() == {"GpuCountMismatch"}, "a restarted agent knows its own"
        await offer(host, 8)
        await host.clock.sleep(60)
        assert host.bad() == set(), "offered again is all that was wanted: no boot has to prove it"


async def test_a_gpu_that_the_driver_loses_too_is_no_matter_of_the_plug_in_any_more(host: Machine) -> None:
    async with agent_on(host):
        await offer(host, 7)
        await host.clock.sleep(360)
        assert host.condition("GpuCountMismatch")["reason"] == "GpusNotOffered"
        host.gpus.missing = {6}
        await host.clock.sleep(90)
        assert host.condition("GpuCountMismatch")["reason"] == "GpuCountMismatch"
        host.gpus.missing = set()
        await offer(host, 8)
        await host.clock.sleep(90)
        assert host.bad() == {"GpuCountMismatch"}, "only a boot proves that it is back"


async def test_a_gpu_with_a_fault_of_its_own_is_rightly_not_offered(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79)
        await offer(host, 7)
        await host.clock.sleep(900)
        assert host.bad() == {"NvidiaXID79Error"}


async def offer(host: Machine, count: int) -> None:
    client, _ = host.server.client("kubelet")
    body = {"status": {"allocatable": {"nvidia.com/gpu": str(count)}}}
    await client.patch_strategic(KIND, NODE, body, subresource="status")
    await client.aclose()


# --- services


async def test_a_service_that_is_down_is_a_condition_until_it_is_up(host: Machine) -> None:
    async with agent_on(host):
        host.services.works["kubelet"] = False
        await host.clock.sleep(70)
        found = host.condition("KubeletUnhealthy")
        assert (found["status"], found["reason"]) == ("True", "KubeletUnhealthy")
        host.services.works["kubelet"] = True
        await host.clock.sleep(40)
        assert host.status("KubeletUnhealthy") == "False"


async def test_a_line_about_a_service_only_asks_for_a_look(host: Machine) -> None:
    async with agent_on(host):
        await host.clock.sleep(100)
        host.services.works["kubelet"] = False
        line = "systemd[1]: kubelet.service: Failed with result 'exit-code'."
        host.ring.print(line, facility=3)
        await host.clock.sleep(5)
        host.services.works["kubelet"] = True
        await host.clock.sleep(120)
        assert host.status("KubeletUnhealthy") == ""
        assert len(host.events("KubeletUnhealthy")) == 1


# --- sight


@pytest.mark.case("R15")
@pytest.mark.case("P022")
@pytest.mark.parametrize("source", ["ring", "gpus", "services"])
async def test_a_broken_source_is_unknown_and_no_fault(host: Machine, source: str) -> None:
    async with agent_on(host):
        assert host.status("DetectionBlind") == "False"
        if source == "ring":
            host.ring.break_down("no permission")
        elif source == "gpus":
            host.gpus.error = "no permission"
        else:
            host.services.broken = "no permission"
        await host.clock.sleep(60)
        found = host.condition("DetectionBlind")
        assert (found["status"], found["reason"]) == ("Unknown", "SourceBroken")
        assert "no permission" in found["message"]
        assert host.bad() == set()
        host.ring.broken = host.gpus.error = host.services.broken = ""
        await host.clock.sleep(90)
        assert host.status("DetectionBlind") == "False"


async def test_a_source_that_broke_is_read_on_where_it_was(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79)
        host.ring.break_down("gone")
        await host.clock.sleep(10)
        host.ring.print(XID.format(bus="5d", code=79, text="GPU has fallen off the bus."))
        host.ring.broken = ""
        await host.clock.sleep(90)
        assert len(host.devices()) == 2
        assert host.registry.get_sample_value("sickbay_agent_findings_total", {"fault": "gpu.xid.79"}) == 2


async def test_the_lease_says_that_the_agent_lives(host: Machine) -> None:
    async with agent_on(host):
        first = host.server.get("leases.coordination.k8s.io", NODE, "sickbay-agents")
        assert first["metadata"]["ownerReferences"][0]["uid"] == host.node["metadata"]["uid"]
        await host.clock.sleep(35)
        second = host.server.get("leases.coordination.k8s.io", NODE, "sickbay-agents")
        assert second["spec"]["renewTime"] > first["spec"]["renewTime"]


# --- acts


def task(action: str, boot: str, uid: str, **args: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"t-{action.lower()}"},
        "spec": {
            "node": {"name": NODE, "uid": uid, "bootID": boot},
            "action": action,
            "args": args,
            "key": f"r/Repair/{action}",
            "expires": "2027-03-01T12:00:00Z",
        },
    }


async def test_a_reset_of_a_gpu_ends_what_a_reset_ends(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID95.format(bus="3b", mig=""), XID79)
        made = task("ResetGPU", "boot-1", host.node["metadata"]["uid"], devices="GPU-2")
        host.server.store.create("nodetasks.sickbay.dev", made)
        await host.clock.sleep(30)
        assert host.host.acts == ["reset GPU-2"]
        assert host.server.get("nodetasks.sickbay.dev", "t-resetgpu")["status"]["phase"] == "Done"
        found = host.condition("NvidiaXID95Error")
        assert (found["status"], found["reason"]) == ("False", "Reset")
        assert host.bad() == {"NvidiaXID79Error"}


async def test_a_reset_that_did_not_help_ends_nothing(host: Machine) -> None:
    async with agent_on(host):
        host.gpus.states[2] = {"lost": True}
        await report(host, XID95.format(bus="3b", mig=""), seconds=60)
        made = task("ResetGPU", "boot-1", host.node["metadata"]["uid"], devices="GPU-2")
        host.server.store.create("nodetasks.sickbay.dev", made)
        await host.clock.sleep(120)
        assert {"NvidiaXID95Error", "GpuLost"} <= host.bad()


async def test_a_reboot_is_proven_by_the_next_agent(host: Machine) -> None:
    async with agent_on(host):
        await report(host, XID79)
        made = task("RebootNode", "boot-1", host.node["metadata"]["uid"])
        host.server.store.create("nodetasks.sickbay.dev", made)
        await host.clock.sleep(5)
        assert host.host.acts == ["reboot"]
    host.reboot()
    async with agent_on(host):
        await host.clock.sleep(REBOOTED)
        status = host.server.get("nodetasks.sickbay.dev", "t-rebootnode")["status"]
        assert (status["phase"], status["proof"]) == ("Done", {"bootBefore": "boot-1", "bootID": "boot-2"})
        assert host.host.acts == ["reboot"]
        assert host.bad() == set()


# --- who says that it is over


async def test_a_reset_required_by_a_line_is_not_over_because_the_driver_does_not_say_so(host: Machine) -> None:
    line = "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000061)"
    host.gpus.states = {k: {"reset_required": False} for k in range(8)}
    async with agent_on(host):
        await report(host, XID120.format(detail="a"), line, seconds=600)
        assert "GpuResetRequired" in host.bad()
    host.reboot()
    async with agent_on(host):
        await host.clock.sleep(REBOOTED)
        assert host.bad() == set()


@pytest.mark.parametrize("gpus", [True, False], ids=["an old driver", "no driver is asked"])
async def test_a_recovery_action_that_only_a_line_told_is_over_with_the_boot(host: Machine, gpus: bool) -> None:
    options: dict[str, Any] = {} if gpus else {"gpus": None}
    async with agent_on(host, **options):
        await report(host, XID154, seconds=120)
        assert host.bad() == {"GpuXid154Reboot"}
    host.reboot()
    async with agent_on(host, **options):
        await host.clock.sleep(REBOOTED)
        assert host.bad() == set()


async def test_a_fault_of_another_device_is_over_with_the_boot(host: Machine) -> None:
    async with agent_on(host):
        line = "pcieport 0000:17:01.0: AER: Multiple Uncorrectable (Fatal) error message received from 0000:86:00.0"
        await report(host, line, seconds=60)
        bad = host.bad()
        assert bad
        assert [d["pci"] for d in host.devices()]
    host.reboot()
    async with agent_on(host):
        await host.clock.sleep(REBOOTED)
        assert host.bad() == set()
        assert host.devices() == []
