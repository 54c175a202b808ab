"""The driver is asked in a child: what it answers, what it cannot, and a call that never returns."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sickbay.detect import nvml_child
from sickbay.detect.nvml import NvmlProbe, count_gpus, has_nvswitch

FULL: dict[str, Any] = {
    "pci": "00000000:3B:00.0",
    "nvmlDeviceGetUUID": "GPU-1",
    "nvmlDeviceGetSerial": "1650123",
    "field 230": 1,
    "nvmlDeviceGetRemappedRows": [0, 1, 0, 0],
    "nvmlDeviceGetTotalEccErrors": 2,
    "nvmlDeviceGetCurrPcieLinkWidth": 8,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "links": [1, 1, 0],
}


@pytest.fixture
def bus(tmp_path: Path) -> Path:
    """A PCI bus in sysfs with two GPUs, a switch, a NIC and a device that cannot be read."""
    made = tmp_path / "pci"
    for name, vendor, class_ in (
        ("0000:3b:00.0", "0x10de", "0x030200"),
        ("0000:5d:00.0", "0x10de", "0x030000"),
        ("0000:07:00.0", "0x10de", "0x068000"),
        ("0000:86:00.0", "0x15b3", "0x020700"),
    ):
        (made / name).mkdir(parents=True)
        (made / name / "vendor").write_text(f"{vendor}\n")
        (made / name / "class").write_text(f"{class_}\n")
    (made / "0000:99:00.0").mkdir()
    return made


@pytest.fixture
async def probe(tmp_path: Path, bus: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NvmlProbe]:
    shutil.copy(Path(__file__).with_name("fake_pynvml.py"), tmp_path / "pynvml.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("FAKE_GPUS", str(tmp_path / "gpus.json"))
    made = NvmlProbe(pci=bus, deadline=10.0)
    yield made
    await made.aclose()
    await ended(made)


async def ended(probe: NvmlProbe) -> None:
    """Reap the child, so that the loop of the test has nothing left."""
    child = probe._child
    if child is not None:
        if child.returncode is None:
            child.kill()
        await child.communicate()


def play(gpus: list[dict[str, Any]], **rest: Any) -> None:
    path = Path(os.environ["FAKE_GPUS"])
    path.with_suffix(".new").write_text(json.dumps({"gpus": gpus, **rest}))
    path.with_suffix(".new").replace(path)


async def test_a_look_reads_what_the_driver_knows(real_loop: None, probe: NvmlProbe) -> None:
    play([FULL, {"pci": "00000000:5D:00.0", "nvmlDeviceGetUUID": "GPU-2"}])
    report = await probe.poll()
    assert (report.error, report.hung, report.expected, report.version_mismatch) == ("", [], 2, False)
    first, second = report.gpus
    assert (first.pci, first.index, first.uuid, first.serial) == ("00000000:3B:00.0", 0, "GPU-1", "1650123")
    assert (first.recovery_action, first.row_remap_pending, first.row_remap_failure) == (1, False, False)
    assert (first.ecc_volatile_uncorrectable, first.pcie_width, first.pcie_width_max) == (2, 8, 16)
    assert (first.nvlinks_up, first.lost, first.reset_required) == (2, False, False)
    assert (second.uuid, second.lost) == ("GPU-2", False)
    assert (second.recovery_action, second.nvlinks_up, second.sram_threshold_exceeded) == (None, None, None)


async def test_the_same_child_serves_every_look(real_loop: None, probe: NvmlProbe) -> None:
    play([FULL])
    await probe.poll()
    child = probe._child
    play([{**FULL, "field 230": 0}])
    assert (await probe.poll()).gpus[0].recovery_action == 0
    assert probe._child is child


@pytest.mark.parametrize(
    ("answers", "lost", "reset"),
    [
        ({"field 230": {"error": 15}}, True, None),
        ({"nvmlDeviceGetUUID": {"error": 15}}, True, None),
        ({"nvmlDeviceGetTotalEccErrors": {"error": 16}}, False, True),
        ({"nvmlDeviceGetTotalEccErrors": {"error": 999}}, False, False),
    ],
)
async def test_errors_that_are_faults(
    real_loop: None, probe: NvmlProbe, answers: dict[str, Any], lost: bool, reset: bool | None
) -> None:
    play([{**FULL, **answers}])
    (gpu,) = (await probe.poll()).gpus
    assert (gpu.lost, gpu.reset_required) == (lost, reset)
    if lost:
        assert gpu.pcie_width is None and gpu.row_remap_failure is None


async def test_a_gpu_without_a_handle_is_missing_in_the_count(real_loop: None, probe: NvmlProbe) -> None:
    play([FULL, {"handle": {"error": 15}}])
    report = await probe.poll()
    assert (len(report.gpus), report.expected) == (1, 2)


@pytest.mark.parametrize(
    ("init", "error", "mismatch"),
    [(18, "", True), (9, "NVML cannot be initialised: NVML error 9", None)],
)
async def test_a_driver_that_does_not_start(
    real_loop: None, probe: NvmlProbe, init: int, error: str, mismatch: bool | None
) -> None:
    play([], init={"error": init})
    report = await probe.poll()
    assert (report.error, report.version_mismatch, report.absent) == (error, mismatch, False)


@pytest.mark.case("P019")
async def test_a_call_that_never_returns_is_not_waited_for(real_loop: None, probe: NvmlProbe) -> None:
    play([FULL, {**FULL, "pci": "00000000:5D:00.0", "field 230": {"hang": True}}])
    probe._deadline = 1.0
    probe._abandon = lambda: None  # type: ignore[method-assign]  # nothing can kill a process that is stuck in the kernel
    first = await probe.poll()
    assert first.hung == ["00000000:5D:00.0"]
    stuck = probe._child
    second = await probe.poll()
    assert (second.hung, second.error) == (["00000000:5D:00.0"], "the driver does not answer")
    assert probe._child is stuck

    assert stuck is not None
    stuck.kill()
    await stuck.wait()
    play([FULL])
    assert len((await probe.poll()).gpus) == 1


async def test_a_child_that_dies_is_started_again(real_loop: None, tmp_path: Path, bus: Path) -> None:
    probe = NvmlProbe((sys.executable, "-c", "raise SystemExit(1)"), bus)
    report = await probe.poll()
    assert "ended in the middle" in report.error or "NVML process" in report.error
    await ended(probe)
    assert (await probe.poll()).error
    await ended(probe)


async def test_without_the_binding_a_gpu_node_is_blind_and_another_is_not(
    real_loop: None, tmp_path: Path, bus: Path
) -> None:
    command = (sys.executable, "-I", nvml_child.__file__)
    for pci, absent in ((bus, False), (tmp_path / "none", True)):
        probe = NvmlProbe(command, pci)
        report = await probe.poll()
        assert report.error in ("the Python package nvidia-ml-py is not installed",) or "NVML" in report.error
        assert report.absent is absent
        await probe.aclose()
        await ended(probe)


def test_gpus_are_counted_on_the_bus(bus: Path, tmp_path: Path) -> None:
    assert count_gpus(bus) == 2
    assert has_nvswitch(bus)
    assert count_gpus(tmp_path / "none") == 0
    assert not has_nvswitch(tmp_path / "none")
