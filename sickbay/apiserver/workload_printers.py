"""Columns of workloads, after kubernetes/pkg/printers/internalversion/printers.go."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sickbay.apiserver.columns import AGE, NAME, Column, age, human_duration
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.printers import NONE, at, condition, count
from sickbay.clock import parse_time


def selector_text(selector: Obj | None) -> str:
    """A label selector as people write it: `a=b,c in (d,e)`; `<none>` when it selects everything."""
    selector = selector or {}
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for entry in selector.get("matchExpressions") or ():
        key, values = entry["key"], ",".join(sorted(entry.get("values") or ()))
        shapes = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append(shapes.get(entry["operator"], f"!{key}"))
    return ",".join(parts) or NONE


def _of_containers(field: str) -> Any:
    def cell(obj: Obj, now: datetime) -> str:
        containers = at(obj, "spec", "template", "spec", "containers", default=[])
        return ",".join(str(container.get(field, "")) for container in containers)

    return cell


def _selector(obj: Obj, now: datetime) -> str:
    return selector_text(at(obj, "spec", "selector"))


_WIDE = [
    Column("Containers", "string", _of_containers("name"), priority=1),
    Column("Images", "string", _of_containers("image"), priority=1),
]
_SELECTOR = Column("Selector", "string", _selector, priority=1)


def _ready_of_desired(obj: Obj, now: datetime) -> str:
    return f"{at(obj, 'status', 'readyReplicas', default=0)}/{at(obj, 'spec', 'replicas', default=1)}"


def _node_selector(obj: Obj, now: datetime) -> str:
    chosen = at(obj, "spec", "template", "spec", "nodeSelector", default={})
    return ",".join(f"{key}={value}" for key, value in sorted(chosen.items())) or NONE


_DAEMON_SET = [
    NAME,
    Column("Desired", "integer", count("status", "desiredNumberScheduled")),
    Column("Current", "integer", count("status", "currentNumberScheduled")),
    Column("Ready", "integer", count("status", "numberReady")),
    Column("Up-to-date", "integer", count("status", "updatedNumberScheduled")),
    Column("Available", "integer", count("status", "numberAvailable")),
    Column("Node Selector", "string", _node_selector),
    AGE,
    *_WIDE,
    _SELECTOR,
]
_DEPLOYMENT = [
    NAME,
    Column("Ready", "string", _ready_of_desired),
    Column("Up-to-date", "string", count("status", "updatedReplicas")),
    Column("Available", "string", count("status", "availableReplicas")),
    AGE,
    *_WIDE,
    _SELECTOR,
]
_REPLICA_SET = [
    NAME,
    Column("Desired", "integer", lambda obj, now: at(obj, "spec", "replicas", default=1)),
    Column("Current", "integer", count("status", "replicas")),
    Column("Ready", "integer", count("status", "readyReplicas")),
    AGE,
    *_WIDE,
    _SELECTOR,
]


def _job_status(job: Obj, now: datetime) -> str:
    if condition(job, "Complete") == "True":
        return "Complete"
    if condition(job, "Failed") == "True":
        return "Failed"
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if condition(job, "Suspended") == "True":
        return "Suspended"
    if condition(job, "FailureTarget") == "True":
        return "FailureTarget"
    return "SuccessCriteriaMet" if condition(job, "SuccessCriteriaMet") == "True" else "Running"


def _completions(job: Obj, now: datetime) -> str:
    wanted = at(job, "spec", "completions")
    done = at(job, "status", "succeeded", default=0)
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = at(job, "spec", "parallelism", default=0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(job: Obj, now: datetime) -> str:
    started, ended = at(job, "status", "startTime"), at(job, "status", "completionTime")
    if not started:
        return ""
    return human_duration(parse_time(ended) - parse_time(started)) if ended else age(started, now)


_JOB = [
    NAME,
    Column("Status", "string", _job_status),
    Column("Completions", "string", _completions),
    Column("Duration", "string", _job_duration),
    AGE,
    *_WIDE,
    _SELECTOR,
]


def _last_schedule(cron: Obj, now: datetime) -> str:
    moment = at(cron, "status", "lastScheduleTime")
    return age(moment, now) if moment else NONE


_CRON_JOB = [
    NAME,
    Column("Schedule", "string", lambda cron, now: at(cron, "spec", "schedule", default="")),
    Column("Timezone", "string", lambda cron, now: at(cron, "spec", "timeZone", default=NONE)),
    Column("Suspend", "boolean", lambda cron, now: bool(at(cron, "spec", "suspend"))),
    Column("Active", "integer", lambda cron, now: len(at(cron, "status", "active", default=[]))),
    Column("Last Schedule", "string", _last_schedule),
    AGE,
]


def _ports(service: Obj, now: datetime) -> str:
    ports = at(service, "spec", "ports", default=[])
    return ",".join(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in ports) or NONE


def _service_selector(service: Obj, now: datetime) -> str:
    return selector_text({"matchLabels": at(service, "spec", "selector", default={})})


_SERVICE = [
    NAME,
    Column("Type", "string", lambda obj, now: at(obj, "spec", "type", default="ClusterIP")),
    Column("Cluster-IP", "string", lambda obj, now: at(obj, "spec", "clusterIP", default=NONE)),
    Column("External-IP", "string", lambda obj, now: at(obj, "spec", "externalName", default=NONE)),
    Column("Port(s)", "string", _ports),
    AGE,
    Column("Selector", "string", _service_selector, priority=1),
]

WORKLOAD_PRINTERS: dict[str, list[Column]] = {
    "daemonsets.apps": _DAEMON_SET,
    "deployments.apps": _DEPLOYMENT,
    "replicasets.apps": _REPLICA_SET,
    "replicationcontrollers": _REPLICA_SET,
    "statefulsets.apps": [NAME, Column("Ready", "string", _ready_of_desired), AGE, *_WIDE],
    "jobs.batch": _JOB,
    "cronjobs.batch": _CRON_JOB,
    "services": _SERVICE,
}
