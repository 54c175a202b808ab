"""What stands is told once, ends when its last device is well, and is found again after a restart."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.api.core import Node, NodeCondition, NodeStatus
from sickbay.api.devices import write_devices
from sickbay.api.meta import ObjectMeta
from sickbay.detect.devicemap import Device, DeviceMap, address
from sickbay.detect.ledger import Ledger, Mark, Wanted
from sickbay.detect.wording import MESSAGE_MAX

BOOT, NOW, LATER = "boot-1", "2027-03-01T08:00:00Z", "2027-03-01T09:00:00Z"


def mark(item: str = "gpu.xid.79", device: str = "0000:3b:00", **fields: Any) -> Mark:
    pci = address(device)
    return Mark(**{"item": item, "device": device, "pci": pci, "since": NOW, "boot": BOOT, "code": "XID79", **fields})


def ledger(*marks: Mark) -> Ledger:
    made = Ledger(BOOT)
    for each in marks:
        made.mark(each)
    return made


def only(made: Ledger) -> Wanted:
    (wanted,) = made.wanted()
    return wanted


def node(*conditions: NodeCondition, devices: str = "") -> Node:
    annotations = {"sickbay.dev/devices": devices} if devices else {}
    return Node(metadata=ObjectMeta(name="n", annotations=annotations), status=NodeStatus(conditions=list(conditions)))


def condition(type_: str, status: str, reason: str, since: str = NOW) -> NodeCondition:
    return NodeCondition(type=type_, status=status, reason=reason, last_transition_time=since)


def test_a_finding_becomes_a_condition_of_its_own_type() -> None:
    wanted = only(ledger(mark(uuid="GPU-1", index=2)))
    assert (wanted.type, wanted.status, wanted.reason, wanted.since) == ("NvidiaXID79Error", "True", "XID79", NOW)
    assert wanted.message == "GPU has fallen off the bus on GPU 2 0000:3b:00 (GPU-1) (gpu.xid.79)"
    assert wanted.critical


def test_repetition_changes_nothing() -> None:
    made = ledger(mark())
    before = (made.wanted(), made.devices())
    assert made.mark(mark(since=LATER, detail="other words")) is False
    assert (made.wanted(), made.devices()) == before


def test_a_second_device_joins_the_condition_and_does_not_move_its_time() -> None:
    made = ledger(mark())
    assert made.mark(mark(device="0000:5d:00", since=LATER)) is True
    assert only(made).since == NOW
    assert [d.pci for d in made.devices()] == ["0000:3b:00.0", "0000:5d:00.0"]


@pytest.mark.parametrize(
    "name",
    ["0000:3b:00.0", "3b:00", "00000000:3B:00.0", "0000:3b:00"],
)
def test_one_device_has_one_mark_however_its_address_is_spelled(name: str) -> None:
    made = ledger(mark())
    assert made.mark(mark(device=name)) is False


def test_instances_of_one_gpu_are_told_apart_and_are_one_device() -> None:
    made = ledger(mark("gpu.xid.95", "0000:3b:00 GPU-I:01"), mark("gpu.xid.95", "0000:3b:00 GPU-I:02"))
    assert len(made.marks()) == 2
    (device,) = made.devices()
    assert device.faults == ["gpu.xid.95"]


def test_a_fault_of_the_node_is_in_no_device_list() -> None:
    made = ledger(mark("kernel.hard-lockup", "", code="KernelHardLockup"))
    assert only(made).status == "True"
    assert made.devices() == []


def _names(count: int) -> list[str]:
    return [f"0000:{bus:02x}:00 {'instance-with-a-long-name-' * 30}{bus}" for bus in range(count)]


@pytest.mark.case("N30")
@pytest.mark.parametrize(("healthy", "status", "left"), [(50, "False", 0), (49, "True", 1)], ids=["all", "all-but-one"])
@pytest.mark.parametrize("batch", [True, False], ids=["at-once", "one-by-one"])
def test_fifty_devices_stand_in_the_list_and_the_message_stays_readable(
    healthy: int, status: str, left: int, batch: bool
) -> None:
    names = _names(50)
    made = ledger(*(mark("gpu.xid.95", name, code="XID95") for name in names))
    bad = only(made)
    assert len(bad.message) <= MESSAGE_MAX
    assert bad.message.startswith("Uncontained memory error on 0000:00:00")
    assert "and 46 more" in bad.message
    assert [d.pci for d in made.devices()] == [f"0000:{bus:02x}:00.0" for bus in range(50)]

    well = names[:healthy]
    for group in [well] if batch else [[name] for name in well]:
        made.clear(lambda m, group=group: m.device in group, "Recovered", LATER)

    after = only(made)
    assert after.status == status
    assert len(made.devices()) == left
    if left:
        assert "0000:31:00" in after.message and "more" not in after.message
        assert made.devices()[0].pci == "0000:31:00.0"


def test_the_last_mark_that_goes_turns_the_condition_false_and_says_why() -> None:
    made = ledger(mark(), mark(device="0000:5d:00"))
    made.clear(lambda m: m.device == "0000:3b:00", "Rebooted", LATER)
    assert only(made).status == "True"
    made.clear(lambda m: True, "Rebooted", LATER)
    after = only(made)
    assert (after.status, after.reason, after.since) == ("False", "Rebooted", LATER)
    assert "not seen again since the reboot" in after.message


def test_what_comes_again_after_it_was_cleared_is_news() -> None:
    made = ledger(mark())
    made.clear(lambda m: True, "Reset", LATER)
    assert made.mark(mark(since=LATER)) is True
    assert (only(made).status, only(made).since) == ("True", LATER)


def test_a_gpu_is_named_once_its_uuid_is_known() -> None:
    made = ledger(mark(), mark("nic.efa.not-ready", "0000:3b:00.1", code="NicEfaNotReady"))
    devices = DeviceMap([Device(pci="0000:3b:00.0", uuid="GPU-1", index=4)])
    assert made.identify(devices) is True
    assert made.identify(devices) is False
    assert {(d.pci, d.uuid, d.index) for d in made.devices()} == {
        ("0000:3b:00.0", "GPU-1", 4),
        ("0000:3b:00.1", "", None),
    }


# --- after a restart


def restarted(found: Node, saved: list[Mark] | None = None, written: tuple[str, ...] = (), boot: str = BOOT) -> Ledger:
    made = Ledger(boot)
    made.adopt(found, saved or [], written)
    return made


def test_what_stands_on_the_node_is_taken_over_with_its_devices() -> None:
    listed = write_devices(ledger(mark(uuid="GPU-1", index=2)).devices())
    made = restarted(node(condition("NvidiaXID79Error", "True", "XID79"), devices=listed))
    assert made.stands("gpu.xid.79", "3b:00")
    assert only(made).since == NOW
    assert made.mark(mark(since=LATER)) is False


def test_without_a_device_list_the_fault_is_the_nodes() -> None:
    made = restarted(node(condition("NvidiaXID79Error", "True", "XID79")))
    assert made.stands("gpu.xid.79")
    assert made.devices() == []


def test_saved_marks_carry_what_the_node_does_not() -> None:
    saved = mark("disk.nvme-down", "nvme0", code="DiskNvmeDown", detail="no answer")
    made = restarted(node(condition("DiskNvmeDown", "True", "DiskNvmeDown")), [saved])
    assert "no answer on nvme0" in only(made).message


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        ("KernelDeadlock", "DockerHung"),
        ("KernelDeadlock", "KernelDeadlock"),
        ("NvidiaXID79Error", "GpuFellOff"),
        ("Ready", "KubeletReady"),
    ],
)
def test_conditions_of_others_are_not_ours(type_: str, reason: str) -> None:
    assert restarted(node(condition(type_, "True", reason))).wanted() == []


def test_a_condition_set_unknown_by_who_missed_us_is_what_was_saved() -> None:
    unknown = condition("NvidiaXID79Error", "Unknown", "AgentSilent", LATER)
    made = restarted(node(unknown), [mark()], ("gpu.xid.79",))
    assert (only(made).status, only(made).since) == ("True", NOW)
    made = restarted(node(unknown), [], ("gpu.xid.79",))
    assert only(made).status == "False"
    assert restarted(node(unknown)).wanted() == []


def test_a_node_that_was_made_anew_is_told_what_this_boot_has_shown() -> None:
    assert only(restarted(node(), [mark()])).status == "True"
    assert restarted(node(), [mark(boot="boot-0")]).wanted() == []


def test_the_node_wins_over_a_saved_mark_that_it_no_longer_shows() -> None:
    made = restarted(node(condition("NvidiaXID79Error", "False", "Rebooted")), [mark()], ("gpu.xid.79",))
    assert only(made).status == "False"
