"""PCI Express: AER in its two dialects, hotplug and containment, and links narrower than they could be.

The reporter of an AER message is a port, the victim sits below it. Where the message names the source, that is the
device; `0000:00:00.0` there means the port could not tell.
"""

from __future__ import annotations

import re

from sickbay.detect.finding import (
    DUPLICATE,
    HW_REPAIR,
    IGNORE,
    ISOLATE_REBOOT,
    NOTHING,
    OBSERVE,
    Finding,
    Rule,
    rule,
    says,
)

FULL_WIDTH_MATTERS = frozenset(
    {"nvidia", "amdgpu", "habanalabs", "xe", "nvme"}
    | {"mlx5_core", "mlx4_core", "bnxt_en", "ice", "i40e", "ixgbe", "qede", "cxgb4", "irdma", "efa", "ena"}
)
"""Drivers of GPUs, network cards and NVMe disks. Boot and BMC devices sit in narrow slots by design."""

_REPORTER = r"[\w-]{1,32} (?P<reporter><bdf>): "
_SEVERITY = r"(?P<severity>Uncorrect(?:ed|able)|Correct(?:ed|able))(?: \((?P<kind>Non-Fatal|Fatal)\))?"


def _aer(match: re.Match[str], booting: bool) -> Finding:
    source = match.groupdict().get("source") or ""
    device = match["reporter"] if not source or source.endswith("00:00.0") else source
    if match["severity"].startswith("Correct"):
        return Finding("pcie.aer.corrected", OBSERVE, device, family="pcie")
    if match["kind"] == "Non-Fatal":
        return Finding("pcie.aer.nonfatal", OBSERVE, device, family="pcie")
    return Finding("pcie.aer.fatal", ISOLATE_REBOOT, device, family="pcie")


def _detail(names: str, verdict: str, fault: str, *, alone: str = "") -> Rule:
    """Bits of the error status, by their short names in newer kernels and their long ones in older ones."""
    return rule(
        rf"[\w-]{{1,32}} (?P<device><bdf>):\s+\[\s*\d{{1,2}}\s*\]\s*(?:{names})",
        tuple(name.removesuffix(r"\b") for name in names.split("|")),
        says(fault, verdict, family="pcie", alone=alone),
    )


_BITS = (
    _detail(r"SDES\b|Surprise Down", ISOLATE_REBOOT, "pcie.aer.surprise-down"),
    _detail(r"CmpltTO|Completion Timeout", DUPLICATE, "pcie.aer.completion-timeout", alone=ISOLATE_REBOOT),
    _detail(r"ACSViol|ACS Violation", OBSERVE, "pcie.aer.acs-violation"),
    _detail(
        r"RxErr|Receiver Error|BadTLP|Bad TLP|BadDLLP|Bad DLLP|Rollover|RELAY_NUM|Timeout|Replay Timer|NonFatalErr"
        r"|Advisory|CorrIntErr|Corrected Internal|HeaderOF|Header Log",
        DUPLICATE,
        "pcie.aer.corrected",
        alone=OBSERVE,
    ),
    _detail(
        r"UnsupReq|Unsupported Request|CmpltAbrt|Completer Abort|UnxCmplt|Unexpected Completion|TLP\b|Poisoned TLP",
        DUPLICATE,
        "pcie.aer.nonfatal",
        alone=OBSERVE,
    ),
    _detail(
        r"DLP\b|Data Link Protocol|FCP\b|Flow Control|RxOF|Receiver Overflow|MalfTLP|Malformed TLP|ECRC"
        r"|UncorrIntErr|Uncorrectable Internal",
        DUPLICATE,
        "pcie.aer.fatal",
        alone=ISOLATE_REBOOT,
    ),
)


def _bandwidth(match: re.Match[str], booting: bool) -> Finding:
    """Width against the width the device can. Speed is not judged: idle links run slow on purpose."""
    if int(match["width"]) >= int(match["capable"]):
        return NOTHING
    if match["driver"] not in FULL_WIDTH_MATTERS:
        return Finding("pcie.link-degraded", IGNORE, match["device"])
    return Finding("pcie.link-degraded", HW_REPAIR, match["device"])


_AER = rf"{_REPORTER}(?:AER:\s*)?"

RULES = (
    rule(
        rf"{_AER}(?:Multiple )?{_SEVERITY} error (?:message )?received(?: from|:)?\s*"
        r"(?:id=\w{1,8}|(?P<source><bdf>))?",
        "AER",
        _aer,
    ),
    rule(rf"{_AER}PCIe Bus Error: (?:severity=)?{_SEVERITY}", "PCIe Bus", _aer),
    *_BITS,
    rule(
        r"[\w-]{1,32} (?P<device><bdf>): device has no AER-aware driver",
        "AER-aware",
        says("pcie.aer.no-recovery", DUPLICATE, family="pcie", alone=ISOLATE_REBOOT),
    ),
    rule(
        r"[\w-]{1,32} (?P<device><bdf>): AER: can't recover",
        "AER",
        says("pcie.aer.no-recovery", ISOLATE_REBOOT, family="pcie"),
    ),
    rule(
        r"[\w-]{1,32} (?P<device><bdf>): AER: [Dd]evice recovery failed",
        "AER",
        says("pcie.aer.recovery-failed", ISOLATE_REBOOT, family="pcie"),
    ),
    rule(
        r"[\w-]{1,32} (?P<device><bdf>): AER: [Dd]evice recovery successful",
        "AER",
        says(None, IGNORE, cure="pcie.aer."),
    ),
    rule(
        r"[\w-]{1,32} (?P<device><bdf>): AER: (?:Root|Downstream) Port link has been reset",
        "AER",
        says("pcie.aer.link-reset", OBSERVE, family="pcie"),
    ),
    rule(
        r"[\w-]{1,32} (?P<device><bdf>): DPC: containment event",
        "DPC: containment",
        says("pcie.dpc.containment", ISOLATE_REBOOT, family="pcie"),
    ),
    rule(
        r"[\w-]{1,32} (?P<device><bdf>): DPC: unmasked uncorrectable error detected",
        "DPC: unmasked",
        says("pcie.dpc.containment", DUPLICATE, family="pcie", alone=ISOLATE_REBOOT),
    ),
    rule(
        r"pcieport (?P<device><bdf>): pciehp: Slot\([\w-]{1,16}\): (?:Link Down|Card not present)",
        "Slot(",
        says("pcie.slot.link-down", OBSERVE),
    ),
    rule(
        r"(?P<driver>[\w-]{1,32}) (?P<device><bdf>): [\d.]{1,10} Gb/s available PCIe bandwidth, limited by "
        r"[\d.]{1,6} GT/s PCIe x(?P<width>\d{1,2}) link at \S{1,20} \(capable of [\d.]{1,10} Gb/s with [\d.]{1,6} GT/s "
        r"PCIe x(?P<capable>\d{1,2}) link\)",
        "PCIe bandwidth",
        _bandwidth,
    ),
)
