"""Units that PID 1 reports as failed.

The text of a unit says that it failed just now, not that it is down: systemd may start it again. So these lines are
evidence; whether the service is down now the agent asks of systemd itself.
"""

from __future__ import annotations

import re

from sickbay.detect.finding import ISOLATE_NODE, OBSERVE, Finding, Writer, rule

_UNITS = {
    "nvidia-fabricmanager": ("service.fabricmanager-down", ISOLATE_NODE),
    "kubelet": ("service.kubelet", OBSERVE),
    "containerd": ("service.containerd", OBSERVE),
    "nvidia-persistenced": ("service.persistenced-down", OBSERVE),
    "nvidia-imex": ("service.imex-down", OBSERVE),
    "nv-hostengine": ("service.hostengine-down", OBSERVE),
    "nvidia-dcgm": ("service.hostengine-down", OBSERVE),
}
"""Fabric manager takes the node out only on a box with NVSwitch: elsewhere its failure is harmless (gpu-operator#610).
The agent knows the box; offline it is assumed to have one."""


_DESCRIPTIONS = {
    "NVIDIA fabric manager service": "nvidia-fabricmanager",
    "kubelet: The Kubernetes Node Agent": "kubelet",
    "containerd container runtime": "containerd",
    "NVIDIA Persistence Daemon": "nvidia-persistenced",
    "NVIDIA IMEX service": "nvidia-imex",
    "NVIDIA DCGM service": "nvidia-dcgm",
}
"""Description= of the unit files as packages ship them: before systemd 249 "Failed to start" prints nothing else."""


def _failed(match: re.Match[str], booting: bool) -> Finding | None:
    known = _UNITS.get(_DESCRIPTIONS.get(match["unit"], match["unit"]))
    if known is None:
        return None
    fault, verdict = known
    return Finding(fault, verdict, writer=Writer.SERVICE)


RULES = (
    rule(
        r"(?P<unit>[\w@.-]{1,64}?)\.service: (?:Failed with result"
        r"|(?:Control|Main) process exited, code=(?:exited, status=[1-9]|killed|dumped))",
        (", code=", "Failed with result"),
        _failed,
        writer=Writer.SERVICE,
    ),
    rule(
        rf"Failed to start (?P<unit>{'|'.join(map(re.escape, _DESCRIPTIONS))}|[\w@.-]{{1,64}}?)(?:\.service)?"
        r"(?: - .{1,80})?\.?\s*\Z",
        "Failed to start ",
        _failed,
        writer=Writer.SERVICE,
    ),
)
