"""Columns of built-in kinds, after kubernetes/pkg/printers/internalversion/printers.go."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sickbay.apiserver.columns import AGE, NAME, UNKNOWN, Column, age
from sickbay.apiserver.errors import Obj

NONE = "<none>"


def at(obj: Obj, *path: str, default: Any = None) -> Any:
    """The value at a path of keys, or `default`."""
    value: Any = obj
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return default if value is None else value


def column(name: str, *path: str, default: Any = NONE, kind: str = "string", wide: bool = False) -> Column:
    return Column(name, kind, lambda obj, now: at(obj, *path, default=default), priority=int(wide))


def condition(obj: Obj, kind: str) -> str:
    for entry in at(obj, "status", "conditions", default=[]):
        if entry.get("type") == kind:
            return str(entry.get("status", ""))
    return ""


def node_status(node: Obj, now: datetime) -> str:
    state = {"True": "Ready", "False": "NotReady"}.get(condition(node, "Ready"), "")
    words = [state or "Unknown"]
    if condition(node, "Ready") == "Unknown":
        words = ["NotReady"]
    if at(node, "spec", "unschedulable", default=False):
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
        for entry in at(node, "status", "addresses", default=[]):
            if entry.get("type") == kind:
                return str(entry.get("address", NONE))
        return NONE

    return cell


def _info(name: str, field: str) -> Column:
    return Column(
        name, "string", lambda node, now: at(node, "status", "nodeInfo", field, default="") or UNKNOWN, priority=1
    )


def _kernel(node: Obj, now: datetime) -> str:
    version = at(node, "status", "nodeInfo", "kernelVersion", default="") or UNKNOWN
    architecture = at(node, "status", "nodeInfo", "architecture", default="")
    return f"{version} ({architecture})" if architecture else str(version)


_NODE = [
    NAME,
    Column("Status", "string", node_status),
    Column("Roles", "string", node_roles),
    AGE,
    Column("Version", "string", lambda node, now: at(node, "status", "nodeInfo", "kubeletVersion", default="")),
    Column("Internal-IP", "string", _address("InternalIP"), priority=1),
    Column("External-IP", "string", _address("ExternalIP"), priority=1),
    _info("OS-Image", "osImage"),
    Column("Kernel-Version", "string", _kernel, priority=1),
    _info("Container-Runtime", "containerRuntimeVersion"),
]


def pod_ready(pod: Obj, now: datetime) -> str:
    total = len(at(pod, "spec", "containers", default=[]))
    ready = sum(entry.get("ready") is True for entry in at(pod, "status", "containerStatuses", default=[]))
    return f"{ready}/{total}"


def pod_status(pod: Obj, now: datetime) -> str:
    reason = at(pod, "status", "reason", default="") or at(pod, "status", "phase", default="")
    for entry in reversed(at(pod, "status", "containerStatuses", default=[])):
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
        return UNKNOWN if at(pod, "status", "reason") == "NodeLost" else "Terminating"
    return str(reason)


def _restarts(pod: Obj, now: datetime) -> str:
    return str(sum(entry.get("restartCount", 0) for entry in at(pod, "status", "containerStatuses", default=[])))


def _readiness_gates(pod: Obj, now: datetime) -> str:
    gates = at(pod, "spec", "readinessGates", default=[])
    if not gates:
        return NONE
    met = sum(condition(pod, gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"


_POD = [
    NAME,
    Column("Ready", "string", pod_ready),
    Column("Status", "string", pod_status),
    Column("Restarts", "string", _restarts),
    AGE,
    column("IP", "status", "podIP", wide=True),
    column("Node", "spec", "nodeName", wide=True),
    column("Nominated Node", "status", "nominatedNodeName", wide=True),
    Column("Readiness Gates", "string", _readiness_gates, priority=1),
]


def _last_seen(event: Obj, now: datetime) -> str:
    moment = (
        at(event, "series", "lastObservedTime")
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


def _source(event: Obj, now: datetime) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent", "")
    return ", ".join(filter(None, (component, source.get("host", "") or event.get("reportingInstance", ""))))


def _first_seen(event: Obj, now: datetime) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"), now)


def _event_count(event: Obj, now: datetime) -> int:
    return int(at(event, "series", "count") or event.get("count") or 1)


_EVENT = [
    Column("Last Seen", "string", _last_seen),
    column("Type", "type", default=""),
    column("Reason", "reason", default=""),
    Column("Object", "string", _involved),
    column("Subobject", "involvedObject", "fieldPath", default="", wide=True),
    Column("Source", "string", _source, priority=1),
    Column("Message", "string", _message),
    Column("First Seen", "string", _first_seen, priority=1),
    Column("Count", "string", _event_count, priority=1),
    Column("Name", "string", lambda event, now: event["metadata"]["name"], format="name", priority=1),
]


def count(*path: str) -> Any:
    return lambda obj, now: at(obj, *path, default=0)


_BUDGET = [
    NAME,
    column("Min Available", "spec", "minAvailable", default="N/A"),
    column("Max Unavailable", "spec", "maxUnavailable", default="N/A"),
    Column("Allowed Disruptions", "integer", count("status", "disruptionsAllowed")),
    AGE,
]


def _subjects(kind: str) -> Any:
    def cell(binding: Obj, now: datetime) -> str:
        found = [entry for entry in binding.get("subjects") or () if entry.get("kind") == kind]
        return ", ".join(
            f"{entry['namespace']}/{entry['name']}" if entry.get("namespace") else entry["name"] for entry in found
        )

    return cell


def _role_ref(binding: Obj, now: datetime) -> str:
    return f"{at(binding, 'roleRef', 'kind', default='')}/{at(binding, 'roleRef', 'name', default='')}"


_BINDING = [
    NAME,
    Column("Role", "string", _role_ref),
    AGE,
    Column("Users", "string", _subjects("User"), priority=1),
    Column("Groups", "string", _subjects("Group"), priority=1),
    Column("ServiceAccounts", "string", _subjects("ServiceAccount"), priority=1),
]

_PRIORITY_CLASS = [
    NAME,
    Column("Value", "integer", count("value")),
    Column("Global-Default", "boolean", lambda obj, now: bool(obj.get("globalDefault"))),
    AGE,
    column("PreemptionPolicy", "preemptionPolicy", default="PreemptLowerPriority"),
]


def _data(obj: Obj, now: datetime) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


PRINTERS: dict[str, list[Column]] = {
    "nodes": _NODE,
    "pods": _POD,
    "events": _EVENT,
    "namespaces": [NAME, column("Status", "status", "phase", default=""), AGE],
    "configmaps": [NAME, Column("Data", "string", _data), AGE],
    "secrets": [NAME, column("Type", "type", default=""), Column("Data", "string", _data), AGE],
    "serviceaccounts": [NAME, AGE],
    "leases.coordination.k8s.io": [NAME, column("Holder", "spec", "holderIdentity", default=""), AGE],
    "poddisruptionbudgets.policy": _BUDGET,
    "priorityclasses.scheduling.k8s.io": _PRIORITY_CLASS,
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
}
