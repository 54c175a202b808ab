"""Records of jobs, made from few words."""

from __future__ import annotations

from typing import Any

import msgspec

from sickbay.api.job_recovery import JobRecovery


def record(phase: str, attempt: int = 1, *, kind: str = "Job", uid: str = "u-1", **more: Any) -> JobRecovery:
    """A record in this phase whose last attempt has this number; `annotations` and parts of the status may follow."""
    meta = {"name": f"{kind.lower()}-llm", "namespace": "default", "annotations": more.pop("annotations", {})}
    spec = {"job": {"apiVersion": "batch/v1", "kind": kind, "name": "llm", "uid": uid}, "policy": "training"}
    status = {"phase": phase, "attempts": more.pop("attempts", [{"n": attempt}]), **more}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, JobRecovery)
