"""Lines of the NVIDIA driver, written from the grammar: forms, branches by text, registers and units."""

from __future__ import annotations

import pytest

from sickbay.detect import tables
from sickbay.detect.decode import decode_lines
from sickbay.detect.finding import RANK


def judge(line: str) -> tuple[str | None, str]:
    [found] = decode_lines([line], each=True)
    return found.fault, found.verdict


def device(line: str) -> str | None:
    [found] = decode_lines([line], each=True)
    return found.device


ISSUE_CODES = [
    (13, "Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Out Of Range Address", "gpu.xid.13", "restart-app"),
    (31, "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS", "gpu.xid.31", "restart-app"),
    (43, "channel 0x00000010", "gpu.xid.43", "observe"),
    (45, "Ch 00000001", "gpu.xid.45", "follow-cause"),
    (48, "DBE (double bit error) detected on GPU at 0x0000000012345000", "gpu.xid.48", "drain+reset-gpu"),
    (63, "Row Remapper: New row (0x00000000abcdef00) marked for remapping", "gpu.xid.63", "drain-at-job-end+reset-gpu"),
    (
        64,
        "Row Remapper Error: (0x00000002eebc4100) - All reserved rows for bank are remapped",
        "gpu.xid.64",
        "isolate+hw-repair",
    ),
    (
        64,
        "Row Remapper Error: (0x00000002eebc4100) - Row is already pending",
        "gpu.xid.64.already-pending",
        "drain-at-job-end+reset-gpu",
    ),
    (74, "NVLink: fatal error detected on link 6", "gpu.xid.74", "drain+reset-gpu"),
    (79, "GPU has fallen off the bus.", "gpu.xid.79", "isolate+drain+reboot"),
    (94, "Contained: CE User Channel (0x9). RST: No, D-RST: No", "gpu.xid.94", "restart-app"),
    (95, "Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No", "gpu.xid.95", "drain+reset-gpu"),
    (119, "Timeout after 6s of waiting for RPC response from GPU4 GSP!", "gpu.xid.119", "drain+reset-gpu"),
    (120, "GSP Error: Task 1 raised error code 0x5", "gpu.xid.120", "drain+reset-gpu"),
    (137, "NVLink: privilege error on link 3", "gpu.xid.137", "restart-app"),
    (
        154,
        "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "gpu.xid.154.reset",
        "drain+reset-gpu",
    ),
]

WRAPPINGS = {
    "bare": "{}",
    "dmesg": "[14370.687545] {}",
    "dmesg-T": "[Fri Aug 30 11:43:09 2024] {}",
    "dmesg-x": "kern  :err   : [  +0.001354] [Tue Jan 13 04:33:10 2026] [T88977] {}",
    "caller": "[  130.456250] [   T1946] {}",
    "caller-cpu": "[  130.456250] [     C12] {}",
    "kmsg": "4,1234,130456250,-;{}",
    "kmsg-caller": "4,1234,130456250,-,caller=T1946;{}",
    "syslog": "Jun 30 11:07:05 node1 kernel: {}",
    "syslog-uptime": "Jun 30 11:07:05 node1 kernel: [14370.687545] {}",
    "syslog-no-host": "     Mar 21 21:42:01 kernel: {}",
    "iso": "2026-10-05T08:08:16-05:00 node1 kernel: {}",
    "iso-space": "2024-07-02 18:46:08.681559 kernel:[   21.766727] {}",
    "rfc5424": "<4>1 2020-12-02T21:55:55.886226+01:00 node1 kernel - - - {}",
    "pri": "<4>Jun 30 11:07:05 node1 kernel: {}",
    "journal-cat": "{}",
    "journal-short": "Feb 01 14:25:31 node1 kernel: {}",
    "kernel-only": "kernel: {}",
    "kern-dot": "kern.alert kernel: {}",
    "talos": "kern: warning: [2026-04-22T21:27:51.291660856Z]: {}",
    "talosctl": "192.168.11.119: kern: warning: [2026-04-22T21:27:51.291660856Z]: {}",
    "pdsh": "b1360: [14280.445226] {}",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS.values(), ids=WRAPPINGS.keys())
@pytest.mark.parametrize(
    ("code", "text", "fault", "verdict"), ISSUE_CODES, ids=[f"{c}-{i}" for i, (c, *_) in enumerate(ISSUE_CODES)]
)
def test_a_code_means_the_same_in_every_transport(
    code: int, text: str, fault: str, verdict: str, wrapping: str
) -> None:
    line = wrapping.format(f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=1234, name=python3, {text}")
    assert judge(line) == (fault, verdict)
    assert device(line) == "0000:3b:00"


def test_a_code_means_the_same_as_a_journal_entry_in_json() -> None:
    text = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    assert judge(f'{{"MESSAGE":"{text}","_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel"}}')[0] == "gpu.xid.79"
    numbers = ",".join(str(byte) for byte in text.encode())
    assert judge(f'{{"MESSAGE":[{numbers}],"_TRANSPORT":"kernel"}}')[0] == "gpu.xid.79"


HEADS = [
    ("NVRM: Xid (PCI:0000:3b:00): {}", "0000:3b:00"),
    ("NVRM: Xid (PCI:0000:3b:00.0): {}", "0000:3b:00.0"),
    ("NVRM: Xid (0000:3b:00): {}", "0000:3b:00"),
    ("NVRM: Xid (PCI:3b:00): {}", "3b:00"),
    ("NVRM: Xid (PCI:000f:01:00): {}", "000f:01:00"),
    ("NVRM: Xid (PCI:00000000:3b:00): {}", "00000000:3b:00"),
    ("NVRM: Xid (PCI:0000:3b:00 GPU-I:05): {}", "0000:3b:00 GPU-I:05"),
    ("NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:02): {}", "0000:3b:00 GPU-I:01 GPU-CI:02"),
    ("nvrm:  xid ( pci:0000:00:1e.0 ) : {}", "0000:00:1e.0"),
    ("NVRM Xid (PCI:0000:3b:00): {}", "0000:3b:00"),
]

TAILS = [
    "94, pid=1234, name=python3, Ch 0000000c",
    "94, pid='<unknown>', name=<unknown>, Ch 0000000c",
    "94, pid=<n/a>, channel 0x0000000c",
    "94, pid=7, name=nvc:[driver], a, b, Ch 00000008",
    "94, pid=1659,",
    "94",
    "94, Contained ECC error. Count -1",
]


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize(("head", "bus"), HEADS)
def test_every_head_and_tail_of_an_xid_line_is_read(head: str, bus: str, tail: str) -> None:
    line = head.format(tail)
    assert judge(line) == ("gpu.xid.94", "restart-app")
    assert device(line) == bus


@pytest.mark.parametrize("code", sorted(tables.xids()))
def test_every_code_of_the_table_has_a_verdict(code: int) -> None:
    fault, verdict = judge(f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=1, name=a, text")
    assert fault is not None
    assert fault.startswith(f"gpu.xid.{code}")
    assert verdict in RANK


PLAIN = {
    8: "restart-app",
    14: "ignore",
    32: "restart-app",
    38: "observe",
    46: "drain+reset-gpu",
    54: "isolate+hw-repair",
    56: "observe",
    61: "drain+reboot",
    62: "drain+reset-gpu",
    69: "restart-app",
    78: "observe",
    81: "observe",
    92: "observe",
    106: "ignore",
    109: "drain+reset-gpu",
    110: "drain+reset-gpu",
    121: "observe",
    123: "observe",
    136: "drain+reset-gpu",
    137: "restart-app",
    140: "drain+reset-gpu",
    142: "restart-app",
    143: "drain+reset-gpu",
    151: "drain+reboot",
    155: "drain+reset-gpu",
    156: "drain-at-job-end+reset-gpu",
    158: "drain+reset-gpu",
    161: "observe+plan-hw-repair",
    162: "clear",
    163: "drain+reset-gpu",
    165: "observe+plan-hw-repair",
    167: "drain+reboot",
    168: "drain+reboot",
    171: "follow-cause",
    172: "follow-cause",
    173: "drain+reboot",
    174: "ignore",
    175: "observe",
    176: "observe",
    177: "drain-at-job-end+reset-gpu",
}


@pytest.mark.parametrize(("code", "verdict"), PLAIN.items())
def test_a_code_without_telling_text_takes_the_tables_verdict(code: int, verdict: str) -> None:
    assert judge(f"NVRM: Xid (PCI:0000:3b:00): {code}, pid=1, name=a, text") == (f"gpu.xid.{code}", verdict)


def test_a_code_nobody_knows_is_observed() -> None:
    assert judge("NVRM: Xid (PCI:0000:3b:00): 999, pid=5, name=<unknown>, future detail") == ("gpu.xid.999", "observe")


BRANCHES = [
    (
        "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        "gpu.xid.154.reboot",
        "drain+reboot",
    ),
    ("154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)", "gpu.xid.154.reboot", "drain+reboot"),
    (
        "154, GPU recovery action changed from 0x0 (None) to 0x1 (Drain and Reset)",
        "gpu.xid.154.reset",
        "drain+reset-gpu",
    ),
    (
        "154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
        "gpu.xid.154.reset",
        "drain-at-job-end+reset-gpu",
    ),
    ("154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "gpu.xid.154", "clear"),
    ("154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", "gpu.xid.154.drain-p2p", "drain"),
    ("154, GPU recovery action changed from 0x0 (None) to 0x7 (System Reboot)", "gpu.xid.154.reboot", "drain+reboot"),
    ("154, GPU recovery action changed", "gpu.xid.154", "observe"),
    ("157, Resource retirement failed: no spare TPC in GPC 2", "gpu.xid.157", "observe+plan-hw-repair"),
    ("157, Resource retirement failed: disable MIG and retry", "gpu.xid.157", "observe"),
    (
        "160, Marking Channel 3 in FBPA 2 for repair; Node Reboot Required",
        "gpu.xid.160.reboot",
        "drain-at-job-end+reboot",
    ),
    (
        "160, Marking Channel 3 in FBPA 2 for repair. Perform GPU reset",
        "gpu.xid.160.reset",
        "drain-at-job-end+reset-gpu",
    ),
    ("45, pid=1, name=p, Ch 00000001 caused by previous Xid 79", "gpu.xid.45", "follow-cause"),
    ("71, NVLink: fatal error detected on link 6", "gpu.xid.71", "isolate+drain+reset-gpu"),
    ("71, pid=3, Ch 00000001", "gpu.xid.71", "restart-app"),
]


@pytest.mark.parametrize(("text", "fault", "verdict"), BRANCHES)
def test_the_text_chooses_the_branch_of_a_code(text: str, fault: str, verdict: str) -> None:
    assert judge(f"NVRM: Xid (PCI:0000:3b:00): {text}") == (fault, verdict)


REGISTERS = [
    ("NVLink: fatal error detected on link 0(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", "drain+reset-gpu"),
    (
        "NVLink: fatal error detected on link 11(0x00000000, 0x00000000, 0x00040000, 0x0, 0x0, 0x0, 0x0)",
        "drain+reset-gpu",
    ),
    ("NVLink: fatal error detected on link 3(0x0, 0x0, 0x0, 0x0, 0x00200000, 0x0, 0x0)", "drain+reset-gpu"),
    ("NVLink: fatal error detected on link 3(0x0, 0x0, 0x0, 0x00010000, 0x0, 0x0, 0x0)", "drain+reset-gpu"),
    ("NVLink: error detected on link 3(0x00000010, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", "observe"),
    ("NVLink: error detected on link 3(0x08000000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", "observe"),
    ("NVLink: error detected on link 3(0x0, 0x0, 0x0, 0x0, 0x00100000, 0x0, 0x0)", "observe"),
    ("NVLink: error detected on link 3(0x00100002, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", "follow-cause"),
    ("NVLink: error detected on link 3(0x40800001, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", "ignore"),
    ("NVLink: error detected on link 3(0x40800001, 0x1, 0x0, 0x0, 0x0, 0x0, 0x0)", "ignore"),
    ("NVLink: error detected on link 3(0x00000000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)", "drain+reset-gpu"),
    ("NVLink: error detected on link 3 00000010 00000000 00000000 00000000 00000000 00000000 00000000", "observe"),
    ("pid=1234, name=python3, NVLink: fatal error", "drain+reset-gpu"),
]


@pytest.mark.parametrize(("text", "verdict"), REGISTERS)
def test_the_registers_of_xid_74_are_decoded(text: str, verdict: str) -> None:
    assert judge(f"NVRM: Xid (PCI:0000:3b:00): 74, {text}") == ("gpu.xid.74", verdict)


UNITS = [
    ("144, SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000001 0x0 0x0)", "ignore"),
    ("144, SAW_MVB Fatal XC0 i0 Link 00 (0x00000021 0x00000002 0x0 0x0)", "isolate+drain+reset-gpu"),
    ("145, RLW_CTRL Nonfatal XC0 i0 Link 00 (0x00000003 0x80000000 0x0 0x0)", "ignore"),
    ("145, RLW_REMAP Nonfatal XC1 i0 Link 00 (0x00000004 0x00000001 0x0 0x0)", "restart-app"),
    ("145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040 0x0 0x0)", "isolate+drain+reset-gpu"),
    ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 00 (0x000000c2 0x00000001 0x0 0x0)", "ignore"),
    ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 00 (0x000004c2 0x00000001 0x0 0x0)", "isolate+drain+reset-gpu"),
    ("145, RLW_SRC_TRACK Fatal XC0 i0 Link 00 (0x00000007 0x00000001 0x0 0x0)", "isolate+drain+reset-gpu"),
    ("145, RLW_TAGSTATE Fatal XC0 i0 Link 00 (0x00000008 0x00020000 0x0 0x0)", "isolate+drain+reset-gpu"),
    ("146, TLW_RX/TLW_RX_PIPE0 Fatal XC0 i0 Link 00 (0x0000000a 0x00000004 0x0 0x0)", "isolate+drain+reset-gpu"),
    ("146, TLW_TX/TLW_TX_PIPE1 Nonfatal XC0 i0 Link 00 (0x0000000d 0x00000001 0x0 0x0)", "ignore"),
    ("147, TREX Nonfatal XC0 i0 Link 00 (0x0000000e 0x00000001 0x0 0x0)", "ignore"),
    ("149, NETIR/NETIR_INT Fatal XC0 i0 Link 00 (0x00000018 0x00000000 0x0 0x0)", "isolate+drain+reset-gpu"),
    ("149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 01 (0x00082226 0x00000001 0x0 0x0)", "ignore"),
    ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x016415c6 0x00000000 0x0 0x0)", "isolate+drain+reset-gpu"),
    ("149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x026001c6 0x00000000 0x0 0x0)", "ignore"),
    ("149, NETIR_MFDE_EVENT Nonfatal XC0 i0 Link 00 (0x00000014 0x00000003 0x0 0x0)", "ignore"),
    ("149, NETIR Fatal XC0 i0 Link -1 (0x00000018 0x00000000 0x0 0x0)", "isolate+drain+reset-gpu"),
    ("150, MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x00000000 0x00000000 0x0 0x0)", "isolate+drain+reset-gpu"),
    ("146, TLW_RX_PIPE1 Nonfatal XC0 i0 Link 03 (0x00000010 0x00000020 0x00000030 0x00000040)", "observe"),
    ("146, TLW_RX_PIPE1 Fatal XC0 i0 Link 03 [0x00000010 0x00000020 0x00000030", "isolate+drain+reset-gpu"),
    ("149, NETIR_LINK_DOWN Nonfatal XC1 i2 Link 17 (0xdeadbeef)", "ignore"),
    ("145, pid=4, name=<unknown>, RLW_SRC_TRACK Fatal XC 0 i 1 Link 00 (0x00000007 0x00000001)", "ignore"),
    ("145, driver-specific detail", "observe"),
]


@pytest.mark.parametrize(("text", "verdict"), UNITS)
def test_nvlink5_units_are_decoded_in_both_layouts_and_injected_ones_ignored(text: str, verdict: str) -> None:
    fault, found = judge(f"NVRM: Xid (PCI:0000:3b:00): {text}")
    assert (fault, found) == (f"gpu.xid.{text[:3]}", verdict)


def test_every_nvlink5_rule_is_found_by_both_layouts() -> None:
    for rules in tables.nvlink_rules().values():
        for rule in rules:
            for layout in (rule.layout1, rule.layout2):
                intr = rule.reason << 20 | layout
                line = f"{rule.xid}, {rule.unit} Nonfatal XC0 i0 Link 00 (0x{intr:08x} 0x{rule.status:08x} 0x0)"
                _, verdict = judge(f"NVRM: Xid (PCI:0000:3b:00): {line}")
                assert verdict != "observe", line


SXIDS = [
    ("20034, Fatal, Link 30 LTSSM Fault Up", "nvswitch.sxid.20034", "isolate+drain+reset-gpu"),
    ("20034, Severity 1 Engine instance 30 Sub-engine instance 00", "nvswitch.sxid.20034", "duplicate"),
    ("20034, Data {0x50610002, 0x10100030, 0x00000001}", "nvswitch.sxid.20034", "duplicate"),
    ("22003, Fatal, MINION Link 28 halted", "nvswitch.sxid.22003", "isolate+drain+reset-fabric"),
    ("22011, Fatal, MINION EXTERR", "nvswitch.sxid.22011", "isolate+drain+reset-fabric"),
    ("23001, Fatal, Link 08 ingress buffer overflow", "nvswitch.sxid.23001", "isolate+drain+reset-fabric"),
    ("12028, Non-fatal, Link 32 egress non-posted PRIV error", "nvswitch.sxid.12028", "observe"),
    ("11001, Non-fatal, Link 12 ingress invalid command", "nvswitch.sxid.11001", "restart-app"),
    ("11001, Fatal, Link 12 ingress invalid command", "nvswitch.sxid.11001", "isolate+drain+reset-gpu"),
    ("24001, Correctable, Link 03 sourcetrack ECC limit", "nvswitch.sxid.24001", "ignore"),
    ("20009, Non-fatal, Link 04 RX Short Error Rate", "nvswitch.sxid.20009", "observe"),
    ("19049, Fatal, Link 04 ECC limit", "nvswitch.sxid.19049", "isolate+drain+reset-gpu"),
    ("19049, Non-fatal, Link 04 ECC limit", "nvswitch.sxid.19049", "observe"),
    ("10004, NVSWITCH Temperature 99C | TSENSE WARN Threshold 95C", "nvswitch.sxid.10004", "observe"),
    ("10006, NVSWITCH Temperature 130C | OVERT Threshold 120C", "nvswitch.sxid.10006", "isolate-node+drain+hw-repair"),
    ("10008, Fatal, Firmware initialization failure (0x0/0x1)", "nvswitch.sxid.10008", "isolate+drain+reset-fabric"),
    ("99999, Fatal, something new", "nvswitch.sxid.99999", "isolate+drain+reset-fabric"),
    ("99999, Fatal, Link 07 something new", "nvswitch.sxid.99999", "isolate+drain+reset-gpu"),
    ("99999, Non-fatal, something new", "nvswitch.sxid.99999", "observe"),
    ("99999, something new", "nvswitch.sxid.99999", "observe"),
]


@pytest.mark.parametrize(("text", "fault", "verdict"), SXIDS)
def test_sxids_take_the_printed_word_first_and_the_table_for_the_scope(text: str, fault: str, verdict: str) -> None:
    line = f"nvidia-nvswitch2: SXid (PCI:0000:07:00.0): {text}"
    assert judge(line) == (fault, verdict)
    assert device(line) == "0000:07:00.0"


@pytest.mark.parametrize("code", sorted(tables.sxids()))
def test_every_sxid_of_the_table_has_a_verdict_with_any_word(code: int) -> None:
    for word in ("Fatal, Link 03 ", "Fatal, ", "Non-fatal, Link 03 ", "Correctable, ", ""):
        fault, verdict = judge(f"nvidia-nvswitch0: SXid (PCI:0000:07:00.0): {code:05d}, {word}text")
        assert fault == f"nvswitch.sxid.{code}"
        assert verdict in RANK
