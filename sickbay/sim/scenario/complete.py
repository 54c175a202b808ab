"""Objects as the API describes them: with the value that a field has when nothing is written in it.

We write no field that is empty, and a record stands for a moment before its first status does. An expression speaks of
what the API says, `status.outcome != 'Repaired'` or `status.prior.unschedulable`, and must not fail because of that.
Only what the API gives a value is filled in: an open end stays absent, and so does a step that has not begun.
"""

from __future__ import annotations

from typing import Any

from sickbay.apiserver.errors import Obj

_REPAIR = {
    "phase": "Pending",
    "outcome": "",
    "needs": "",
    "message": "",
    "steps": {},
    "prior": {"unschedulable": False, "taints": [], "annotations": {}},
    "verdict": "",
    "notified": {},
    "conditions": [],
}
_REPORT: Obj = {"message": "", "proof": {}, "offers": [], "pods": []}
_POOL = {
    "conditions": [],
    "nodes": 0,
    "faulty": 0,
    "unavailable": 0,
    "slots": [],
    "breaker": {"state": "Closed", "trial": "", "reason": ""},
    "storms": [],
}
_RECOVERY = {
    "phase": "Running",
    "attempts": [],
    "suspects": [],
    "excluded": [],
    "gates": [],
    "moves": [],
    "fingerprint": "",
    "notified": {},
}
_ATTEMPT: Obj = {"placement": {}, "verdict": "", "evidence": [], "action": "", "times": {}}
_TASK = {"phase": "Pending", "proof": {}, "output": "", "message": ""}
_EVENT = {"phase": "Inquiring", "upstreamPhase": "", "terminal": False, "notified": {}, "conditions": []}
_STATUS: dict[str, Obj] = {
    "NodeRepair": _REPAIR,
    "RepairPool": _POOL,
    "JobRecovery": _RECOVERY,
    "NodeTask": _TASK,
    "InfraEvent": _EVENT,
}


def complete(obj: Obj) -> Obj:
    """The object with what it leaves out. A node of a real cluster always has labels and annotations."""
    if not obj:
        return obj
    obj = {**obj, "metadata": {"labels": {}, "annotations": {}, **obj["metadata"]}}
    kind = obj.get("kind", "")
    if kind not in _STATUS or not str(obj.get("apiVersion", "")).startswith("sickbay.dev/"):
        return obj
    status = _filled(obj.get("status") or {}, _STATUS[kind])
    if kind == "NodeRepair":
        status = {**status, "steps": {name: _step(step) for name, step in status["steps"].items()}}
        if status.get("current"):
            status["current"] = _filled(status["current"], {"waitsFor": ""})
    if kind == "JobRecovery":
        status["attempts"] = [_filled(attempt, _ATTEMPT) for attempt in status["attempts"]]
    return {**obj, "status": status}


def _step(step: Obj) -> Obj:
    filled = _filled(step, {"attempts": []})
    return {**filled, "report": _filled(filled["report"], _REPORT)} if filled.get("report") else filled


def _filled(value: Obj, defaults: Obj) -> Obj:
    filled: dict[str, Any] = {**defaults, **value}
    for key, default in defaults.items():
        if isinstance(default, dict) and isinstance(filled[key], dict):
            filled[key] = _filled(filled[key], default)
    return filled
