"""Trust, the prefilter, and robustness against any input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.detect.decode import Stats, decode_lines
from sickbay.detect.finding import RANK
from sickbay.detect.judge import PREFILTER, RULES, Trust, judge
from sickbay.detect.record import parse
from tests.detect import test_host_lines, test_xid_lines
from tests.detect.test_case_lines import TABLE

XID = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
UNIT = "nvidia-fabricmanager.service: Failed with result 'exit-code'."
TOOL = "WARNING: infoROM is corrupted at gpu 0000:67:00.0"

BELIEVED = [
    pytest.param(f"4,1,1000,-;{XID}", True, True, id="kernel-record"),
    pytest.param(f"12,1,1000,-;{XID}", False, False, id="user-record-in-kmsg"),
    pytest.param(XID, True, False, id="no-origin"),
    pytest.param(f"Jan  1 00:01:00 n kernel: {XID}", True, True, id="syslog-kernel"),
    pytest.param(f"Jan  1 00:01:00 n root: {XID}", False, False, id="logger"),
    pytest.param(
        f'{{"MESSAGE":"{XID}","_TRANSPORT":"syslog","SYSLOG_IDENTIFIER":"kernel"}}', False, False, id="journal-forged"
    ),
    pytest.param(f'{{"MESSAGE":"{XID}","_TRANSPORT":"kernel"}}', True, True, id="journal-kernel"),
    pytest.param(f"Jan  1 00:01:00 n systemd[1]: {UNIT}", True, True, id="pid-1"),
    pytest.param(f"Jan  1 00:01:00 n systemd[99]: {UNIT}", False, False, id="systemd-of-a-user"),
    pytest.param(f"Jan  1 00:01:00 n kernel: {UNIT}", False, False, id="the-kernel-on-a-service"),
    pytest.param(f"Jan  1 00:01:00 n nvidia-smi: {TOOL}", True, False, id="tool"),
    pytest.param(f"4,1,1000,-;{TOOL}", True, True, id="tool-text-from-the-kernel"),
]


@pytest.mark.parametrize(("line", "offline", "live"), BELIEVED)
def test_a_line_is_believed_by_its_origin(line: str, offline: bool, live: bool) -> None:
    record = parse(line)
    assert (judge(record, Trust.OFFLINE).fault is not None) is offline
    assert (judge(record, Trust.LIVE).fault is not None) is live


CASE_LINES = [line.split("\t")[1] for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]


def _all_lines() -> list[str]:
    lines = [row[0] for rows in test_host_lines.GROUPS.values() for row in rows] + test_host_lines.CLEARING
    lines += [f"NVRM: Xid (PCI:0000:3b:00): {code}, {text}" for code, text, *_ in test_xid_lines.ISSUE_CODES]
    return lines + [f"nvidia-nvswitch2: SXid (PCI:0000:07:00.0): {text}" for text, *_ in test_xid_lines.SXIDS]


def test_the_prefilter_lets_every_known_form_through() -> None:
    assert [line for line in _all_lines() if PREFILTER.search(line) is None] == []


def test_every_rule_is_used_by_some_line() -> None:
    texts = [parse(line).text for line in _all_lines() + test_host_lines.NOISE + CASE_LINES]
    unused = [rule.pattern.pattern for rule in RULES if not any(rule.pattern.match(text) for text in texts)]
    assert unused == []


def test_the_most_of_a_quiet_log_is_not_even_parsed() -> None:
    noise = [line for line in test_host_lines.NOISE if PREFILTER.search(line) is None]
    assert len(noise) > len(test_host_lines.NOISE) / 4


@pytest.mark.case("K137")
def test_a_malformed_driver_line_is_counted_and_skipped() -> None:
    stats = Stats()
    lines = ["NVRM: Xid (PCI:0000:65:00): invalid", "NVRM: Xid", '{"MESSAGE":', "6,7,NVRM", XID]
    found = list(decode_lines(lines, stats=stats))
    assert [d.fault for d in found] == ["gpu.xid.79"]
    assert (stats.lines, stats.malformed, stats.faults) == (5, 4, 1)


def test_one_object_per_line_comes_out_whatever_the_line_is() -> None:
    found = list(decode_lines(["", "\x00\x00", "NVRM: Xid (PCI:0000:65:00): invalid", "x" * 100_000, XID], each=True))
    assert [(d.line, d.fault) for d in found] == [(1, None), (2, None), (3, None), (4, None), (5, "gpu.xid.79")]


@given(st.lists(st.sampled_from(_all_lines()), max_size=20), st.randoms(use_true_random=False))
def test_lines_cut_anywhere_do_no_harm(lines: list[str], random: object) -> None:
    cut = [line[: random.randrange(len(line) + 1)] for line in lines]  # type: ignore[attr-defined]
    for diagnosis in decode_lines(cut):
        assert diagnosis.verdict in RANK


@given(st.lists(st.text(max_size=200), max_size=20), st.booleans())
def test_any_text_does_no_harm(lines: list[str], each: bool) -> None:
    found = list(decode_lines(lines, each=each))
    assert not each or [d.line for d in found] == list(range(1, len(lines) + 1))


@given(st.sampled_from(_all_lines()), st.text(alphabet="\x00\ufffd\u00e4 :[](){}<>#\\n0x", max_size=40))
def test_a_known_line_with_rubbish_behind_it_does_no_harm(line: str, rubbish: str) -> None:
    list(decode_lines([line + rubbish, rubbish + line]))


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: " + "x" * 8000,
        "mlx5_core " + "(pid " * 1600,
        "INFO: task " + "a:" * 4000,
        "XFS (" + "a" * 8000,
        "amdgpu: " * 1000,
        "NVRM: Xid (" + " " * 8000,
        "systemd[1]: " + "a." * 4000 + "service: Failed with result",
    ],
)
def test_no_pattern_takes_long_on_a_hostile_line(line: str) -> None:
    """Bounded quantifiers everywhere: a thousand such lines pass before anybody would notice one of them."""
    assert len(list(decode_lines([line + str(n) for n in range(50)], each=True))) == 50
