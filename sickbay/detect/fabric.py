"""The fabric health mask of NVML and DCGM: two-bit fields, of which 1 means a fault and 2 means all is well.

Compared with zero it reads as a fault on every healthy rack (a released detector did that). nvml.h,
NVML_GPU_FABRIC_HEALTH_MASK_*.
"""

from __future__ import annotations

_FIELDS = (
    ("degraded bandwidth", 0),
    ("route recovery", 2),
    ("route unhealthy", 4),
    ("access timeout recovery", 6),
)
_CONFIGURATION = 8
_WRONG = {
    2: "wrong system GUID",
    3: "wrong chassis serial number",
    4: "no partition",
    5: "insufficient NVLinks",
    6: "incompatible GPU firmware",
    7: "invalid location",
    8: "invalid state",
}
"""Values of the four-bit field for a wrong configuration: 0 = not supported, 1 = none."""
_TRUE = 1


def faults(mask: int | None) -> list[str]:
    """Names of what the mask reports as faulty; none for a mask that cannot be read."""
    if mask is None:
        return []
    found = [name for name, shift in _FIELDS if mask >> shift & 0b11 == _TRUE]
    wrong = _WRONG.get(mask >> _CONFIGURATION & 0b1111)
    return [*found, wrong] if wrong else found
