"""Bursts: which lines are one fault, and what the fault is then."""

from __future__ import annotations

import pytest

from sickbay.detect.decode import decode_lines
from sickbay.detect.group import Diagnosis, bus_of


def at(seconds: float, text: str, bus: str = "0000:3b:00") -> str:
    return f"[{seconds:12.6f}] NVRM: Xid (PCI:{bus}): {text}"


RESET = "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
REBOOT = "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
P2P = "154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)"


def decode(*lines: str) -> list[Diagnosis]:
    return list(decode_lines(lines))


def brief(found: list[Diagnosis]) -> list[tuple[str | None, str, int, int]]:
    return [(d.fault, d.verdict, d.line, d.count) for d in found]


def test_the_codes_of_one_memory_error_are_one_diagnosis() -> None:
    [found] = decode(
        at(100.0, "48, pid=1, DBE"),
        at(100.1, "63, pid=1, Row Remapper"),
        at(100.2, "94, pid=1, Contained"),
        at(100.3, RESET),
        at(100.4, "171, DRAM"),
    )
    assert (found.fault, found.verdict, found.line, found.count) == ("gpu.xid.48", "drain+reset-gpu", 1, 5)
    assert found.also == ("gpu.xid.154.reset", "gpu.xid.171", "gpu.xid.63", "gpu.xid.94")


def test_repeats_within_ten_seconds_of_each_other_are_one_diagnosis() -> None:
    lines = [at(100.0 + 6 * n, "119, pid=1, Timeout after 6s of waiting") for n in range(50)]
    assert brief(decode(*lines)) == [("gpu.xid.119", "drain+reset-gpu", 1, 2)]


def test_the_same_fault_after_a_pause_is_another_diagnosis() -> None:
    found = decode(at(100.0, "119, x"), at(111.0, "119, x"))
    assert brief(found) == [("gpu.xid.119", "drain+reset-gpu", 1, 1), ("gpu.xid.119", "drain+reset-gpu", 2, 1)]


def test_something_worse_in_the_rest_of_a_burst_is_heard() -> None:
    lines = [at(100.0 + 6 * n, "119, x") for n in range(5)] + [at(125.0, "79, GPU has fallen off the bus.")]
    assert [d.fault for d in decode(*lines)] == ["gpu.xid.119", "gpu.xid.79"]


def test_two_cards_are_two_diagnoses() -> None:
    found = decode(at(1.0, "79, x"), at(1.1, "79, x", "0000:5d:00"), at(1.2, "79, x", "0000:3b:00"))
    assert [(d.device, d.count) for d in found] == [("0000:3b:00", 2), ("0000:5d:00", 1)]


def test_the_forms_of_one_bus_are_one_card() -> None:
    [found] = decode(
        at(1.0, "48, x", "0000:3b:00.0"), at(1.1, "63, x", "3b:00"), at(1.2, "94, x", "0000:3b:00 GPU-I:05")
    )
    assert (found.device, found.count) == ("0000:3b:00.0", 3)


ARBITER = [
    pytest.param("119, x", REBOOT, ("gpu.xid.119", "drain+reboot"), id="a-higher-remedy-wins"),
    pytest.param("119, x", P2P, ("gpu.xid.119", "drain"), id="a-lower-one-wins-too"),
    pytest.param("48, x", P2P, ("gpu.xid.48", "drain+reset-gpu"), id="but-not-below-the-floor"),
    pytest.param("79, x", RESET, ("gpu.xid.79", "isolate+drain+reboot"), id="nor-for-a-lost-card"),
    pytest.param("94, x", RESET, ("gpu.xid.154.reset", "drain+reset-gpu"), id="a-code-that-follows-is-no-cause"),
    pytest.param("31, x", RESET, ("gpu.xid.31", "drain+reset-gpu"), id="joined-with-its-cause"),
    pytest.param("45, x", RESET, ("gpu.xid.154.reset", "drain+reset-gpu"), id="cleanup-is-no-cause"),
]


@pytest.mark.parametrize(("cause", "action", "expected"), ARBITER)
def test_the_drivers_recovery_action_has_the_last_word(cause: str, action: str, expected: tuple[str, str]) -> None:
    [found] = decode(at(1.0, cause), at(1.2, action))
    assert (found.fault, found.verdict) == expected


def test_a_code_that_follows_attaches_to_its_cause() -> None:
    [found] = decode(at(1.0, "45, pid=9, Ch 1"), at(1.5, "79, GPU has fallen off the bus."))
    assert (found.fault, found.line) == ("gpu.xid.79", 1)


def test_a_code_that_follows_stands_alone_when_nothing_else_comes() -> None:
    [found] = decode(at(1.0, "45, pid=9, Ch 1"))
    assert (found.fault, found.verdict) == ("gpu.xid.45", "follow-cause")


@pytest.mark.case("N36")
def test_672_cleanups_never_become_more_than_cleanups() -> None:
    lines = [at(16.0 * n, "45, pid=9, Ch 1", f"0000:{n % 3:02x}:00") for n in range(672)]
    assert {d.verdict for d in decode(*lines)} == {"follow-cause"}


def test_a_context_switch_timeout_after_an_application_error_restarts_the_application() -> None:
    found = decode(at(1.0, "31, pid=77, MMU"), at(40.0, "109, pid=77, CTX SWITCH TIMEOUT"))
    assert [(d.fault, d.verdict) for d in found] == [("gpu.xid.31", "restart-app"), ("gpu.xid.109", "restart-app")]


@pytest.mark.parametrize(("pid", "when"), [(78, 40.0), (77, 62.0)], ids=["another-process", "too-late"])
def test_other_context_switch_timeouts_reset_the_gpu(pid: int, when: float) -> None:
    found = decode(at(1.0, "31, pid=77, MMU"), at(when, f"109, pid={pid}, CTX SWITCH TIMEOUT"))
    assert found[1].verdict == "drain+reset-gpu"


@pytest.mark.case("P007")
def test_a_lost_card_told_over_three_records_is_one_diagnosis_of_that_card() -> None:
    [found] = decode(
        "[199.9] NVRM: The NVIDIA GPU 0000:41:00.0",
        "[199.9] NVRM: (PCI ID: 10de:2330) installed in this system has",
        "[200.0] usb 1-1: new device",
        "[200.1] NVRM: fallen off the bus and is not responding to commands.",
    )
    assert (found.fault, found.device, found.line) == ("gpu.fallen-off-bus", "0000:41:00.0", 1)


@pytest.mark.case("P007")
def test_the_text_form_and_xid_79_are_one_diagnosis() -> None:
    [found] = decode(
        "[199.9] NVRM: The NVIDIA GPU 0000:41:00.0",
        "[200.1] NVRM: fallen off the bus and is not responding to commands.",
        at(200.2, "79, GPU has fallen off the bus.", "0000:41:00"),
    )
    assert found.count == 2
    assert found.verdict == "isolate+drain+reboot"


def test_the_beginning_of_a_lost_card_message_is_forgotten_after_a_while() -> None:
    [found] = decode(
        "[100.0] NVRM: The NVIDIA GPU 0000:41:00.0",
        "[200.1] NVRM: fallen off the bus and is not responding to commands.",
    )
    assert (found.device, found.line) == (None, 2)


def test_lines_that_name_no_card_join_the_one_card_that_is_named() -> None:
    [found] = decode(
        "[1.0] NVRM: GPU0 _kgspIsHeartbeatTimedOut: Heartbeat timed out, diff 6070 timeout 5200",
        "[1.1] NVRM: GPU0 _kgspRpcRecvPoll: GSP RM heartbeat timed out",
        at(2.0, "119, pid=1, Timeout after 6s"),
    )
    assert (found.fault, found.device, found.count) == ("gpu.gsp.heartbeat-lost", "0000:3b:00", 3)


def test_an_aer_error_and_its_details_are_one_diagnosis_of_the_port() -> None:
    [found] = decode(
        "[1.0] pcieport 0000:00:03.0: AER: Uncorrected (Fatal) error received: 0000:00:03.0",
        "[1.0] pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
        "[1.1] pcieport 0000:00:03.0:    [14] CmpltTO                (First)",
        "[1.2] pcieport 0000:00:03.0: AER: device recovery failed",
    )
    assert (found.fault, found.verdict, found.count) == ("pcie.aer.fatal", "isolate+drain+reboot", 4)


def test_a_detail_without_its_neighbour_counts_for_what_it_tells() -> None:
    [found] = decode("[1.1] pcieport 0000:00:03.0:    [14] CmpltTO                (First)")
    assert (found.fault, found.verdict) == ("pcie.aer.completion-timeout", "isolate+drain+reboot")


def test_an_oops_is_one_diagnosis() -> None:
    [found] = decode(
        "[1.0] BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "[1.0] Oops: 0000 [#1] SMP NOPTI",
        "[1.5] Kernel panic - not syncing: Fatal exception",
    )
    assert (found.verdict, found.count) == ("drain+reboot", 3)


def test_folded_lines_count_for_as_many_as_they_stand_for() -> None:
    [found] = decode(
        "Jan  1 00:01:00 n kernel: block nvme0n1: no available path - failing I/O",
        "Jan  1 00:01:01 n kernel: message repeated 9 times: [block nvme0n1: no available path - failing I/O]",
    )
    assert (found.fault, found.verdict, found.count) == ("disk.nvme-no-path", "isolate-node+drain", 10)


def test_lines_without_a_time_belong_together_when_they_are_neighbours() -> None:
    text = "NVRM: Xid (PCI:0000:3b:00): 119, x"
    assert len(decode(text, *["noise"] * 10, text)) == 1
    assert len(decode(text, *["noise"] * 30, text)) == 2


def test_a_burst_goes_on_over_new_year_where_the_log_names_no_year() -> None:
    text = "kernel: NVRM: Xid (PCI:0000:3b:00): 119, x"
    assert len(decode(f"Dec 31 23:59:58 n {text}", f"Jan  1 00:00:03 n {text}")) == 1
    assert len(decode(f"Dec 31 23:59:58 n {text}", f"Jan  1 00:01:03 n {text}")) == 2


def test_a_new_boot_begins_new_bursts() -> None:
    assert len(decode(at(5000.0, "119, x"), at(12.0, "119, x"))) == 2


@pytest.mark.case("N31")
def test_a_storm_of_29_faults_is_29_diagnoses_and_takes_no_memory() -> None:
    lines = (
        at(0.001 * n, "95, pid='<unknown>', name=<unknown>, Uncontained ECC error", f"0000:{n % 29:02x}:00")
        for n in range(60_000)
    )
    found = list(decode_lines(lines))
    assert len({d.device for d in found}) == len(found) == 29


@pytest.mark.parametrize(
    ("printed", "bus"),
    [
        ("0000:3b:00", "0000:3b:00"),
        ("00000000:3B:00.0", "0000:3b:00"),
        ("3b:00.0", "0000:3b:00"),
        ("000f:01:00", "000f:01:00"),
        ("10000:01:00.0", "10000:01:00"),
        ("0000:3b:00 GPU-I:05", "0000:3b:00"),
        ("nvme0n1", ""),
        (None, ""),
    ],
)
def test_a_bus_address_has_one_form_for_comparison(printed: str | None, bus: str) -> None:
    assert bus_of(printed) == bus
