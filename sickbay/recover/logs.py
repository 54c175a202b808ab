"""What the end of a rank's log shows: a kind of cause, and a line that tells this failure from others.

One table, after the evidence classes of published recovery systems. A line has to *say* it: the name of a component
alone convicts nobody, and advice ("consider CUDA_LAUNCH_BLOCKING=1") is no finding. Timeouts of collectives and broken
connections are symptoms: some peer was gone first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

TAIL = 200
"""Lines of a log that are looked at, from its end."""


class Shows(StrEnum):
    HARDWARE = "Hardware"
    WORKLOAD = "Workload"
    SHARED = "Shared"
    SYMPTOM = "Symptom"
    NOTHING = ""


@dataclass(frozen=True)
class Reading:
    """What a log shows, and the line that shows it."""

    shows: Shows = Shows.NOTHING
    line: str = ""


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns), re.IGNORECASE)


_NOISE = _any(
    r"CUDA_LAUNCH_BLOCKING", r"For debugging consider", r"Compile with `?TORCH_USE_CUDA_DSA", r"previous error"
)
_TABLE: tuple[tuple[Shows, re.Pattern[str]], ...] = (
    (
        Shows.HARDWARE,
        _any(
            r"uncorrectable (NVLink|ECC) error",
            r"uncorrectable ECC",
            r"GPU has fallen off the bus",
            r"GPU is lost",
            r"unspecified launch failure.*ECC",
            r"CUDA error: .*(hardware stack error|device hardware)",
            r"cudaErrorECCUncorrectable",
            r"No CUDA-capable device is detected",
            r"driver/library version mismatch",
        ),
    ),
    (
        Shows.WORKLOAD,
        _any(
            r"CUDA out of memory",
            r"\bOutOfMemoryError\b",
            r"\b(ValueError|KeyError|TypeError|AttributeError|IndexError|NameError|AssertionError)\b",
            r"\b(ModuleNotFoundError|ImportError|FileNotFoundError|SyntaxError|NotImplementedError)\b",
            r"PermissionError",
            r"device-side assert triggered",
            r"size mismatch for",
            r"shape mismatch",
            r"mat1 and mat2 shapes cannot be multiplied",
            r"Missing key\(s\) in state_dict",
            r"unrecognized arguments?:",
        ),
    ),
    (
        Shows.SHARED,
        _any(
            r"No space left on device",
            r"Stale file handle",
            r"Disk quota exceeded",
            r"Input/output error",
            r"nfs: server .* not responding",
        ),
    ),
    (
        Shows.SYMPTOM,
        _any(
            r"Watchdog caught collective operation timeout",
            r"ProcessGroupNCCL.*(ran into error|timed? ?out)",
            r"NCCL (error|WARN).*(timeout|unhandled system error|remote error|internal error)",
            r"ncclSystemError",
            r"ncclRemoteError",
            r"ncclInternalError",
            r"NET/IB\b.*(error|async event)",
            r"connection reset by peer",
            r"connection refused",
            r"rendezvous.*(timeout|failed|closed)",
            r"Socket Timeout",
        ),
    ),
)
_ERROR = re.compile(r"\b\w*(error|exception|fatal|abort|panic)\w*\b", re.IGNORECASE)


def read(text: str) -> Reading:
    """The strongest finding in the tail of a log: hardware before workload before shared before symptoms.

    Within one class the last line counts: a traceback ends with what it is about.
    """
    lines = [line.strip() for line in text.splitlines()[-TAIL:]]
    lines = [line for line in lines if line and not _NOISE.search(line)]
    for shows, pattern in _TABLE:
        found = [line for line in lines if pattern.search(line)]
        if found:
            return Reading(shows, found[-1])
    errors = [line for line in lines if _ERROR.search(line)]
    return Reading(Shows.NOTHING, errors[-1] if errors else "")


_VARIABLE = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE), "#"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b"), "#"),
    (re.compile(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.\d)?\b", re.IGNORECASE), "#"),
    (re.compile(r"0x[0-9a-f]+", re.IGNORECASE), "#"),
    (re.compile(r"\d+(?:\.\d+)?"), "#"),
)


def without_place(line: str, places: frozenset[str]) -> str:
    """The line with nodes, pods, addresses, devices and numbers taken out: the same failure reads the same anywhere."""
    for place in sorted(places, key=len, reverse=True):
        line = re.sub(rf"(?<![\w-]){re.escape(place)}(?![\w-])", "@", line)
    for pattern, mark in _VARIABLE:
        line = pattern.sub(mark, line)
    return re.sub(r"\s+", " ", line).strip()
