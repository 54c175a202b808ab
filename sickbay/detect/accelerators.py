"""Accelerators of other vendors: AMD, Intel, Habana, Ascend."""

from __future__ import annotations

import re

from sickbay.detect.finding import (
    DUPLICATE,
    ISOLATE_HW,
    ISOLATE_REBOOT,
    ISOLATE_RESET,
    NOTHING,
    OBSERVE,
    RESTART_APP,
    Finding,
    rule,
    says,
)

_AMD = r"amdgpu(?: (?P<device><bdf>))?: (?:amdgpu: )?(?:\[powerplay\] )?(?:\{\d{1,9}\})?"


def _ras_count(match: re.Match[str], booting: bool) -> Finding:
    """`2 uncorrectable hardware errors detected in umc block`; a total of 0 is a report, no fault."""
    if int(match["count"]) == 0:
        return NOTHING
    if match["kind"] == "uncorrectable":
        return Finding("amd.ras.uncorrectable", ISOLATE_REBOOT, match["device"], family="gpu")
    return Finding("amd.ras.correctable", OBSERVE, match["device"])


_AMD_RULES = (
    rule(
        rf"{_AMD}uncorrectable hardware error\s?\(",
        "mdgpu",
        says("amd.ras.uncorrectable", ISOLATE_REBOOT, family="gpu"),
    ),
    rule(
        rf"{_AMD}(?:socket: .{{0,80}}?)?(?P<count>\d{{1,9}}) (?:new )?(?P<kind>uncorrectable|correctable) "
        r"hardware errors? detected",
        "mdgpu",
        _ras_count,
    ),
    rule(
        rf"{_AMD}\[Hardware Error\]: Accelerator Check Architecture events logged",
        "mdgpu",
        says("amd.ras.aca-logged", OBSERVE),
    ),
    rule(
        rf"(?:{_AMD}|\[drm:amdgpu_ras_\w{{1,60}} \[amdgpu\]\] )(?:\*ERROR\* )?"
        r"(?:Saved bad pages \d{1,9} reaches threshold|RAS records:\d{1,9} (?:exceed|reaches) threshold)",
        "mdgpu",
        says("amd.ras.bad-pages", ISOLATE_HW, family="gpu"),
    ),
    rule(
        rf"{_AMD}device lost from bus",
        "mdgpu",
        says("amd.device-lost", ISOLATE_REBOOT, family="gpu"),
    ),
    rule(rf"{_AMD}GPU reset begin", "mdgpu", says("amd.gpu-reset", OBSERVE)),
    rule(
        rf"{_AMD}GPU reset(?:\(\d{{1,6}}\))? succeeded",
        "mdgpu",
        says("amd.gpu-reset-ok", RESTART_APP),
    ),
    rule(
        rf"{_AMD}(?:GPU reset(?:\(\d{{1,6}}\))? failed|GPU Recovery Failed|GPU reset end with ret = -"
        r"|ASIC reset failed)",
        "mdgpu",
        says("amd.gpu-reset-failed", ISOLATE_REBOOT, family="gpu"),
    ),
    rule(
        rf"{_AMD}(?:MES might be in unrecoverable state|MES failed to respon[ds]e? )",
        "mdgpu",
        says("amd.mes-hang", RESTART_APP),
    ),
    rule(
        r"\[drm:mes_\S{1,120} \[amdgpu\]\] \*ERROR\* MES failed to respon",
        "mdgpu",
        says("amd.mes-hang", RESTART_APP),
    ),
    rule(
        rf"{_AMD}(?:[Ff]ailed to send message 0x[0-9a-fA-F]{{1,4}},? response 0x"
        r"|SMU: I'm not done with your previous command|SMU: response:0xF{8}|SMU: No response msg_reg)",
        "mdgpu",
        says("amd.smu-unresponsive", ISOLATE_REBOOT, family="gpu"),
    ),
    rule(
        rf"(?:{_AMD}|\[drm:amdgpu_job_timedout \[amdgpu\]\] )(?:\*ERROR\* )?ring \S{{1,32}} timeout",
        "mdgpu",
        says("amd.ring-timeout", RESTART_APP),
    ),
    rule(rf"{_AMD}\[\w{{1,16}}\] (?:no-retry |retry )?page fault \(", "mdgpu", says("amd.page-fault", RESTART_APP)),
    rule(rf"{_AMD}Fatal error during GPU init", "mdgpu", says("amd.init-failed", ISOLATE_REBOOT, family="gpu")),
)

_INTEL = r"(?:(?:i915|xe) (?P<device><bdf>): )?(?:\[drm\] )?(?:GT\d: )?"

_INTEL_RULES = (
    rule(rf"{_INTEL}GPU HANG: ecode", "GPU HANG", says("intel.gpu-hang", RESTART_APP)),
    rule(rf"{_INTEL}Timedout job: seqno=", "Timedout job", says("intel.gpu-hang", RESTART_APP)),
    rule(
        r"(?:(?:i915|xe) (?P<device><bdf>)|drm/i915): (?:\[drm\] )?(?:GT\d: )?"
        r"(?:Resetting \S{1,16} (?:after|for) |Engine reset: )",
        ("Resetting", "Engine reset"),
        says("intel.gpu-reset", OBSERVE),
    ),
    rule(
        rf"{_INTEL}\*ERROR\* .{{0,80}}(?:reset request timed out|Failed to reset chip|Engine reset failed)",
        "*ERROR*",
        says("intel.gpu-reset-failed", ISOLATE_REBOOT, family="gpu"),
    ),
)

_HABANA = r"habanalabs (?:(?P<device><bdf>|hl\d{1,3})): (?:accel\d{1,3}: )?"

_HABANA_RULES = (
    rule(
        rf"{_HABANA}Failed to communicate with Device CPU",
        "banalabs",
        says("habana.device-cpu-timeout", ISOLATE_REBOOT, family="gpu"),
    ),
    rule(
        rf"{_HABANA}Failed to initialize \S{{1,16}} Device is NOT usable",
        "banalabs",
        says("habana.init-failed", ISOLATE_REBOOT, family="gpu"),
    ),
    rule(
        rf"{_HABANA}(?:Device heartbeat failed|.{{0,60}}heartbeat.{{0,40}}(?:fail|lost|timeout))",
        "banalabs",
        says("habana.heartbeat-lost", ISOLATE_REBOOT, family="gpu"),
    ),
)


def _abnormal(match: re.Match[str], booting: bool) -> Finding:
    return Finding("ascend.device-abnormal", ISOLATE_RESET, _davinci(match), family="gpu")


def _abnormal_consequence(match: re.Match[str], booting: bool) -> Finding:
    return Finding("ascend.device-abnormal", DUPLICATE, _davinci(match), family="gpu", alone=ISOLATE_RESET)


def _davinci(match: re.Match[str]) -> str | None:
    found = re.search(r"dev(?:_?id)?=(\d{1,4})", match["text"])
    return f"davinci{found[1]}" if found else None


_ASCEND_RULES = (
    rule(r"\[ascend\] .{0,200}?Device is abnormal(?P<text>.*)", "[ascend]", _abnormal),
    rule(
        r"\[ascend\] .{0,200}?(?:heartbeat).{0,80}(?:lost|abnormal|timeout)(?P<text>.*)",
        "[ascend]",
        _abnormal,
    ),
    rule(r"\[ascend\] .{0,200}?send_msg unsuccessful(?P<text>.*)", "[ascend]", _abnormal_consequence),
)

RULES = _AMD_RULES + _INTEL_RULES + _HABANA_RULES + _ASCEND_RULES
