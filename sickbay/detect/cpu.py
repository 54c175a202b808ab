"""Machine checks, memory controllers (EDAC) and firmware error records (CPER).

A machine check prints its status register, and bits of it decide: 63 the register is valid, 61 the error was not
corrected. What the kernel prints in the first seconds of a boot it found in registers that survived the reset: the
record of the crash before, not a fault of this boot.
"""

from __future__ import annotations

import re

from sickbay.detect.finding import (
    HW_REPAIR,
    NODE_HW,
    NOTHING,
    OBSERVE,
    Finding,
    rule,
    says,
)

_VALID, _UNCORRECTED = 1 << 63, 1 << 61
BOOT_SECONDS = 30.0
"""Left-over machine checks are printed when the CPUs come up, well within this time."""


def _machine_check(match: re.Match[str], booting: bool) -> Finding:
    device = f"CPU {match['cpu']}"
    if match["event"] == "Exception":
        return Finding("cpu.mce.fatal", NODE_HW, device, family="cpu")
    return _by_status(match["status"], device, booting)


def _by_status(text: str, device: str | None, booting: bool) -> Finding:
    status = int(text, 16)
    if not status & _VALID:
        return NOTHING
    if not status & _UNCORRECTED:
        return Finding("cpu.mce.corrected", OBSERVE, device)
    if booting:
        return Finding("cpu.mce.uc-prev-boot", OBSERVE, device)
    return Finding("cpu.mce.uncorrected", HW_REPAIR, device, family="cpu")


def _amd_status(match: re.Match[str], booting: bool) -> Finding:
    return _by_status(match["status"], f"CPU {match['cpu']}", booting)


def _throttled(match: re.Match[str], booting: bool) -> Finding:
    return Finding("cpu.thermal-throttle", OBSERVE, f"CPU {match['cpu']}")


def _edac(match: re.Match[str], booting: bool) -> Finding:
    if match["kind"] == "UE":
        return Finding("mem.edac.ue", HW_REPAIR, match["device"], family="memory")
    return Finding("mem.edac.ce", OBSERVE, match["device"])


_CPER = {
    "fatal": ("cpu.cper.fatal", NODE_HW),
    "recoverable": ("cpu.cper.recoverable", HW_REPAIR),
    "corrected": ("cpu.cper.corrected", OBSERVE),
}


def _cper(match: re.Match[str], booting: bool) -> Finding:
    known = _CPER.get(match["severity"])
    return Finding(known[0], known[1], family="cpu") if known else NOTHING


_HW = r"(?:mce: )?\[Hardware Error\]:\s*"

RULES = (
    rule(
        rf"{_HW}CPU (?P<cpu>\d{{1,5}}): Machine Check(?: (?P<event>Exception|Event))?: \w{{1,8}} Bank \d{{1,3}}: "
        r"(?P<status>[0-9a-fA-F]{8,16})\b",
        "Machine Check",
        _machine_check,
    ),
    rule(
        r"EDAC \w{1,32} MC\d{1,3}: CPU (?P<cpu>\d{1,5}): Machine Check(?: (?P<event>Exception|Event))?: \w{1,8} "
        r"Bank \d{1,3}: (?P<status>[0-9a-fA-F]{8,16})\b",
        "Machine Check",
        _machine_check,
    ),
    rule(
        rf"{_HW}CPU:(?P<cpu>\d{{1,5}}) \([^)]{{1,32}}\) MC\d{{1,3}}_STATUS\[[^\]]{{0,100}}\]: "
        r"0x(?P<status>[0-9a-fA-F]{8,16})\b",
        "[Hardware Error]",
        _amd_status,
    ),
    rule(rf"{_HW}Machine check events logged", "[Hardware Error]", says("cpu.mce.logged", OBSERVE)),
    rule(
        rf"{_HW}(?:Machine check: )?Processor context corrupt",
        "[Hardware Error]",
        says("cpu.mce.fatal", NODE_HW, family="cpu"),
    ),
    rule(rf"{_HW}System Fatal error", "[Hardware Error]", says("cpu.mce.fatal", NODE_HW, family="cpu")),
    rule(rf"{_HW}Uncorrected, software", "[Hardware Error]", says("cpu.mce.uncorrected", HW_REPAIR, family="cpu")),
    rule(rf"{_HW}Corrected error, no action required", "[Hardware Error]", says("cpu.mce.corrected", OBSERVE)),
    rule(
        r"(?:mce: )?CPU(?P<cpu>\d{1,5}): (?:Core|Package) (?:temperature|power limit) (?:above threshold|notification)"
        r", cpu clock throttled",
        "cpu clock throttled",
        _throttled,
    ),
    rule(
        r"mce: Uncorrected hardware memory error in user-access",
        "Uncorrected hardware memory",
        says("mem.poison", HW_REPAIR, family="memory"),
    ),
    rule(
        r"Memory failure: 0x[0-9a-f]{1,16}: (?:Sending SIGBUS to|Killing) .{1,200}due to hardware memory corruption",
        "Memory failure",
        says("mem.poison", HW_REPAIR, family="memory"),
    ),
    rule(
        r"EDAC (?:\w{1,32} )?(?P<device>MC\d{0,3})\s?:\s*(?:\d{1,9} )?(?P<kind>CE|UE)\b",
        "EDAC",
        _edac,
    ),
    rule(
        r"Uncorrectable ECC error detected on (?P<device>\S{1,64}?)\.?\s*\Z",
        "ECC error",
        says("mem.edac.ue", HW_REPAIR, family="memory"),
    ),
    rule(r"Correctable ECC error reported on (?P<device>\S{1,64}?)\.?\s*\Z", "ECC error", says("mem.edac.ce", OBSERVE)),
    rule(
        r"(?:\{\d{1,9}\})?\[Hardware Error\]:\s*event severity: (?P<severity>\w{1,16})",
        "[Hardware Error]",
        _cper,
    ),
)
