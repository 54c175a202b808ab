"""The world of a seed: a few machines in one or two pools, rules of any steps and gates, limits of any kind.

Times are short, so that a repair is over within minutes of virtual time: what is tested is order and overlap, not
patience. Every object is one that the API server takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sickbay.api.names import API_VERSION, RESET_BREAKER
from sickbay.sim.chaos.dice import Dice, seconds

Obj = dict[str, Any]

TYPES: tuple[tuple[str, str, str, list[str], str], ...] = (
    # name, class, scope, remedies, clearsBy
    ("chaos.boot", "Node", "Node", ["RebootNode", "PowerCycle"], "condition"),
    ("chaos.power", "GPU", "Node", ["PowerCycle"], "reboot"),
    ("chaos.service", "System", "Node", ["RestartService", "RebootNode"], "condition"),
    ("chaos.card", "GPU", "Device", ["ResetGPU", "RebootNode"], "reset"),
    ("chaos.hardware", "GPU", "Node", ["RebootNode", "RepairHardware"], "reboot"),
    ("chaos.quiet", "Node", "Node", ["RebootNode"], "silence"),
    ("chaos.replace", "Node", "Node", ["ReplaceNode"], "replacement"),
    ("chaos.support", "System", "Node", ["ContactSupport"], "condition"),
    ("chaos.nothing", "System", "Node", ["None"], "condition"),
)
"""Fault types of our own: what the catalogue names, with times that fit."""

PARALLEL: tuple[tuple[int, int | str], ...] = ((3, 1), (3, 2), (1, "50%"), (2, "100%"))
RACK = "sickbay.dev/rack"
GATED = ("Quarantine", "Drain", "Repair", "Unquarantine")


@dataclass
class Drawn:
    """A world as it is drawn: the parts of a scenario."""

    fleet: list[Obj] = field(default_factory=list)
    objects: list[Obj] = field(default_factory=list)
    components: list[str] = field(default_factory=list)
    replicas: int = 1
    types: list[str] = field(default_factory=list)
    agents_repair: bool = False

    @property
    def nodes(self) -> list[str]:
        return [f"{entry['pool']}-{k}" for entry in self.fleet for k in range(entry["nodes"])]

    @property
    def pools(self) -> list[str]:
        return [str(entry["pool"]) for entry in self.fleet]


def draw(dice: Dice) -> Drawn:
    drawn = Drawn(components=["decide", "execute"], replicas=dice.weighted([(6, 1), (4, 2)]))
    drawn.components += [c for c, p in (("agent", 0.25), ("notify", 0.2), ("recover", 0.12)) if dice.chance(p)]
    drawn.agents_repair = "agent" in drawn.components and dice.chance(0.6)
    drawn.fleet = [_fleet(dice, name) for name in ("a", "b")[: dice.weighted([(6, 1), (4, 2)])]]
    drawn.types = [name for name, *_ in TYPES if dice.chance(0.45)] or ["chaos.boot"]
    drawn.objects = [_type(dice, *known) for known in TYPES if known[0] in drawn.types]
    rules = ["first", "second"][: dice.between(1, 2)]
    drawn.objects += [_rule(dice, name, drawn.types) for name in rules]
    drawn.objects += [_pool(dice, entry, dice.one(rules), drawn) for entry in drawn.fleet]
    if dice.chance(0.35):
        drawn.objects.append(_envelope(dice, drawn))
    drawn.objects += _workloads(dice, drawn)
    _patience(dice.fork(), drawn)
    _domains(dice.fork(), drawn)
    _reapplied(dice.fork(), drawn)
    return drawn


def _object(kind: str, name: str, spec: Obj, version: str = API_VERSION, **meta: Any) -> Obj:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


def _fleet(dice: Dice, pool: str) -> Obj:
    provider: Obj = {"name": "fake", "reboot": seconds(dice.between(15, 80))}
    if dice.chance(0.3):
        provider["fail"] = dice.one([0.1, 0.3, 0.6])
    if dice.chance(0.2):
        provider["keys"] = False
    entry: Obj = {"pool": pool, "nodes": dice.between(2, 4), "gpus": dice.one([0, 1, 2]), "provider": provider}
    if dice.chance(0.3):
        entry["rack"] = 2
    return entry


# --- fault types and rules


def _type(dice: Dice, name: str, class_: str, scope: str, remedies: list[str], clears: str) -> Obj:
    spec: Obj = {
        "class": dice.one(["Node", "GPU", "System"]) if dice.chance(0.2) else class_,
        "severity": dice.weighted([(6, "Critical"), (3, "Error"), (1, "Warning")]),
        "scope": scope,
        "match": [{"condition": {"type": condition_of(name), "status": "True"}}],
        "remedy": [_rung(dice, action) for action in remedies],
        "clearsBy": clears,
        "validation": {"soak": seconds(dice.one([30, 60])), "ceiling": seconds(dice.one([150, 240, 400]))},
    }
    if dice.chance(0.25):
        spec["for"] = dice.one(["10s", "60s", "3m"])
    return _object("FaultType", name, spec)


def _rung(dice: Dice, action: str) -> Obj:
    rung: Obj = {"action": action, "timeout": seconds(dice.one([90, 150, 240]))}
    if dice.chance(0.2):
        rung["attempts"] = 2
    if action == "RestartService":
        rung["args"] = {"service": dice.one(["kubelet", "containerd", "nvidia-persistenced"])}
    return rung


def condition_of(fault: str) -> str:
    return "".join(word.capitalize() for word in fault.split("."))


def _rule(dice: Dice, name: str, types: list[str]) -> Obj:
    entries = []
    if dice.chance(0.35):
        entries.append({"name": "some", "faults": {"names": dice.some(types, 1)}, "procedure": _procedure(dice)})
    if dice.chance(0.2):
        entries.append({"name": "grave", "faults": {"severities": ["Critical"]}, "procedure": _procedure(dice)})
    entries.append({"name": "all", "procedure": _procedure(dice)})
    return _object("RepairRule", name, {"rules": entries})


def _procedure(dice: Dice) -> list[Obj]:
    full = ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")
    steps = list(full) if dice.chance(0.6) else dice.some(full, 1)
    made = []
    for step in steps:
        entry: Obj = {"step": step, **_settings(dice, step)}
        if step in GATED and dice.chance(0.28):
            entry["approval"] = _gate(dice, step, steps)
        made.append(entry)
    return made


def _settings(dice: Dice, step: str) -> Obj:
    if step == "Drain":
        choice = dice.weighted([(4, "Escalate"), (2, "Continue"), (3, "RollBack")])
        options = {"grace": {"max": dice.one(["5s", "20s"])}, "scope": dice.weighted([(5, "All"), (1, "GPUPods")])}
        return {"timeout": seconds(dice.one([60, 120, 240])), "onTimeout": choice, "options": options}
    if step == "Repair" and dice.chance(0.15):
        return {"action": dice.one(["RebootNode", "RestartService", "PowerCycle"])}
    if step == "Repair" and dice.chance(0.2):
        return {"allowUndrained": True}
    if step == "Validate" and dice.chance(0.4):
        return {"soak": seconds(dice.one([20, 45])), "ceiling": seconds(dice.one([120, 240]))}
    return {}


def _gate(dice: Dice, step: str, steps: list[str]) -> Obj:
    later = {"Quarantine": ("Drain", "Repair"), "Drain": ("Repair",)}.get(step, ())
    skips = step != "Unquarantine" and not set(later) & set(steps)
    outcomes = ["Escalate", "Abort", *(["Skip"] if skips else [])]
    return {
        "by": dice.weighted([(8, "People"), (1, "Jobs"), (1, "PeopleAndJobs")]),
        "timeout": seconds(dice.one([60, 180, 420])),
        "onTimeout": dice.one(outcomes),
        "reminders": [dice.one(["20s", "1m"])],
    }


def _patience(dice: Dice, drawn: Drawn) -> None:
    """A fault that can wait for the jobs of its node."""
    if not dice.chance(0.2):
        return
    fault = dice.one([o for o in drawn.objects if o["kind"] == "FaultType"])
    ceiling = dice.one(["1m", "4m"])
    fault["spec"] |= {"urgency": dice.one(["AtJobEnd", "AtNextInterruption"]), "ceiling": ceiling}


def _domains(dice: Dice, drawn: Drawn) -> None:
    """A fault that is a whole rack's."""
    racked = {entry["pool"] for entry in drawn.fleet if entry.get("rack")}
    if not racked or not dice.chance(0.5):
        return
    fault = dice.one([o for o in drawn.objects if o["kind"] == "FaultType"])
    fault["spec"] |= {"scope": "Domain", "domain": RACK}
    settings: Obj = {"key": RACK, "pacing": dice.one(["Spread", "Pack"])}
    settings |= dice.one([{}, {"size": 2}, {"minUsable": 1}, {"maxUnavailable": 2}])
    for pool in drawn.objects:
        if pool["kind"] == "RepairPool" and pool["metadata"]["name"] in racked and dice.chance(0.8):
            pool["spec"]["domains"] = [settings]


def _reapplied(dice: Dice, drawn: Drawn) -> None:
    """Pools that are kept in files carry the reset of a breaker that somebody wrote down long ago."""
    if dice.chance(0.25):
        for pool in (o for o in drawn.objects if o["kind"] == "RepairPool"):
            pool["metadata"]["annotations"] = {RESET_BREAKER: "2027-01-01T00:00:00Z"}


# --- pools


def _pool(dice: Dice, entry: Obj, rule: str, drawn: Drawn) -> Obj:
    name = entry["pool"]
    spec: Obj = {
        "nodeSelector": {"matchLabels": {"pool": name}},
        "mode": dice.weighted([(12, "Act"), (1, "Observe")]),
        "rule": rule,
        "quarantine": {"taint": dice.chance(0.3)},
        "provider": {"name": "agent" if drawn.agents_repair else "fake"},
        "budgets": {
            "perNode": {"repairs": dice.one([1, 2, 3, 50]), "window": "7d"},
            "then": dice.one(["RepairHardware", "NeedsHuman"]),
        },
        "cancelHold": dice.one(["2m", "24h"]),
        "freezeOnFailure": dice.chance(0.1),
        "minInterval": dice.weighted([(5, "0s"), (1, "30s"), (1, "2m")]),
        "localDataDisposable": dice.chance(0.5),
        **_limits(dice),
    }
    return _object("RepairPool", name, spec)


def _limits(dice: Dice) -> Obj:
    parallel = dice.weighted(PARALLEL)
    limits: Obj = {
        "maxParallelRepairs": parallel,
        "maxParallelValidations": dice.one([1, 2, "100%"]),
        "maxUnavailable": dice.weighted([(3, 1), (3, 2), (1, "50%"), (2, "100%")]),
        "breaker": _breaker(dice, parallel),
        "storm": {"nodes": dice.weighted([(4, 0), (2, 2), (2, 3)]), "window": dice.one(["20s", "60s"])},
    }
    if dice.chance(0.15):
        kind = dice.one(["Allow", "Deny"])
        limits["windows"] = [{"cron": "*/6 * * * *", "duration": dice.one(["2m", "4m"]), "kind": kind}]
    return limits


def _breaker(dice: Dice, parallel: int | str) -> Obj:
    """Never tighter than what may be repaired at once: the API server refuses that."""
    wide = isinstance(parallel, str)
    threshold = parallel if wide else max(int(parallel), dice.between(1, 3))
    return {
        "threshold": threshold,
        "maxNodes": dice.one([3, 10]),
        "cooldown": seconds(dice.one([60, 150])),
        "reset": dice.weighted([(3, "Auto"), (1, "Manual")]),
    }


def _envelope(dice: Dice, drawn: Drawn) -> Obj:
    selector = {"matchExpressions": [{"key": "pool", "operator": "In", "values": dice.some(drawn.pools, 1)}]}
    return _object("RepairPool", "envelope", {"nodeSelector": selector, "mode": "Act", **_limits(dice)})


# --- workloads


def _workloads(dice: Dice, drawn: Drawn) -> list[Obj]:
    objects: list[Obj] = []
    if dice.chance(0.5):
        objects += [_bare_pod(dice, node) for node in dice.some(drawn.nodes)[:3]]
    if dice.chance(0.4):
        objects += _service(dice)
    if dice.chance(0.3):
        objects.append(_daemons())
    if "recover" in drawn.components:
        objects += _training(dice, drawn)
    return objects


def _template(labels: dict[str, str], annotations: dict[str, str] | None = None, **spec: Any) -> Obj:
    containers = [{"name": "main", "image": "example.com/app:1", **spec.pop("container", {})}]
    return {
        "metadata": {"labels": labels, "annotations": annotations or {}},
        "spec": {"containers": containers, **spec},
    }


def _bare_pod(dice: Dice, node: str) -> Obj:
    body = _template({"app": "bare"}, {"sim.sickbay.dev/stop-takes": seconds(dice.one([1, 10, 40]))})
    body["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {"apiVersion": "v1", "kind": "Pod", **body, "metadata": {**body["metadata"], "name": f"bare-{node}"}}


def _service(dice: Dice) -> list[Obj]:
    labels, replicas = {"app": "service"}, dice.between(1, 3)
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": _template(labels)}
    budget = {"selector": {"matchLabels": labels}, "maxUnavailable": dice.weighted([(3, 1), (1, 0)])}
    return [
        _object("Deployment", "service", spec, "apps/v1", namespace="default"),
        _object("PodDisruptionBudget", "service", budget, "policy/v1", namespace="default"),
    ]


def _daemons() -> Obj:
    labels = {"app": "daemon"}
    template = _template(labels, tolerations=[{"operator": "Exists"}])
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return _object("DaemonSet", "daemon", spec, "apps/v1", namespace="default")


def _training(dice: Dice, drawn: Drawn) -> list[Obj]:
    policy: Obj = {
        "jobSelector": {"matchLabels": {"job": "train"}},
        "mode": dice.weighted([(4, "Act"), (1, "Observe")]),
        "onNoFit": "Wait",
        "noFitDeadline": "5m",
    }
    if dice.chance(0.4):
        policy["checkpoint"] = {"notify": "Annotation", "window": "30s"}
    size = min(2, len(drawn.nodes))
    labels = {"job": "train"}
    gpu = {"resources": {"limits": {"nvidia.com/gpu": "1"}}} if drawn.fleet[0]["gpus"] else {}
    template = _template(labels, container=gpu, restartPolicy="Never")
    job = {
        "parallelism": size, "completions": size, "completionMode": "Indexed", "backoffLimit": 6, "template": template,
    }  # fmt: skip
    return [
        _object("RecoveryPolicy", "policy", policy, namespace="default"),
        _object("Job", "train", job, "batch/v1", namespace="default", labels=labels),
    ]


__all__ = ["TYPES", "Drawn", "condition_of", "draw"]
