"""What the driver says of a GPU: bad, good, or not to be seen; and a mask that is not compared with zero."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.detect import fabric
from sickbay.detect.devicemap import Device, DeviceMap, address
from sickbay.detect.gpus import CHECKS, GpuJudge, GpuStatus
from sickbay.detect.items import items

PCI = "0000:3b:00.0"
WELL: dict[str, Any] = {
    "lost": False,
    "reset_required": False,
    "row_remap_pending": False,
    "row_remap_failure": False,
    "ecc_volatile_uncorrectable": 0,
    "sram_threshold_exceeded": False,
    "pcie_width": 16,
    "pcie_width_max": 16,
    "nvlink_down": 0,
    "fabric_state": "Completed",
    "fabric_health": 0xAA,
    "temperature_margin": 30,
}


def bad_items(judge: GpuJudge, now: float = 1000.0, uptime: float = 10000.0, **state: Any) -> set[str]:
    status = GpuStatus(pci=PCI, **(WELL | state))
    return {verdict.item for verdict in judge.judge(status, uptime, now) if verdict.bad}


def lasting(uptime: float = 10000.0, seconds: float = 3600.0, **state: Any) -> dict[str, float]:
    """When each item is first found bad while the state stays as it is, in looks 30 s apart."""
    judge, found = GpuJudge(), dict[str, float]()
    at = 0.0
    while at <= seconds:
        for item in bad_items(judge, at, uptime + at, **state):
            found.setdefault(item, at)
        at += 30.0
    return found


def test_a_well_gpu_has_no_fault() -> None:
    assert lasting() == {}


@pytest.mark.parametrize(
    ("state", "found"),
    [
        pytest.param(
            {"ecc_volatile_uncorrectable": 2}, {"gpu.ecc.uncorrectable": 0}, marks=pytest.mark.case("P003"), id="ecc"
        ),
        pytest.param({"row_remap_pending": True}, {"gpu.row-remap-pending": 0}, id="remap pending"),
        pytest.param({"row_remap_failure": True}, {"gpu.row-remap-failure": 0}, id="remap failure"),
        pytest.param({"sram_threshold_exceeded": True}, {"gpu.sram-threshold": 0}, id="sram"),
        pytest.param({"lost": True}, {"gpu.lost": 0}, id="lost"),
        pytest.param({"reset_required": True}, {"gpu.reset-required": 0}, id="reset required"),
        pytest.param({"pcie_width": 8}, {"pcie.link-degraded": 30}, id="narrow"),
        pytest.param({"nvlink_down": 1}, {"nvlink.down": 30}, id="link down"),
        pytest.param({"fabric_state": "InProgress"}, {"gpu.fabric-state": 300}, id="fabric in progress"),
        pytest.param({"fabric_health": 0x10}, {"gpu.fabric-state": 300}, id="fabric route"),
        pytest.param({"fabric_state": "NotSupported", "fabric_health": None}, {}, id="no fabric"),
        pytest.param({"temperature_margin": 0}, {"gpu.temperature-margin": 180}, id="hot"),
        pytest.param({"temperature_margin": 1}, {}, id="warm"),
    ],
)
def test_each_state_and_how_long_it_must_last(state: dict[str, Any], found: dict[str, float]) -> None:
    assert lasting(**state) == found


@pytest.mark.case("P128")
@pytest.mark.parametrize(("state", "at_once"), [({"fabric_state": "InProgress"}, True), ({"pcie_width": 8}, False)])
def test_on_a_node_out_for_repair_the_fabric_is_not_given_time(state: dict[str, Any], at_once: bool) -> None:
    status = GpuStatus(pci=PCI, **(WELL | state))
    bad = [verdict.item for verdict in GpuJudge().judge(status, 10000.0, 0.0, out=True) if verdict.bad]
    assert bool(bad) == at_once


@pytest.mark.case("P009")
def test_links_may_train_for_five_minutes_after_boot() -> None:
    assert lasting(uptime=40.0, nvlink_down=18) == {"nvlink.down": 270}


def test_a_glitch_is_no_fault() -> None:
    judge = GpuJudge()
    for at in range(0, 3000, 60):
        assert bad_items(judge, at, pcie_width=8) == set()
        assert bad_items(judge, at + 30.0) == set()


@pytest.mark.case("P022")
@pytest.mark.parametrize("missing", [name for name in WELL if name != "fabric_state"])
def test_what_cannot_be_read_is_neither_bad_nor_good(missing: str) -> None:
    seen = GpuJudge().judge(GpuStatus(pci=PCI, **WELL), 10000.0, 0.0)
    blind = GpuJudge().judge(GpuStatus(pci=PCI, **(WELL | {missing: None})), 10000.0, 0.0)
    gone = {v.item for v in seen} - {v.item for v in blind}
    assert not any(v.bad for v in blind)
    if missing not in ("pcie_width_max", "fabric_health"):
        assert len(gone) == 1


def test_an_empty_status_says_nothing() -> None:
    assert list(GpuJudge().judge(GpuStatus(pci=PCI), 10000.0, 0.0)) == []


def test_every_check_is_in_the_catalogue() -> None:
    assert {check.item for check in CHECKS} <= set(items())
    assert all(items()[check.item].severity in ("Error", "Critical") for check in CHECKS)


@pytest.mark.case("R16")
@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (0x0, []),
        (0x80, []),
        (0xAA, []),
        (0x10, ["route unhealthy"]),
        (0x40, ["access timeout recovery"]),
        (0x1, ["degraded bandwidth"]),
        (0x100, []),
        (0x400, ["no partition"]),
        (0x1AA, []),
        (0x511, ["degraded bandwidth", "route unhealthy", "insufficient NVLinks"]),
        (None, []),
    ],
)
def test_the_fabric_mask_is_read_field_by_field(mask: int | None, names: list[str]) -> None:
    assert fabric.faults(mask) == names


# --- which GPU is where


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("0000:3b:00", "0000:3b:00.0"),
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("3b:00.1", "0000:3b:00.1"),
        ("0000:3b:00 GPU-I:01", "0000:3b:00.0"),
        ("00010000:3b:00.0", "10000:3b:00.0"),
        ("nvme0n1", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_addresses_have_one_spelling(name: str | None, canonical: str) -> None:
    assert address(name) == canonical


def test_a_gpu_that_has_gone_is_still_known_by_its_bus() -> None:
    devices = DeviceMap([Device(pci="00000000:3B:00.0", uuid="GPU-1", index=2, serial="S", links=18)])
    assert devices.learn(Device(pci="0000:3b:00")) is False
    assert devices.learn(Device(pci="0000:3b:00.0", links=12)) is False
    assert devices.learn(Device(pci="0000:5d:00.0", uuid="GPU-2")) is True
    known = devices.at("3b:00 GPU-I:03")
    assert known is not None
    assert (known.uuid, known.index, known.links) == ("GPU-1", 2, 18)
    assert devices.at("0000:9b:00.0") is None


def test_another_card_on_the_same_bus_inherits_nothing() -> None:
    devices = DeviceMap([Device(pci=PCI, uuid="GPU-1", serial="S", links=18)])
    assert devices.learn(Device(pci=PCI, uuid="GPU-9")) is True
    known = devices.at(PCI)
    assert known is not None
    assert (known.uuid, known.serial, known.links) == ("GPU-9", "", 0)
