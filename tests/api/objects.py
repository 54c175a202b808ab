"""Good and bad objects of every kind: one table for the API server and for our own judgement.

A bad object is a good one with a merge patch (RFC 7386, a list replaces a list). With `then` the object is created
first and the second patch must be refused: those are the rules that compare with what was there before.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from sickbay.api.patches import apply_merge

Json = dict[str, Any]


@dataclass(frozen=True)
class Good:
    """An object that must be accepted; `then` are status or spec patches that must be accepted after it."""

    id: str
    kind: str
    spec: Json
    then: tuple[tuple[str, Json], ...] = ()
    """(subresource, merge patch)."""

    def manifest(self, name: str) -> Json:
        return manifest(self.kind, name, self.spec)


@dataclass(frozen=True)
class Bad:
    """An object that must be refused, at `path` and with `text` in the message."""

    id: str
    kind: str
    patch: Json
    path: str
    text: str
    then: Json | None = field(default=None)
    subresource: str = ""
    status: Json | None = field(default=None)
    """Written through the status subresource before `then`."""

    def manifest(self, name: str) -> Json:
        made = manifest(self.kind, name, MINIMAL[self.kind])
        return apply_merge(made, copy.deepcopy(self.patch))


def manifest(kind: str, name: str, spec: Json) -> Json:
    metadata = {"name": name}
    if kind in ("RecoveryPolicy", "JobRecovery"):
        metadata["namespace"] = "default"
    return {
        "apiVersion": "sickbay.dev/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": copy.deepcopy(spec),
    }


NODE = {"name": "train-0", "uid": "0b1c2d3e-0000-4000-8000-000000000001", "bootID": "b1"}
ALL_FIVE = [{"step": s} for s in ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")]

MINIMAL: dict[str, Json] = {
    "RepairPool": {"nodeSelector": {"matchLabels": {"pool": "train"}}},
    "RepairRule": {"rules": [{"name": "all", "procedure": ALL_FIVE}]},
    "FaultType": {},
    "Hold": {"scope": {"nodes": ["train-0"]}},
    "NodeRepair": {"node": {"name": "train-0"}},
    "NodeTask": {"node": NODE, "action": "RebootNode", "key": "u/Repair/1", "expires": "2026-11-29T12:00:00Z"},
    "InfraEvent": {"source": "alibaba-ecs", "id": "e-1", "type": "SystemMaintenance.Reboot"},
    "RecoveryPolicy": {"jobSelector": {}},
    "JobRecovery": {"job": {"apiVersion": "batch/v1", "kind": "Job", "name": "llm"}, "policy": "default"},
}
"""The least that each kind takes."""


def procedure(*steps: Json) -> Json:
    return {"spec": {"rules": [{"name": "all", "procedure": list(steps)}]}}


def step(name: str, **settings: Any) -> Json:
    return {"step": name, **settings}


def skip(name: str) -> Json:
    return step(name, approval={"onTimeout": "Skip"})


def plan(*steps: Json, **more: Any) -> Json:
    return {"spec": {"plan": {"steps": list(steps), **more}}}


def match(*entries: Json) -> Json:
    return {"spec": {"match": list(entries)}}


FULL_POOL: Json = {
    "nodeSelector": {"matchLabels": {"pool": "train"}, "matchExpressions": []},
    "mode": "Observe",
    "rule": "default-gpu",
    "quarantine": {"taint": False},
    "maxParallelRepairs": 1,
    "maxParallelValidations": "10%",
    "maxUnavailable": "5%",
    "minInterval": "0s",
    "breaker": {"threshold": "20%", "maxNodes": 10, "cooldown": "15m", "reset": "Auto"},
    "storm": {"nodes": 5, "window": "60s"},
    "domains": [{"key": "sickbay.dev/rack", "size": 18, "minUsable": 16, "maxUnavailable": 1, "pacing": "Pack"}],
    "windows": [{"cron": "0 2 * * 1-5", "duration": "4h", "zone": "Asia/Shanghai", "kind": "Allow"}],
    "freezeOnFailure": False,
    "deviceIsolation": {"faults": [], "maxDevicesPerNode": 4, "maxNodes": "10%"},
    "budgets": {"perNode": {"repairs": 3, "window": "7d", "cooldown": "0s"}, "then": "RepairHardware"},
    "cancelHold": "24h",
    "allowControlPlane": False,
    "overrides": [{"faults": {"names": ["gpu.xid.79"]}, "mode": "Act"}],
    "provider": {"name": "agent", "config": {}},
    "localDataDisposable": False,
}

FULL_ENTRY: Json = {
    "name": "gpu-severe",
    "faults": {"names": [], "classes": ["GPU"], "severities": ["Critical"], "labels": {}},
    "procedure": [
        {
            "step": "Quarantine",
            "approval": {
                "by": "People",
                "timeout": "24h",
                "onTimeout": "Escalate",
                "reminders": ["15m", "1h", "4h"],
                "groups": [],
            },
            "before": [
                {"name": "save", "job": {"podTemplate": "save"}, "timeout": "10m", "onFailure": "Escalate"},
                {"name": "tell", "call": {"endpoint": "chat"}},
            ],
            "after": [],
        },
        {
            "step": "Drain",
            "timeout": "30m",
            "onTimeout": "Escalate",
            "options": {
                "scope": "All",
                "grace": {"min": "1s", "max": "10m"},
                "order": [{"selector": {"matchLabels": {"tier": "batch"}}, "priority": 0}],
                "waitFor": [{"selector": {"matchLabels": {"wait": "yes"}}, "timeout": "10m"}],
                "protect": [{"namespaces": ["kube-system"], "priorityClasses": ["system-node-critical"]}],
                "force": {"allowed": False},
            },
        },
        {"step": "Repair", "action": None, "allowUndrained": False},
        {"step": "Validate", "ceiling": None, "soak": None, "level": None},
        {"step": "Unquarantine"},
    ],
}

FULL_FAULT: Json = {
    "class": "GPU",
    "severity": "Critical",
    "scope": "Node",
    "domain": "",
    "match": [
        {"condition": {"type": "NvidiaXID79Error", "status": "True", "reason": "^.*$"}},
        {"cel": "node.metadata.labels[?'x'].orValue('') == 'bad'"},
        {"event": {"source": "npd", "reason": "Oops", "type": "Warning", "count": 1, "window": "10m"}},
        {"object": {"apiVersion": "a.b/v1", "kind": "C", "cel": "object.spec.bad", "node": "object.spec.node"}},
        {"alert": {"name": "GpuHot", "labels": {"team": "infra"}, "node": "instance"}},
    ],
    "for": "0s",
    "urgency": "Now",
    "ceiling": "24h",
    "isolateDevice": True,
    "remedy": [
        {"action": "RebootNode", "attempts": 1, "timeout": "15m"},
        {"action": "PowerCycle", "attempts": 1, "timeout": "20m"},
        {"action": "RepairHardware", "timeout": "14d"},
    ],
    "clearsBy": "reboot",
    "validation": {"ceiling": "30m", "soak": "5m", "level": 1, "checks": []},
    "labels": {},
}

FULL_REPAIR: Json = {
    "origin": "Fault",
    "node": {**NODE, "providerID": "aws:///us-east-1a/i-0abc", "serial": "S1"},
    "pool": {"name": "train", "uid": "p", "generation": 1},
    "rule": {"name": "default-gpu", "uid": "r", "generation": 1, "entry": "gpu-severe"},
    "catalogue": "1.0.0",
    "group": {"id": "", "leader": "", "members": []},
    "faults": [
        {
            "type": "gpu.xid.79",
            "devices": ["GPU-0"],
            "source": {"kind": "Condition", "id": "NvidiaXID79Error"},
            "firstSeen": "2026-11-29T12:00:00Z",
            "clearedAt": None,
            "evidence": ["NVRM: Xid (PCI:0000:3b:00): 79"],
        }
    ],
    "plan": {
        "generation": 1,
        "reason": "",
        "urgency": "Now",
        "isolate": [],
        "steps": [
            step("Quarantine", approval={}),
            step("Drain"),
            step("Repair", action="RebootNode"),
            step("Validate"),
            step("Unquarantine"),
        ],
    },
}

REPAIR_STATUS: Json = {
    "phase": "Running",
    "outcome": "",
    "needs": "",
    "message": "draining",
    "startedAt": "2026-11-29T12:00:00Z",
    "endedAt": None,
    "current": {
        "step": "Drain",
        "attempt": 1,
        "since": "2026-11-29T12:00:00Z",
        "deadline": "2026-11-29T12:30:00Z",
        "waitsFor": "",
        "onDeadline": "Escalate",
    },
    "steps": {
        "Drain": {
            "state": "Running",
            "report": {
                "attempt": 1,
                "planGeneration": 1,
                "term": 7,
                "state": "InProgress",
                "offers": [{"job": {"kind": "Job", "name": "llm"}, "until": "2026-11-29T12:01:00Z"}],
                "pods": [{"pod": "ml/a", "state": "Blocked", "why": "Busy", "pdb": "keep"}],
            },
        }
    },
    "prior": {"unschedulable": False, "taints": [], "annotations": {}},
    "verdict": "",
    "notified": {},
    "conditions": [{"type": "WouldQuarantine", "status": "False", "lastTransitionTime": "2026-11-29T12:00:00Z"}],
}

FULL_POLICY: Json = {
    "jobSelector": {"matchLabels": {}},
    "kinds": [],
    "mode": "Observe",
    "budget": {"transient": 3, "hardware": 10, "unknown": 2, "window": "24h"},
    "onNoFit": "Wait",
    "noFitDeadline": "1h",
    "exclusions": {"maxNodes": 8, "expire": "24h"},
    "hang": {
        "progress": {"annotation": "sickbay.dev/step"},
        "stall": "15m",
        "phases": [{"name": "load", "from": "loading", "to": "loaded", "max": "30m"}],
    },
    "checkpoint": None,
}

GOOD: tuple[Good, ...] = (
    *(Good(f"least-{kind.lower()}", kind, spec) for kind, spec in MINIMAL.items()),
    Good("full-pool", "RepairPool", FULL_POOL),
    Good("envelope", "RepairPool", {**FULL_POOL, "rule": None}),
    Good(
        "mixed-units-are-the-controllers-business",
        "RepairPool",
        {**MINIMAL["RepairPool"], "maxParallelRepairs": "50%", "breaker": {"threshold": 3, "maxNodes": 10}},
    ),
    Good(
        "percentages-order-by-size-then-text",
        "RepairPool",
        {**MINIMAL["RepairPool"], "maxParallelRepairs": "9%", "breaker": {"threshold": "10%", "maxNodes": "100%"}},
    ),
    Good(
        "equal-limits",
        "RepairPool",
        {**MINIMAL["RepairPool"], "maxParallelRepairs": 10, "breaker": {"threshold": 10, "maxNodes": 10}},
    ),
    Good("full-rule", "RepairRule", {"approvalPrefix": "sickbay", "rules": [FULL_ENTRY]}),
    Good("repair-only", "RepairRule", procedure(step("Repair"))["spec"]),
    Good("skip-repair", "RepairRule", procedure(step("Quarantine"), step("Drain"), skip("Repair"))["spec"]),
    Good("skip-quarantine-without-drain", "RepairRule", procedure(skip("Quarantine"), step("Repair"))["spec"]),
    Good("skip-drain-without-repair", "RepairRule", procedure(step("Quarantine"), skip("Drain"))["spec"]),
    Good("full-fault", "FaultType", FULL_FAULT),
    Good("fault-by-one-field", "FaultType", {"severity": "Warning"}),
    Good("fault-without-remedy", "FaultType", {"remedy": []}),
    Good(
        "full-hold",
        "Hold",
        {
            "scope": {"all": False, "pools": ["train"], "nodes": [], "nodeSelector": None},
            "level": "NewRepairs",
            "reason": "driver roll-out",
            "owner": "infra",
            "until": None,
            "faults": [],
        },
    ),
    Good("stop", "Hold", {"scope": {"all": True}, "level": "EveryAct"}),
    Good("full-repair", "NodeRepair", FULL_REPAIR, then=(("status", {"status": REPAIR_STATUS}),)),
    Good(
        "repair-by-hand",
        "NodeRepair",
        {
            "origin": "Manual",
            "node": {"name": "train-0"},
            "plan": {"steps": [{"step": "Repair", "action": "RebootNode"}]},
        },
        then=(("", {"spec": {"node": {"uid": "u"}, "catalogue": "1.0.0", "plan": {"generation": 2, "steps": []}}}),),
    ),
    Good(
        "repair-that-ends",
        "NodeRepair",
        FULL_REPAIR,
        then=(
            ("status", {"status": {"phase": "Succeeded", "outcome": "Repaired"}}),
            ("status", {"status": {"phase": "Succeeded", "verdict": "Confirmed"}}),
        ),
    ),
    Good(
        "task-that-runs",
        "NodeTask",
        {**MINIMAL["NodeTask"], "args": {"service": "kubelet"}},
        then=(
            ("status", {"status": {"phase": "Running", "started": "2026-11-29T12:00:00Z", "bootID": "b1"}}),
            ("status", {"status": {"phase": "Done", "proof": {"bootID": "b2"}}}),
        ),
    ),
    Good(
        "full-infra-event",
        "InfraEvent",
        {
            "source": "alibaba-ecs",
            "id": "e-1",
            "type": "SystemMaintenance.Reboot",
            "resource": "i-1",
            "node": {"name": "train-0", "uid": "u"},
            "scope": "Node",
            "notBefore": None,
        },
        then=(("status", {"status": {"phase": "Scheduled", "upstreamPhase": "Scheduled", "terminal": False}}),),
    ),
    Good("full-policy", "RecoveryPolicy", FULL_POLICY),
    Good("for-all-jobs-of-the-namespace", "RecoveryPolicy", {"mode": "Act"}),
    Good("asks-for-checkpoints", "RecoveryPolicy", {"jobSelector": {}, "checkpoint": {}}),
    Good(
        "recovery-under-way",
        "JobRecovery",
        MINIMAL["JobRecovery"],
        then=(
            (
                "status",
                {
                    "status": {
                        "phase": "Placing",
                        "attempts": [{"n": 1, "placement": {"0": "train-0"}, "verdict": "Hardware", "action": "Retry"}],
                        "suspects": [{"node": "train-0", "reason": "exit 139"}],
                        "gates": [{"repair": "train-0-0b1c2d3e-1", "step": "Drain", "attempt": 1, "state": "Asked"}],
                        "moves": [{"repair": "train-0-0b1c2d3e-1", "attempt": 1, "state": "Moving"}],
                    }
                },
            ),
        ),
    ),
)

_BREAKER = "breaker.{} is below maxParallelRepairs, so repairs alone could open the breaker; raise breaker.{}"

_SHAPES: tuple[Bad, ...] = (
    Bad("no-spec", "RepairPool", {"spec": None}, "spec", "Required"),
    Bad("no-selector", "RepairPool", {"spec": {"nodeSelector": None}}, "spec.nodeSelector", "Required"),
    Bad("mode", "RepairPool", {"spec": {"mode": "act"}}, "spec.mode", 'Unsupported value: "act"'),
    Bad("type", "RepairPool", {"spec": {"freezeOnFailure": "yes"}}, "spec.freezeOnFailure", "must be of type boolean"),
    Bad("count", "RepairPool", {"spec": {"maxUnavailable": -1}}, "spec.maxUnavailable", "greater than or equal to 0"),
    Bad("percent", "RepairPool", {"spec": {"maxUnavailable": "05%"}}, "spec.maxUnavailable", "should match"),
    Bad("percent-above", "RepairPool", {"spec": {"maxUnavailable": "101%"}}, "spec.maxUnavailable", "should match"),
    Bad("percent-break", "RepairPool", {"spec": {"maxUnavailable": "5%\n"}}, "spec.maxUnavailable", "should match"),
    Bad("duration", "RepairPool", {"spec": {"cancelHold": "1 day"}}, "spec.cancelHold", "should match"),
    Bad("duration-order", "RepairPool", {"spec": {"cancelHold": "5m1h"}}, "spec.cancelHold", "should match"),
    Bad("duration-empty", "RepairPool", {"spec": {"cancelHold": ""}}, "spec.cancelHold", "at least 2 chars"),
    Bad("too-long", "RepairPool", {"spec": {"rule": "x" * 254}}, "spec.rule", "Too long"),
    Bad("rule-empty", "RepairPool", {"spec": {"rule": ""}}, "spec.rule", "at least 1 chars"),
    Bad(
        "too-many",
        "RepairPool",
        {"spec": {"windows": [{"cron": "0 2 * * *", "duration": "1h"}] * 17}},
        "spec.windows",
        "Too many",
    ),
    Bad(
        "cron",
        "RepairPool",
        {"spec": {"windows": [{"cron": "0 2 * *", "duration": "1h"}]}},
        "spec.windows[0].cron",
        "should match",
    ),
    Bad(
        "domain-twice",
        "RepairPool",
        {"spec": {"domains": [{"key": "rack"}, {"key": "rack"}]}},
        "spec.domains[1]",
        "Duplicate value",
    ),
    Bad("time", "Hold", {"spec": {"until": "tomorrow"}}, "spec.until", "date-time"),
    Bad("level", "NodeTask", {"spec": {"action": "Explode"}}, "spec.action", "Unsupported value"),
    Bad("task-without-boot", "NodeTask", {"spec": {"node": {"bootID": None}}}, "spec.node.bootID", "Required"),
    Bad(
        "label-value",
        "Hold",
        {"spec": {"scope": {"nodeSelector": {"matchLabels": {"a": "-b"}}}}},
        "spec.scope.nodeSelector.matchLabels.a",
        "should match",
    ),
)

_POOL: tuple[Bad, ...] = (
    Bad(
        "selector-empty",
        "RepairPool",
        {"spec": {"nodeSelector": {"matchLabels": None}}},
        "spec.nodeSelector",
        "give matchLabels or matchExpressions",
    ),
    Bad(
        "interlock-counts",
        "RepairPool",
        {"spec": {"maxParallelRepairs": 11}},
        "spec.breaker.maxNodes",
        _BREAKER.format("maxNodes", "maxNodes"),
    ),
    Bad(
        "interlock-count-threshold",
        "RepairPool",
        {"spec": {"maxParallelRepairs": 3, "breaker": {"threshold": 2}}},
        "spec.breaker.threshold",
        _BREAKER.format("threshold", "threshold"),
    ),
    Bad(
        "interlock-percentages",
        "RepairPool",
        {"spec": {"maxParallelRepairs": "21%"}},
        "spec.breaker.threshold",
        _BREAKER.format("threshold", "threshold"),
    ),
    Bad(
        "interlock-percentages-of-other-length",
        "RepairPool",
        {"spec": {"maxParallelRepairs": "10%", "breaker": {"threshold": "9%"}}},
        "spec.breaker.threshold",
        _BREAKER.format("threshold", "threshold"),
    ),
    Bad(
        "override-of-all",
        "RepairPool",
        {"spec": {"overrides": [{"faults": {}, "mode": "Act"}]}},
        "spec.overrides[0].faults",
        "the override selects every fault; name the faults",
    ),
    Bad(
        "usable-above-size",
        "RepairPool",
        {"spec": {"domains": [{"key": "rack", "size": 4, "minUsable": 5}]}},
        "spec.domains[0].minUsable",
        "minUsable is above size; lower minUsable",
    ),
    Bad(
        "values-missing",
        "RepairPool",
        {"spec": {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
        "spec.nodeSelector.matchExpressions[0].values",
        "give values with In and NotIn",
    ),
    Bad(
        "values-too-much",
        "RepairPool",
        {"spec": {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}},
        "spec.nodeSelector.matchExpressions[0].values",
        "none with Exists",
    ),
)

_RULE: tuple[Bad, ...] = (
    Bad(
        "order",
        "RepairRule",
        procedure(step("Drain"), step("Quarantine")),
        "spec.rules[0].procedure",
        "in the order Quarantine, Drain, Repair, Validate, Unquarantine",
    ),
    Bad(
        "step-twice",
        "RepairRule",
        procedure(step("Repair"), step("Repair")),
        "spec.rules[0].procedure",
        "each at most once",
    ),
    Bad("no-step", "RepairRule", procedure(), "spec.rules[0].procedure", "at least 1 items"),
    Bad("unknown-step", "RepairRule", procedure(step("Reboot")), "spec.rules[0].procedure[0].step", "Unsupported"),
    Bad(
        "entry-twice",
        "RepairRule",
        {"spec": {"rules": [{"name": "a", "procedure": ALL_FIVE}, {"name": "a", "procedure": ALL_FIVE}]}},
        "spec.rules[1]",
        "Duplicate value",
    ),
    Bad(
        "gate-on-validate",
        "RepairRule",
        procedure(step("Validate", approval={})),
        "spec.rules[0].procedure[0].approval",
        "put the gate on Unquarantine",
    ),
    Bad(
        "skip-quarantine-before-drain",
        "RepairRule",
        procedure(skip("Quarantine"), step("Drain")),
        "spec.rules[0].procedure",
        "onTimeout Skip would go to Drain without Quarantine; use Escalate or Abort on Quarantine",
    ),
    Bad(
        "skip-drain-before-repair",
        "RepairRule",
        procedure(step("Quarantine"), skip("Drain"), step("Repair")),
        "spec.rules[0].procedure",
        "onTimeout Skip would go to Repair without Drain; use Escalate or Abort on Drain",
    ),
    Bad(
        "skip-unquarantine",
        "RepairRule",
        procedure(step("Quarantine"), skip("Unquarantine")),
        "spec.rules[0].procedure[1].approval.onTimeout",
        "use Escalate or Abort",
    ),
    Bad(
        "groups-of-jobs",
        "RepairRule",
        procedure(step("Drain", approval={"by": "Jobs", "groups": ["sre"]})),
        "spec.rules[0].procedure[0].approval.groups",
        "use by People or PeopleAndJobs",
    ),
    Bad(
        "timeout-on-repair",
        "RepairRule",
        procedure(step("Repair", timeout="5m")),
        "spec.rules[0].procedure[0]",
        "belong to Drain only; put them on step Drain",
    ),
    Bad(
        "action-on-drain",
        "RepairRule",
        procedure(step("Drain", action="RebootNode")),
        "spec.rules[0].procedure[0]",
        "belong to Repair only; put them on step Repair",
    ),
    Bad(
        "level-on-drain",
        "RepairRule",
        procedure(step("Drain", level=2)),
        "spec.rules[0].procedure[0]",
        "belong to Validate only; put them on step Validate",
    ),
    Bad(
        "hook-without-what",
        "RepairRule",
        procedure(step("Drain", before=[{"name": "x"}])),
        "spec.rules[0].procedure[0].before[0]",
        "exactly one of job and call; give one of them",
    ),
    Bad(
        "hook-with-both",
        "RepairRule",
        procedure(step("Drain", after=[{"name": "x", "job": {"podTemplate": "a"}, "call": {"endpoint": "b"}}])),
        "spec.rules[0].procedure[0].after[0]",
        "exactly one of job and call; give one of them",
    ),
    Bad(
        "protects-nothing",
        "RepairRule",
        procedure(step("Drain", options={"protect": [{}]})),
        "spec.rules[0].procedure[0].options.protect[0]",
        "give selector, namespaces or priorityClasses",
    ),
)

_OTHERS: tuple[Bad, ...] = (
    Bad("match-nothing", "FaultType", match({}), "spec.match[0]", "exactly one of condition, cel, event"),
    Bad(
        "match-two",
        "FaultType",
        match({"cel": "true", "condition": {"type": "Ready", "status": "False"}}),
        "spec.match[0]",
        "write several matches as several list entries",
    ),
    Bad(
        "checkpoint-by-call",
        "RecoveryPolicy",
        {"spec": {"checkpoint": {"notify": "Call"}}},
        "spec.checkpoint.notify",
        "not asked by Call or by Signal in this version; set notify to Annotation",
    ),
    Bad("domain-missing", "FaultType", {"spec": {"scope": "Domain"}}, "spec.domain", "set domain to the topology"),
    Bad(
        "domain-empty",
        "FaultType",
        {"spec": {"scope": "Domain", "domain": ""}},
        "spec.domain",
        "set domain to the topology",
    ),
    Bad(
        "attempts",
        "FaultType",
        {"spec": {"remedy": [{"action": "ResetGPU", "attempts": 0}]}},
        "spec.remedy[0].attempts",
        "greater than or equal to 1",
    ),
    Bad(
        "hold-of-nothing",
        "Hold",
        {"spec": {"scope": {"nodes": None}}},
        "spec.scope",
        "the hold is about nothing; give pools, nodes or nodeSelector",
    ),
    Bad(
        "hold-of-all-by-selector",
        "Hold",
        {"spec": {"scope": {"nodeSelector": {}}}},
        "spec.scope.nodeSelector",
        "use all: true",
    ),
    Bad(
        "manual-without-action",
        "NodeRepair",
        {"spec": {"origin": "Manual"}},
        "spec.plan",
        "give plan.steps: [{step: Repair, action: ...}]",
    ),
    Bad("plan-order", "NodeRepair", plan(step("Repair"), step("Drain")), "spec.plan.steps", "in the order Quarantine"),
    Bad("group-id", "NodeRepair", {"spec": {"group": {"id": "Rack.1"}}}, "spec.group.id", "should match"),
    Bad(
        "faults-too-many",
        "NodeRepair",
        {"spec": {"faults": [{"type": f"gpu.xid.{n}"} for n in range(17)]}},
        "spec.faults",
        "Too many",
    ),
)

_CHANGES: tuple[Bad, ...] = (
    Bad(
        "task-changed",
        "NodeTask",
        {},
        "spec",
        "the spec of a NodeTask never changes; create another NodeTask",
        then={"spec": {"action": "PowerCycle"}},
    ),
    Bad(
        "task-again",
        "NodeTask",
        {},
        "status.phase",
        "the task has ended; create another NodeTask",
        status={"status": {"phase": "Done"}},
        then={"status": {"phase": "Running"}},
        subresource="status",
    ),
    Bad(
        "repair-moved",
        "NodeRepair",
        {},
        "spec.node.name",
        "a repair stays with its node",
        then={"spec": {"node": {"name": "train-1"}}},
    ),
    Bad(
        "repair-of-another-uid",
        "NodeRepair",
        {"spec": {"node": {"uid": "u1"}}},
        "spec.node.uid",
        "a repair stays with the node of its UID",
        then={"spec": {"node": {"uid": "u2"}}},
    ),
    Bad(
        "origin-changed",
        "NodeRepair",
        {},
        "spec.origin",
        "the origin of a repair is history",
        then={"spec": {"origin": "Suspect"}},
    ),
    Bad(
        "catalogue-changed",
        "NodeRepair",
        {"spec": {"catalogue": "1.0.0"}},
        "spec.catalogue",
        "keeps the catalogue version it began with",
        then={"spec": {"catalogue": "1.1.0"}},
    ),
    Bad(
        "generation-back",
        "NodeRepair",
        {"spec": {"plan": {"generation": 3}}},
        "spec.plan.generation",
        "a plan's generation never goes back",
        then={"spec": {"plan": {"generation": 2}}},
    ),
    Bad(
        "repair-again",
        "NodeRepair",
        {},
        "status.phase",
        "the repair has ended; create another NodeRepair",
        status={"status": {"phase": "Cancelled", "outcome": "Denied"}},
        then={"status": {"phase": "Running"}},
        subresource="status",
    ),
    Bad(
        "event-renamed",
        "InfraEvent",
        {},
        "spec.id",
        "source and id are what the event is",
        then={"spec": {"id": "e-2"}},
    ),
    Bad(
        "job-renamed",
        "JobRecovery",
        {},
        "spec.job",
        "kind and name of the job are what the object is about",
        then={"spec": {"job": {"name": "other"}}},
    ),
    Bad(
        "phase-unknown",
        "NodeRepair",
        {},
        "status.phase",
        "Unsupported value",
        then={"status": {"phase": "Dancing"}},
        subresource="status",
    ),
    Bad(
        "condition-twice",
        "RepairPool",
        {},
        "status.conditions[1]",
        "Duplicate value",
        then={"status": {"conditions": [{"type": "Valid", "status": "True"}, {"type": "Valid", "status": "False"}]}},
        subresource="status",
    ),
)

BAD: tuple[Bad, ...] = (*_SHAPES, *_POOL, *_RULE, *_OTHERS, *_CHANGES)
