"""`pynvml` as far as the child calls it, playing the GPUs of $FAKE_GPUS (JSON).

Each GPU is an object of the answers by function, such as {"nvmlDeviceGetUUID": "GPU-1"}; {"error": 15} is an NVML error
and {"hang": true} a call that does not come back. Functions that are not named are not supported.
"""

from __future__ import annotations

import json
import os
import threading
from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED = 3


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


def _play() -> dict[str, Any]:
    with open(os.environ["FAKE_GPUS"]) as file:
        found: dict[str, Any] = json.load(file)
    return found


def _answer(answer: Any) -> Any:
    if isinstance(answer, dict) and "error" in answer:
        raise NVMLError(answer["error"])
    if isinstance(answer, dict) and answer.get("hang"):
        threading.Event().wait()
    return answer


def _call(handle: int, name: str, default: Any = None) -> Any:
    gpu = _play()["gpus"][handle]
    return _answer(gpu.get(name, {"error": NOT_SUPPORTED} if default is None else default))


def nvmlInit() -> None:
    _answer(_play().get("init"))


def nvmlShutdown() -> None:
    return


def nvmlDeviceGetCount() -> int:
    return len(_play()["gpus"])


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    _call(index, "handle", True)
    return index


def nvmlDeviceGetPciInfo(handle: int) -> Any:
    return SimpleNamespace(busId=_call(handle, "pci").encode())


def nvmlDeviceGetUUID(handle: int) -> Any:
    return _call(handle, "nvmlDeviceGetUUID")


def nvmlDeviceGetSerial(handle: int) -> Any:
    return _call(handle, "nvmlDeviceGetSerial").encode()


def nvmlDeviceGetFieldValues(handle: int, fields: list[int]) -> Any:
    value = _call(handle, f"field {fields[0]}")
    return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=value))]


def nvmlDeviceGetRemappedRows(handle: int) -> Any:
    return tuple(_call(handle, "nvmlDeviceGetRemappedRows"))


def nvmlDeviceGetTotalEccErrors(handle: int, kind: int, counter: int) -> Any:
    assert (kind, counter) == (1, 0)
    return _call(handle, "nvmlDeviceGetTotalEccErrors")


def nvmlDeviceGetCurrPcieLinkWidth(handle: int) -> Any:
    return _call(handle, "nvmlDeviceGetCurrPcieLinkWidth")


def nvmlDeviceGetMaxPcieLinkWidth(handle: int) -> Any:
    return _call(handle, "nvmlDeviceGetMaxPcieLinkWidth")


def nvmlDeviceGetNvLinkState(handle: int, link: int) -> Any:
    links = _call(handle, "links")
    if link >= len(links):
        raise NVMLError(NOT_SUPPORTED)
    return links[link]
