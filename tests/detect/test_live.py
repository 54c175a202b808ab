"""A fatal line is reported at once; what only repeats, names no GPU or has no code waits for its neighbours."""

from __future__ import annotations

import pytest

from sickbay.detect.finding import Finding
from sickbay.detect.judge import Trust, judge
from sickbay.detect.live import LiveGroups, acting
from sickbay.detect.moment import Moment
from sickbay.detect.record import parse

Line = tuple[float, str]

XID79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python3, GPU has fallen off the bus."
TEXT79 = "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2330) installed in this system has fallen off the bus and is not responding to commands."  # noqa: E501
RESET = "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000061)"
XID95 = "NVRM: Xid (PCI:0000:{bus}:00): 95, pid=7, Uncontained: LTC TAG (0x2,0x0)"
XID31 = "NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python3, Ch 00000008, intr 10000000. MMU Fault"
XID109 = "NVRM: Xid (PCI:0000:3b:00): 109, pid=7, name=python3, Ch 00000008, errorString CTX SWITCH TIMEOUT"
XID45 = "NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=python3, Ch 00000008"
INIT = "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x22:0x56:884)"
INIT_AGAIN = "NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 0"


def found(text: str) -> Finding:
    return judge(parse(f"3,1,1,-;{text}"), Trust.LIVE)


def run(lines: list[Line], groups: LiveGroups | None = None) -> list[tuple[float, str, str, bool]]:
    """What is reported and when: (second, fault, device, acting). The clock runs 30 s past the last line."""
    groups = groups or LiveGroups()
    out: list[tuple[float, str, str, bool]] = []

    def report(at: float, findings: list[Finding]) -> None:
        out.extend((at, f.fault or "", f.device or "", acting(f)) for f in findings)

    for number, (at, text) in enumerate(lines, start=1):
        while (due := groups.next_due) is not None and due <= at:
            report(due, groups.due(due))
        report(at, groups.feed(found(text), Moment(at, None, number), at))
    end = (lines[-1][0] if lines else 0) + 30
    while (due := groups.next_due) is not None and due <= end:
        report(due, groups.due(due))
    return out


@pytest.mark.parametrize(
    ("lines", "reported"),
    [
        pytest.param([(0, XID79)], [(0, "gpu.xid.79", "0000:3b:00", True)], id="a fatal line"),
        pytest.param([(0, TEXT79)], [(10, "gpu.fallen-off-bus", "0000:3b:00.0", True)], id="text alone"),
        pytest.param([(0, TEXT79), (4, XID79)], [(4, "gpu.xid.79", "0000:3b:00", True)], id="text, then its code"),
        pytest.param([(0, XID79), (4, TEXT79)], [(0, "gpu.xid.79", "0000:3b:00", True)], id="code, then its text"),
        pytest.param(
            [(0, TEXT79), (4, XID95.format(bus="5d"))],
            [(4, "gpu.xid.95", "0000:5d:00", True), (10, "gpu.fallen-off-bus", "0000:3b:00.0", True)],
            id="text, and another card's trouble",
        ),
        pytest.param([(0, INIT), (1, INIT_AGAIN)], [(0, "gpu.init-failed", "0000:3b:00.0", True)], id="said again"),
        pytest.param([(0, INIT_AGAIN), (1, INIT)], [(1, "gpu.init-failed", "0000:3b:00.0", True)], id="said before"),
        pytest.param([(0, INIT_AGAIN)], [(10, "gpu.init-failed", "0000:3b:00.0", True)], id="only the repetition"),
        pytest.param([(0, INIT_AGAIN), (3, INIT_AGAIN)], [(10, "gpu.init-failed", "0000:3b:00.0", True)], id="twice"),
        pytest.param(
            [(0, XID31), (5, XID109)],
            [(0, "gpu.xid.31", "0000:3b:00", False), (5, "gpu.xid.109", "0000:3b:00", False)],
            id="a consequence of the application's error",
        ),
        pytest.param([(0, XID109)], [(0, "gpu.xid.109", "0000:3b:00", True)], id="the same code by itself"),
    ],
)
def test_what_is_reported_and_when(lines: list[Line], reported: list[tuple[float, str, str, bool]]) -> None:
    assert run(lines) == reported


@pytest.mark.case("P018")
@pytest.mark.parametrize(
    ("lines", "device"),
    [
        pytest.param([(0, RESET)], "", id="nobody else is in trouble"),
        pytest.param([(0, XID95.format(bus="3b")), (2, RESET)], "0000:3b:00", id="one GPU was"),
        pytest.param([(0, RESET), (2, XID95.format(bus="3b"))], "0000:3b:00", id="one GPU is a moment later"),
        pytest.param([(0, XID95.format(bus="3b")), (1, XID95.format(bus="5d")), (2, RESET)], "", id="two GPUs were"),
        pytest.param([(0, XID95.format(bus="3b")), (15, RESET)], "", id="one GPU was, long ago"),
    ],
)
def test_a_line_that_names_no_gpu_takes_the_one_in_trouble(lines: list[Line], device: str) -> None:
    assert [(f, d) for _, f, d, _ in run(lines) if f == "gpu.reset-required"] == [("gpu.reset-required", device)]


@pytest.mark.case("N36")
def test_an_application_that_ends_672_times_is_no_fault() -> None:
    lines = [(float(second) * 16, XID45) for second in range(672)]
    assert not any(bad for *_, bad in run(lines))
    assert [fault for _, fault, _, bad in run([*lines, (10752.0, XID79), (10752.5, XID45)]) if bad] == ["gpu.xid.79"]


def test_waiting_lines_are_bounded() -> None:
    groups = LiveGroups()
    told = 0
    for number in range(1500):
        bus = f"{number >> 8:04x}:{number & 255:02x}"
        text = f"NVRM: GPU {bus}:00.0: rm_init_adapter failed, device minor number 0"
        told += len(groups.feed(found(text), Moment(0.0, None, number), 0.0))
    assert told >= 4 * 256
    assert told + len(groups.due(11.0)) == 1500
