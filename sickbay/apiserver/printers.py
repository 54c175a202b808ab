"""Columns of built-in kinds, after kubernetes/pkg/printers/internalversion/printers.go."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sickbay.apiserver.columns import AGE, NAME, UNKNOWN, Column, age
from sickbay.apiserver.errors import Obj

NONE = "<none>"


def _path(obj: Obj, *path: str, default: Any = None) -> Any:
    value: Any = obj
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return default if value is None else value


def _column(name: str, *path: str, default: Any = NONE, kind: str = "string", wide: bool = False) -> Column:
    return Column(name, kind, lambda obj, now: _path(obj, *path, default=default), priority=int(wide))


def _condition(obj: Obj, kind: str) -> str:
    for entry in _path(obj, "status", "conditions", default=[]):
        if entry.get("type") == kind:
            return str(entry.get("status", ""))
    return ""


def node_status(node: Obj, now: datetime) -> str:
    state = {"True": "Ready", "False": "NotReady"}.get(_condition(node, "Ready"), "")
    words = [state or "Unknown"]
    if _condition(node, "Ready") == "Unknown":
        words = ["NotReady"]
    if _path(node, "spec", "unschedulable", default=False):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(node: Obj, now: datetime) -> str:
    prefix, single = "node-role.kubernetes.io/", "kubernetes.io/role"
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix}
    if labels.get(single):
        roles.add(labels[single])
    return ",".join(sorted(roles)) or NONE


def _address(kind: str) -> Any:
    def cell(node: Obj, now: datetime) -> str:
        for entry in _path(node, "status", "addresses", default=[]):
            if entry.get("type") == kind:
                return str(entry.get("address", NONE))
        return NONE

    return cell


def _info(name: str, field: str) -> Column:
    return Column(
        name, "string", lambda node, now: _path(node, "status", "nodeInfo", field, default="") or UNKNOWN, priority=1
    )


_NODE = [
    NAME,
    Column("Status", "string", node_status),
    Column("Roles", "string", node_roles),
    AGE,
    Column("Version", "string", lambda node, now: _path(node, "status", "nodeInfo", "kubeletVersion", default="")),
    Column("Internal-IP", "string", _address("InternalIP"), priority=1),
    Column("External-IP", "string", _address("ExternalIP"), priority=1),
    _info("OS-Image", "osImage"),
    _info("Kernel-Version", "kernelVersion"),
    _info("Container-Runtime", "containerRuntimeVersion"),
]


def pod_ready(pod: Obj, now: datetime) -> str:
    total = len(_path(pod, "spec", "containers", default=[]))
    ready = sum(entry.get("ready") is True for entry in _path(pod, "status", "containerStatuses", default=[]))
    return f"{ready}/{total}"


def pod_status(pod: Obj, now: datetime) -> str:
    reason = _path(pod, "status", "reason", default="") or _path(pod, "status", "phase", default="")
    for entry in reversed(_path(pod, "status", "containerStatuses", default=[])):
        state = entry.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif ended.get("reason"):
            reason = ended["reason"]
        elif ended:
            signal = ended.get("signal")
            reason = f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"
    if pod["metadata"].get("deletionTimestamp"):
        return UNKNOWN if _path(pod, "status", "reason") == "NodeLost" else "Terminating"
    return str(reason)


def _restarts(pod: Obj, now: datetime) -> str:
    return str(sum(entry.get("restartCount", 0) for entry in _path(pod, "status", "containerStatuses", default=[])))


def _readiness_gates(pod: Obj, now: datetime) -> str:
    gates = _path(pod, "spec", "readinessGates", default=[])
    if not gates:
        return NONE
    met = sum(_condition(pod, gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"


_POD = [
    NAME,
    Column("Ready", "string", pod_ready),
    Column("Status", "string", pod_status),
    Column("Restarts", "string", _restarts),
    AGE,
    _column("IP", "status", "podIP", wide=True),
    _column("Node", "spec", "nodeName", wide=True),
    _column("Nominated Node", "status", "nominatedNodeName", wide=True),
    Column("Readiness Gates", "string", _readiness_gates, priority=1),
]


def _last_seen(event: Obj, now: datetime) -> str:
    moment = (
        _path(event, "series", "lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event.get("firstTimestamp")
    )
    return age(moment, now)


def _involved(event: Obj, now: datetime) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _message(event: Obj, now: datetime) -> str:
    return str(event.get("message", "")).strip()


_EVENT = [
    Column("Last Seen", "string", _last_seen),
    _column("Type", "type", default=""),
    _column("Reason", "reason", default=""),
    Column("Object", "string", _involved),
    Column("Message", "string", _message),
    Column("Name", "string", lambda event, now: event["metadata"]["name"], format="name", priority=1),
]


def _count(*path: str) -> Any:
    return lambda obj, now: _path(obj, *path, default=0)


_DAEMON_SET = [
    NAME,
    Column("Desired", "integer", _count("status", "desiredNumberScheduled")),
    Column("Current", "integer", _count("status", "currentNumberScheduled")),
    Column("Ready", "integer", _count("status", "numberReady")),
    Column("Up-to-date", "integer", _count("status", "updatedNumberScheduled")),
    Column("Available", "integer", _count("status", "numberAvailable")),
    AGE,
]


def _job_status(job: Obj, now: datetime) -> str:
    if _condition(job, "Complete") == "True":
        return "Complete"
    if _condition(job, "Failed") == "True":
        return "Failed"
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if _condition(job, "Suspended") == "True":
        return "Suspended"
    return "FailureTarget" if _condition(job, "FailureTarget") == "True" else "Running"


def _completions(job: Obj, now: datetime) -> str:
    wanted = _path(job, "spec", "completions")
    done = _path(job, "status", "succeeded", default=0)
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = _path(job, "spec", "parallelism", default=0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


_JOB = [NAME, Column("Status", "string", _job_status), Column("Completions", "string", _completions), AGE]

_BUDGET = [
    NAME,
    _column("Min Available", "spec", "minAvailable", default="N/A"),
    _column("Max Unavailable", "spec", "maxUnavailable", default="N/A"),
    Column("Allowed Disruptions", "integer", _count("status", "disruptionsAllowed")),
    AGE,
]

PRINTERS: dict[str, list[Column]] = {
    "nodes": _NODE,
    "pods": _POD,
    "events": _EVENT,
    "namespaces": [NAME, _column("Status", "status", "phase", default=""), AGE],
    "daemonsets.apps": _DAEMON_SET,
    "jobs.batch": _JOB,
    "poddisruptionbudgets.policy": _BUDGET,
    "leases.coordination.k8s.io": [NAME, _column("Holder", "spec", "holderIdentity", default=""), AGE],
    "configmaps": [NAME, Column("Data", "string", lambda obj, now: len(obj.get("data") or {})), AGE],
}
