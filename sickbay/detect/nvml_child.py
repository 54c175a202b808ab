"""The process that talks to NVML: one line in on standard input asks for a look, lines out tell how it goes.

A call of NVML may never return: the process is then stuck in the kernel and cannot even be killed. So it is a process
of its own, started by `nvml.py`, and says before each GPU where it is:

    {"at": "0000:3b:00.0"}      about to look at this GPU
    {"gpu": {...}}              what was found, fields as in `GpuStatus`
    {"done": {...}}             end of the look: {"error": "..."} or {"versionMismatch": true} where there was one

Run as a script, so that it imports the standard library and `pynvml` (package nvidia-ml-py) and nothing of Sickbay.
NVML is closed after each look: an open handle would keep a GPU from being reset.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

RECOVERY_ACTION = 230
"""NVML_FI_DEV_GET_GPU_RECOVERY_ACTION (nvidia-ml-py 13.615)."""
LOST, RESET_REQUIRED, VERSION_MISMATCH = 15, 16, 18
"""NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED, NVML_ERROR_LIB_RM_VERSION_MISMATCH."""
LINKS = 36
"""NVML_NVLINK_MAX_LINKS."""
FABRIC_STATES = {0: "NotSupported", 1: "NotStarted", 2: "InProgress", 3: "Completed"}
UNCORRECTED, VOLATILE = 1, 0
"""NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC."""

Line = dict[str, Any]


def look(nvml: ModuleType) -> Iterator[Line]:
    """One look at every GPU."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        if _code(error) == VERSION_MISMATCH:
            yield {"done": {"versionMismatch": True}}
        else:
            yield {"done": {"error": f"NVML cannot be initialised: {error}"}}
        return
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            yield from _gpu(nvml, index)
        yield {"done": {"versionMismatch": False}}
    except nvml.NVMLError as error:
        yield {"done": {"error": str(error)}}
    finally:
        nvml.nvmlShutdown()


def _gpu(nvml: ModuleType, index: int) -> Iterator[Line]:
    yield {"at": ""}
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        pci = _text(nvml.nvmlDeviceGetPciInfo(handle).busId)
    except nvml.NVMLError:
        return  # one that cannot even be named is missing in the count
    yield {"at": pci}
    yield {"gpu": {"pci": pci, "index": index, **_state(nvml, handle)}}


def _state(nvml: ModuleType, handle: Any) -> Line:
    """What can be read. A call that this driver or card does not have leaves its field out."""
    found: Line = {"lost": False, "reset_required": False}
    for names, read in _READERS:
        try:
            value = read(nvml, handle)
        except nvml.NVMLError as error:
            code = _code(error)
            found["lost"] = found["lost"] or code == LOST
            found["reset_required"] = found["reset_required"] or code == RESET_REQUIRED
            continue
        except AttributeError:
            continue  # an older binding
        found.update(zip(names, value if isinstance(value, tuple) else (value,), strict=True))
    if found["lost"]:
        # What a lost GPU answers otherwise is noise.
        return {key: found[key] for key in ("lost", "uuid", "serial") if key in found}
    return found


def _recovery_action(nvml: ModuleType, handle: Any) -> int | None:
    field = nvml.nvmlDeviceGetFieldValues(handle, [RECOVERY_ACTION])[0]
    return int(field.value.uiVal) if field.nvmlReturn == 0 else None


def _remapped(nvml: ModuleType, handle: Any) -> tuple[bool, bool]:
    _, _, pending, failure = nvml.nvmlDeviceGetRemappedRows(handle)
    return bool(pending), bool(failure)


def _sram(nvml: ModuleType, handle: Any) -> bool:
    status = nvml.c_nvmlEccSramErrorStatus_v1_t()
    nvml.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    return bool(status.bThresholdExceeded)


def _links_up(nvml: ModuleType, handle: Any) -> int | None:
    """NVLinks that are up; None on a card without any."""
    up, seen = 0, False
    for link in range(LINKS):
        try:
            up += int(nvml.nvmlDeviceGetNvLinkState(handle, link))
            seen = True
        except nvml.NVMLError as error:
            if _code(error) in (LOST, RESET_REQUIRED):
                raise
    return up if seen else None


def _fabric(nvml: ModuleType, handle: Any) -> tuple[str, int | None]:
    info = nvml.c_nvmlGpuFabricInfo_v3_t()
    nvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
    state = FABRIC_STATES.get(int(info.state), "")
    return state, int(info.healthMask) if state == "Completed" else None


_READERS: tuple[tuple[tuple[str, ...], Callable[[ModuleType, Any], Any]], ...] = (
    (("uuid",), lambda n, h: _text(n.nvmlDeviceGetUUID(h))),
    (("serial",), lambda n, h: _text(n.nvmlDeviceGetSerial(h))),
    (("recovery_action",), _recovery_action),
    (("row_remap_pending", "row_remap_failure"), _remapped),
    (("ecc_volatile_uncorrectable",), lambda n, h: int(n.nvmlDeviceGetTotalEccErrors(h, UNCORRECTED, VOLATILE))),
    (("sram_threshold_exceeded",), _sram),
    (("pcie_width",), lambda n, h: int(n.nvmlDeviceGetCurrPcieLinkWidth(h))),
    (("pcie_width_max",), lambda n, h: int(n.nvmlDeviceGetMaxPcieLinkWidth(h))),
    (("nvlinks_up",), _links_up),
    (("fabric_state", "fabric_health"), _fabric),
    (("temperature_margin",), lambda n, h: int(n.nvmlDeviceGetMarginTemperature(h))),
)


def _code(error: Any) -> int:
    return int(getattr(error, "value", -1))


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


def main() -> None:
    try:
        import pynvml as nvml  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        nvml = None
    for _ in sys.stdin:
        missing = {"done": {"error": "the Python package nvidia-ml-py is not installed"}}
        for line in look(nvml) if nvml is not None else [missing]:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
