"""Lines of the NVIDIA driver and its tools that carry no XID."""

from __future__ import annotations

import re

from sickbay.detect.finding import (
    CLEAR,
    DUPLICATE,
    FOLLOW_CAUSE,
    IGNORE,
    ISOLATE_REBOOT,
    OBSERVE,
    REBOOT,
    REBOOT_AT_JOB_END,
    RESET_GPU,
    Cure,
    Finding,
    Writer,
    rule,
    says,
)

_NVRM = r"NVRM:?\s+"
_GPU = r"(?:GPU\d{1,3}\s+)?"

FIRMWARE_FETCH_FAILED = 0x61
"""First code of `RmInitAdapter failed! (0x61:..)`: the firmware file could not be loaded (open-gpu-kernel-modules
osinit.c). The card is well; the cause stands in the line before."""


def _init_failed(match: re.Match[str], booting: bool) -> Finding:
    code = match["code"]
    if code and int(code, 16) == FIRMWARE_FETCH_FAILED:
        return Finding(
            "gpu.init-failed", FOLLOW_CAUSE, match["device"], family="gpu", note="firmware missing; not the hardware"
        )
    return Finding("gpu.init-failed", ISOLATE_REBOOT, match["device"], family="gpu", note="repeat after reboot: repair")


def _assertion(match: re.Match[str], booting: bool) -> Finding:
    if "NV_ERR_RESET_REQUIRED" in match["text"]:
        return Finding("gpu.reset-required", RESET_GPU, family="gpu-unnamed")
    return Finding("gpu.driver.assert", OBSERVE)


def _mapping(match: re.Match[str], booting: bool) -> Finding:
    """Inventory: which UUID sits on which bus. After XID 79 nothing else can tell."""
    return Finding(None, IGNORE, match["device"], uuid=match["uuid"])


def _reset_tool(match: re.Match[str], booting: bool) -> Finding:
    """A reset tool's report for one UUID or one bus address; only an explicit `success: false` is a failure."""
    groups = match.groupdict()
    uuid, device = groups.get("uuid") or "", groups.get("device")
    if (groups.get("ok") or "true") == "false":
        return Finding("gpu.reset-failed", REBOOT, device, family="gpu", writer=Writer.TOOL, uuid=uuid)
    return Finding(
        "gpu.reset-done",
        CLEAR,
        device,
        writer=Writer.TOOL,
        uuid=uuid,
        cure=Cure("", uuid or device or "", reset=True),
    )


RULES = (
    rule(
        rf"{_NVRM}(?:The NVIDIA GPU (?P<device><bdf>)\b.{{0,400}}?)?(?:\(PCI ID: \S{{1,16}}\) )?"
        r"(?:installed in this system has )?fallen off the bus and is not responding",
        "NVRM",
        says("gpu.fallen-off-bus", ISOLATE_REBOOT, family="gpu"),
    ),
    rule(
        rf"{_NVRM}GPU (?:at )?(?:PCI:)?(?P<device><bdf>):?\s+(?:GPU\s+)?has fallen off the bus",
        "NVRM",
        says("gpu.xid.79", ISOLATE_REBOOT, family="gpu"),
    ),
    rule(rf"{_NVRM}GPU at (?:PCI:)?(?P<device><bdf>):\s+(?P<uuid>GPU-[0-9a-fA-F-]{{3,60}})", "NVRM", _mapping),
    rule(rf"{_NVRM}{_GPU}nv(?:Assert|Check)\w*:\s*(?P<text>(?:Assertion|Check) failed\b.*)", "NVRM", _assertion),
    rule(
        rf"{_NVRM}.{{0,200}}Reset required \[NV_ERR_RESET_REQUIRED\]",
        "NVRM",
        says("gpu.reset-required", RESET_GPU, family="gpu-unnamed"),
    ),
    rule(
        rf"{_NVRM}(?:GPU (?P<device><bdf>): )?RmInitAdapter failed!(?:\s*\(0x(?P<code>[0-9a-f]{{1,4}}):)?",
        "NVRM",
        _init_failed,
    ),
    rule(
        rf"{_NVRM}{_GPU}RmInitAdapter: Cannot initialize GSP firmware RM",
        "NVRM",
        says("gpu.init-failed", ISOLATE_REBOOT, family="gpu-unnamed"),
    ),
    rule(
        rf"{_NVRM}(?:GPU (?P<device><bdf>): )?rm_init_adapter failed",
        "NVRM",
        says("gpu.init-failed", DUPLICATE, family="gpu", alone=ISOLATE_REBOOT),
    ),
    rule(
        r"nvidia (?P<device><bdf>): Direct firmware load for nvidia/\S{1,200} failed with error",
        "Direct firmware load",
        says("gpu.driver.firmware-missing", REBOOT),
    ),
    rule(
        r"nvidia (?P<device><bdf>): loading /\S{0,200}nvidia/\S{1,200} failed with error",
        "vidia/",
        says("gpu.driver.firmware-missing", REBOOT),
    ),
    rule(
        rf"{_NVRM}.{{0,200}}(?:No firmware image found|[Ff]ailed to load firmware"
        r"|gsp\S{0,40}\.bin (?:not found|missing))",
        "NVRM",
        says("gpu.driver.firmware-missing", REBOOT),
    ),
    rule(
        r"Failed to initialize NVML: Driver/library version mismatch",
        "Failed to initialize NVML",
        says("gpu.driver.version-mismatch", REBOOT),
        writer=Writer.TOOL,
    ),
    rule(
        r"Unable to determine the device handle for GPU ?(?P<device><bdf>): GPU is lost",
        "GPU is lost",
        says("gpu.fallen-off-bus", ISOLATE_REBOOT, family="gpu"),
        writer=Writer.TOOL,
    ),
    rule(
        r"Unable to determine the device handle for GPU ?(?P<device><bdf>): GPU requires reset",
        "GPU requires reset",
        says("gpu.reset-required", RESET_GPU, family="gpu"),
        writer=Writer.TOOL,
    ),
    rule(rf"{_NVRM}API mismatch:", "NVRM", says("gpu.driver.version-mismatch", REBOOT)),
    rule(
        rf"{_NVRM}{_GPU}_?kgspIsHeartbeatTimedOut\w*:",
        "NVRM",
        says("gpu.gsp.heartbeat-lost", RESET_GPU, family="gpu-unnamed"),
    ),
    rule(
        rf"{_NVRM}{_GPU}_?kgspRpcRecvPoll\w*: GSP RM heartbeat timed out",
        "NVRM",
        says("gpu.gsp.heartbeat-lost", DUPLICATE, family="gpu-unnamed", alone=RESET_GPU),
    ),
    rule(
        rf"{_NVRM}.{{0,100}}RC watchdog: GPU is probably locked",
        "NVRM",
        says("gpu.watchdog-locked", RESET_GPU, family="gpu-unnamed"),
    ),
    rule(
        r"nvidia-peermem \S{1,80}:\d{1,6} ERROR detected invalid context",
        "vidia-peermem",
        says("gpu.peermem.invalid-context", OBSERVE),
    ),
    rule(
        r"WARNING: infoROM is corrupted at gpu (?P<device><bdf>)",
        "ROM is corrupted",
        says("gpu.inforom.corrupt", REBOOT_AT_JOB_END, family="gpu"),
        writer=Writer.TOOL,
    ),
    rule(
        r"GPU reset executed: (?P<uuid>GPU-[0-9a-fA-F-]{3,60})(?:,\s*success:\s*(?P<ok>true|false))?",
        "GPU reset executed",
        _reset_tool,
        writer=Writer.TOOL,
    ),
    rule(
        r"GPU (?P<device><bdf>) was successfully reset",
        "was successfully reset",
        _reset_tool,
        writer=Writer.TOOL,
    ),
)
