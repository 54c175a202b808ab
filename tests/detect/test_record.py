"""What the wrapping of a line says about time and origin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.detect.record import MAX_LINE, Origin, parse

KERNEL, INIT, USER, UNKNOWN = Origin.KERNEL, Origin.INIT, Origin.USER, Origin.UNKNOWN

FORMS = [
    pytest.param("NVRM: x", "NVRM: x", UNKNOWN, None, None, id="bare"),
    pytest.param("[   12.500000] NVRM: x", "NVRM: x", UNKNOWN, 12.5, None, id="dmesg"),
    pytest.param("[Thu Jan  1 00:01:00 1970] NVRM: x", "NVRM: x", UNKNOWN, None, 60.0, id="dmesg-T"),
    pytest.param("[   12.5] [   T1946] NVRM: x", "NVRM: x", UNKNOWN, 12.5, None, id="caller"),
    pytest.param("6,7,12500000,-;NVRM: x", "NVRM: x", KERNEL, 12.5, None, id="kmsg"),
    pytest.param("6,7,12500000,c,caller=C3;NVRM: x", "NVRM: x", KERNEL, 12.5, None, id="kmsg-continuation"),
    pytest.param("12,7,12500000,-;NVRM: x", "NVRM: x", USER, 12.5, None, id="kmsg-user"),
    pytest.param("30,7,12500000,-;systemd[1]: x", "x", INIT, 12.5, None, id="kmsg-pid-1"),
    pytest.param("Jan  1 00:01:00 node1 kernel: NVRM: x", "NVRM: x", KERNEL, None, 946684860.0, id="syslog"),
    pytest.param(
        "Jan  1 00:01:00 node1 kernel: [ 12.5] NVRM: x", "NVRM: x", KERNEL, 12.5, 946684860.0, id="syslog-uptime"
    ),
    pytest.param("Jan  1 00:01:00 node1 python3[77]: NVRM: x", "NVRM: x", USER, None, 946684860.0, id="syslog-program"),
    pytest.param("Jan  1 00:01:00 node1 root: NVRM: x", "NVRM: x", USER, None, 946684860.0, id="syslog-logger"),
    pytest.param("Jan  1 00:01:00 node1 systemd[1]: x", "x", INIT, None, 946684860.0, id="syslog-pid-1"),
    pytest.param("Jan  1 00:01:00 node1 systemd[881]: x", "x", USER, None, 946684860.0, id="syslog-user-manager"),
    pytest.param("1970-01-01T00:01:00Z node1 kernel: NVRM: x", "NVRM: x", KERNEL, None, 60.0, id="iso"),
    pytest.param("1970-01-01T02:01:00+0200 node1 kernel: NVRM: x", "NVRM: x", KERNEL, None, 60.0, id="iso-zone"),
    pytest.param("<4>1 1970-01-01T00:01:00Z node1 kernel - - - NVRM: x", "NVRM: x", KERNEL, None, 60.0, id="rfc5424"),
    pytest.param(
        "<13>1 1970-01-01T00:01:00Z node1 kernel - - - NVRM: x", "NVRM: x", USER, None, 60.0, id="rfc5424-forged"
    ),
    pytest.param(
        '<13>1 1970-01-01T00:01:00Z node1 app 7 id [a@1 b="c"] NVRM: x', "NVRM: x", USER, None, 60.0, id="rfc5424-data"
    ),
    pytest.param("kern: warning: [1970-01-01T00:01:00.5Z]: NVRM: x", "NVRM: x", KERNEL, None, 60.5, id="talos"),
    pytest.param("user: warning: [1970-01-01T00:01:00.5Z]: NVRM: x", "NVRM: x", USER, None, 60.5, id="talos-user"),
    pytest.param("kern.alert kernel: NVRM: x", "NVRM: x", KERNEL, None, None, id="kern-dot"),
    pytest.param("1970-01-01T00:01:00,500000+00:00 NVRM: x", "NVRM: x", UNKNOWN, None, 60.5, id="dmesg-iso"),
    pytest.param(
        "1970-01-01T00:01:00,500000+00:00 EXT4-fs (sda): x", "EXT4-fs (sda): x", UNKNOWN, None, 60.5, id="dmesg-iso-two"
    ),
    pytest.param("kern  :err   : 1970-01-01T00:01:00,5+00:00 NVRM: x", "NVRM: x", KERNEL, None, 60.5, id="dmesg-x-iso"),
    pytest.param("1970-01-01T00:01:00Z NVRM: x", "NVRM: x", UNKNOWN, None, 60.0, id="iso-without-a-host"),
    pytest.param("Jan  1 00:01:00 NVRM: x", "NVRM: x", UNKNOWN, None, 946684860.0, id="syslog-without-a-host"),
    pytest.param("[   12.500000 <    0.000012>] NVRM: x", "NVRM: x", UNKNOWN, 12.5, None, id="dmesg-d"),
    pytest.param("[Thu Jan  1 00:01:00 1970 <  0.000012>] NVRM: x", "NVRM: x", UNKNOWN, None, 60.0, id="dmesg-T-d"),
    pytest.param("[Jan 1 00:01] NVRM: x", "NVRM: x", UNKNOWN, None, None, id="dmesg-H-one-digit"),
    pytest.param("[Jan12 00:01] NVRM: x", "NVRM: x", UNKNOWN, None, None, id="dmesg-H-two-digits"),
    pytest.param("[  +0.000123] NVRM: x", "NVRM: x", UNKNOWN, None, None, id="dmesg-H-after"),
    pytest.param("Thu 1970-01-01 00:01:00 UTC node1 kernel: NVRM: x", "NVRM: x", KERNEL, None, 60.0, id="short-full"),
    pytest.param(
        "60.500000 node1 kernel: NVRM: x", "60.500000 node1 kernel: NVRM: x", UNKNOWN, None, None, id="number"
    ),
    pytest.param("1700000000.5 node1 kernel: NVRM: x", "NVRM: x", KERNEL, None, 1700000000.5, id="short-unix"),
    pytest.param("[   12.500000] node1 kernel: NVRM: x", "NVRM: x", KERNEL, 12.5, None, id="short-monotonic"),
    pytest.param("[   12.500000] node1 systemd[1]: x", "x", INIT, 12.5, None, id="short-monotonic-pid-1"),
    pytest.param("node1 kernel: NVRM: x", "NVRM: x", KERNEL, None, None, id="host-kernel"),
    pytest.param("1970/01/01 00:01:00 kernel: NVRM: x", "NVRM: x", KERNEL, None, 60.0, id="slashes"),
    pytest.param(
        "\x1b[32m[   12.500000] \x1b[0m\x1b[33mNVRM: \x1b[0mx", "NVRM: x", UNKNOWN, 12.5, None, id="dmesg-colour"
    ),
    pytest.param("\ufeffNVRM: x", "NVRM: x", UNKNOWN, None, None, id="byte-order-mark"),
    pytest.param("kernel: NVRM: x", "NVRM: x", KERNEL, None, None, id="kernel-alone"),
    pytest.param(
        '{"MESSAGE":"NVRM: x","_TRANSPORT":"kernel","__REALTIME_TIMESTAMP":"60000000"}',
        "NVRM: x",
        KERNEL,
        None,
        60.0,
        id="journal-json",
    ),
    pytest.param(
        '{"MESSAGE":"NVRM: x","_TRANSPORT":"syslog","SYSLOG_FACILITY":"0","SYSLOG_IDENTIFIER":"kernel"}',
        "NVRM: x",
        USER,
        None,
        None,
        id="journal-forged",
    ),
    pytest.param('{"MESSAGE":"NVRM: x","SYSLOG_FACILITY":"0"}', "NVRM: x", KERNEL, None, None, id="journal-facility"),
    pytest.param(
        '{"MESSAGE":"x","_TRANSPORT":"journal","SYSLOG_IDENTIFIER":"systemd","_PID":"1"}',
        "x",
        INIT,
        None,
        None,
        id="journal-pid-1",
    ),
]


@pytest.mark.parametrize(("line", "text", "origin", "uptime", "wall"), FORMS)
def test_the_wrapping_is_taken_off_and_says_when_and_by_whom(
    line: str, text: str, origin: Origin, uptime: float | None, wall: float | None
) -> None:
    record = parse(line)
    assert (record.text, record.origin, record.uptime, record.wall) == (text, origin, uptime, wall)
    assert not record.malformed


@pytest.mark.parametrize(
    "line",
    [
        "mlx5_core 0000:5c:00.0: Port module event",
        "pt_main_thread[2536443]: segfault at 0",
        "rcu: INFO: rcu_preempt detected stalls",
        "mce: [Hardware Error]: CPU 0",
        "[ascend] [drv_pcie] x",
        "{1}[Hardware Error]: event severity: fatal",
        "INFO: task a:1 blocked",
    ],
)
def test_the_beginning_of_a_message_is_not_taken_for_a_wrapping(line: str) -> None:
    assert parse(line).text == line
    assert parse(f"[ 12.5] {line}").text == line
    assert parse(f"Jan  1 00:01:00 node1 kernel: {line}").text == line


def test_a_folded_line_gives_its_quote_and_its_number() -> None:
    record = parse("Jan  1 00:01:00 node1 kernel: message repeated 9 times: [ NVRM: x [y]]")
    assert (record.text, record.repeats, record.origin) == ("NVRM: x [y]", 9, KERNEL)


@pytest.mark.parametrize("quote", ["[ [  9.5] NVRM: x]", "[   9.5] NVRM: x", "[NVRM: x]", "[ NVRM: x"])
def test_a_folded_line_may_quote_the_time_as_well(quote: str) -> None:
    record = parse(f"Jan  1 00:01:00 node1 kernel: [   12.5] message repeated 2 times: {quote}")
    assert (record.text, record.repeats) == ("NVRM: x", 2)


def test_the_key_value_lines_of_a_kmsg_record_are_no_part_of_the_message() -> None:
    assert parse("6,7,12500000,-;NVRM: x\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0").text == "NVRM: x"


def test_kmsg_escapes_are_undone() -> None:
    assert parse(r"6,7,12500000,-;a\x0ab\x5cc").text == "a\nb\\c"


@pytest.mark.parametrize("line", ["6,7,1250", "6,7,12500000,-", '{"MESSAGE":', '{"MESSAGE":7}', '{"a":1}'])
def test_a_broken_wrapping_is_malformed(line: str) -> None:
    assert parse(line).malformed


def test_a_giant_line_is_cut_and_nuls_are_dropped() -> None:
    assert len(parse("x" * 100_000).text) == MAX_LINE
    assert parse("NV\x00RM: x").text == "NVRM: x"


@given(st.text(max_size=300))
def test_parsing_never_fails(line: str) -> None:
    record = parse(line)
    assert len(record.text) <= len(line)


_PIECES = st.sampled_from(
    [
        "<4>",
        "<4>1 ",
        "[ 1.5] ",
        "[Thu Jan  1 00:01:00 1970] ",
        "Jan  1 00:01:00 ",
        "node1 ",
        "kernel: ",
        "6,7,8,-;",
        "kern: err: ",
        "2026-13-45T99:99:99Z ",
        "Feb 31 25:61:61 ",
        "message repeated 3 times: [",
        "]",
        '{"MESSAGE":"',
        "\\n",
        "#012",
        "NVRM: Xid (PCI:0000:3b:00): 79, x",
        "\ufffd",
        "\x00",
    ]
)


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_parsing_survives_any_pile_of_wrappings(line: str) -> None:
    parse(line)
