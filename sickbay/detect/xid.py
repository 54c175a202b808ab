"""NVIDIA XIDs: `NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:02): 94, pid=.., name=.., text`.

The order of evidence: what the text says about the branch of the code comes before the code table, and the driver's own
recovery action (XID 154) before both; joining it with its cause is left to the grouping. XID 154 is read by its hex
code, never by its label, because labels changed between driver branches.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sickbay.detect import nvlink, tables
from sickbay.detect.finding import (
    CLEAR,
    DRAIN,
    FOLLOW_CAUSE,
    IGNORE,
    ISOLATE_FABRIC,
    ISOLATE_RESET,
    OBSERVE,
    PLAN_REPAIR,
    REBOOT,
    REBOOT_AT_JOB_END,
    RESET_AT_JOB_END,
    RESET_GPU,
    Cure,
    Finding,
    rule,
)

SYMPATHETIC = frozenset({43, 45, 94, 154, 171, 172})
"""Codes that follow another fault. Never counted as repeats: 672 lines of XID 45 from ordinary job ends once made three
healthy nodes fatal (NVSentinel#1710)."""

_HEAD = re.compile(
    r"NVRM:?\s{0,8}Xid\s{0,8}\(\s{0,8}(?:PCI:\s{0,8})?"
    r"(?P<bus>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)"
    r"(?P<mig>(?:\s{1,4}GPU-C?I:\s{0,4}\w{1,8}){0,2})\s{0,8}\)\s{0,8}:\s{0,8}"
    r"(?P<code>\d{1,5})(?P<text>(?:[\s,.].*)?)\Z",
    re.IGNORECASE | re.DOTALL,
)
"""Case and spacing vary between drivers, and old ones print no `PCI:`, no domain or no function. Every repetition is
bounded, so that no line is worth more time than another."""
_PID = re.compile(r"\bpid=['<]?(\d{1,10})")
_NVLINK_FATAL = re.compile(r"\bNVLink\b.*\b(?:fatal|error)", re.IGNORECASE | re.DOTALL)
_TO_ACTION = re.compile(r"\bto\s+0x([0-9a-f]{1,8})\b", re.IGNORECASE)
_MIG_RETRY = re.compile(r"\bMIG\b")
_REBOOT_VERB = re.compile(r"\breboot\b", re.IGNORECASE)


def judge_xid(match: re.Match[str], booting: bool) -> Finding:
    """Judge a line that begins with `NVRM: Xid`."""
    head = _HEAD.match(match.string, match.start())
    if head is None:
        return Finding(None, IGNORE, malformed=True)
    code = int(head["code"])
    mig = "".join(f" {part}" for part in re.sub(r":\s+", ":", head["mig"]).split())
    text = head["text"]
    pid = _PID.search(text)
    base = Finding(
        f"gpu.xid.{code}",
        OBSERVE,
        head["bus"] + mig,
        family="gpu",
        sympathetic=code in SYMPATHETIC,
        pid=int(pid[1]) if pid else None,
    )
    branch = _BRANCHES.get(code)
    if branch is not None:
        return branch(base, text)
    row = tables.xids().get(code)
    if row is None:
        return _with(base, note="unknown code; isolate when NVML reports a recovery action")
    if row.class_ == "app" and "nvlink" not in row.meaning.lower() and _NVLINK_FATAL.search(text):
        note = f"the text names NVLink, the code is {row.meaning}"
        return _with(base, verdict=ISOLATE_RESET, item="gpu.nvlink-error", note=note)
    return _with(base, verdict=row.verdict, note=row.advice)


def _with(
    base: Finding,
    *,
    verdict: str = "",
    branch: str = "",
    item: str = "",
    arbiter: bool = False,
    cure: Cure | None = None,
    note: str = "",
) -> Finding:
    return Finding(
        f"{base.fault}.{branch}" if branch else base.fault,
        verdict or base.verdict,
        base.device,
        item=item,
        family=base.family,
        cure=cure,
        arbiter=arbiter,
        sympathetic=base.sympathetic,
        pid=base.pid,
        note=note,
    )


def _remap_failure(base: Finding, text: str) -> Finding:
    """XID 64 is printed also for "row already pending", which is no failure (open-gpu-kernel-modules)."""
    if "already pending" in text.lower():
        return _with(base, verdict=RESET_AT_JOB_END, branch="already-pending")
    return _with(base, verdict=tables.xids()[64].verdict)


def _nvlink4(base: Finding, text: str) -> Finding:
    decoded = nvlink.decode_registers(text)
    return _with(base, verdict=decoded.verdict, note=decoded.note)


def _nvlink5(base: Finding, text: str) -> Finding:
    decoded = nvlink.decode_unit(int((base.fault or "").rpartition(".")[2]), text)
    if decoded is None:
        return _with(base, note="not of the known form; isolate when NVML reports a recovery action")
    return _with(base, verdict=decoded.verdict, note=decoded.note)


_ACTIONS: dict[int, tuple[str, str, str]] = {
    1: ("reset", "", RESET_GPU),
    2: ("reboot", "", REBOOT),
    3: ("drain-p2p", "", DRAIN),
    4: ("reset", "gpu.xid.154.drain-and-reset", RESET_AT_JOB_END),
    5: ("recover-domain", "", ISOLATE_FABRIC),
    6: ("bus-reset", "", ISOLATE_FABRIC),
    7: ("reboot", "gpu.xid.154.power-cycle", REBOOT),
}
"""Recovery actions by NVML number: branch of the fault, catalogue entry where the remedy differs, verdict."""


def recovery_finding(action: int, device: str, base: Finding | None = None) -> Finding:
    """The driver's recovery action as a finding, from the log or polled from NVML.

    0 clears what a reset or reboot cured; an unknown number isolates nothing and is reported.
    """
    base = base or Finding("gpu.xid.154", OBSERVE, device, family="gpu", sympathetic=True)
    if action == 0:
        return _with(base, verdict=CLEAR, cure=Cure("gpu.xid.154.", base.device or ""), note="no recovery needed")
    known = _ACTIONS.get(action)
    if known is None:
        return _with(base, note=f"unknown recovery action {action}")
    branch, item, verdict = known
    return _with(base, verdict=verdict, branch=branch, item=item, arbiter=True)


def _recovery_action(base: Finding, text: str) -> Finding:
    code = _TO_ACTION.search(text)
    if code is None:
        return _with(base, note="no recovery action in the line")
    return recovery_finding(int(code[1], 16), base.device or "", base)


def _retirement_failed(base: Finding, text: str) -> Finding:
    if _MIG_RETRY.search(text):
        return _with(base, verdict=OBSERVE, note="retry with MIG off before a repair is planned")
    return _with(base, verdict=PLAN_REPAIR, note="no spare left")


def _channel_repair(base: Finding, text: str) -> Finding:
    """XID 160 names the verb that activates the repair; a reset where it names none."""
    if _REBOOT_VERB.search(text):
        return _with(base, verdict=REBOOT_AT_JOB_END, branch="reboot")
    return _with(base, verdict=RESET_AT_JOB_END, branch="reset")


def _smoothing_back(base: Finding, text: str) -> Finding:
    return _with(base, verdict=CLEAR, cure=Cure("gpu.xid.163", base.device or ""), note="ends XID 163")


_BY = re.compile(r"caused by previous Xid (\d{1,5})", re.IGNORECASE)


def _cleanup(base: Finding, text: str) -> Finding:
    cause = _BY.search(text)
    return _with(base, verdict=FOLLOW_CAUSE, note=f"follow-cause:{cause[1]}" if cause else "")


_BRANCHES: dict[int, Callable[[Finding, str], Finding]] = {
    45: _cleanup,
    64: _remap_failure,
    74: _nvlink4,
    **dict.fromkeys(range(144, 151), _nvlink5),
    154: _recovery_action,
    157: _retirement_failed,
    160: _channel_repair,
    162: _smoothing_back,
}

RULES = (rule(r"(?i:NVRM:?\s*Xid)\b", ("NVRM", "vrm:"), judge_xid),)
