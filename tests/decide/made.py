"""Objects for these tests, made from few words: fault types, nodes, pools, rules, and the views decide looks at.

Fault types here are called `test.*` and read conditions called `Test*`. The built-in catalogue stays out: what it says
is tested by its own suite.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import msgspec

from sickbay.api import entries, names
from sickbay.api.core import Node
from sickbay.api.fault_type import FaultType
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule
from sickbay.clock import rfc3339
from sickbay.decide import catalogue as catalogues
from sickbay.decide.catalogue import Catalogue

START = datetime(2027, 3, 1, 8, tzinfo=UTC)
FULL = ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")
PREFIX = "intervention.sickbay.dev"


def at(seconds: float) -> datetime:
    """A moment of the test, in seconds from its start; negative ones lie before."""
    return START + timedelta(seconds=seconds)


def minutes(n: float) -> float:
    return n * 60


def hours(n: float) -> float:
    return n * 3600


def condition_of(fault: str) -> str:
    return names.condition_type(fault)


def fault_type(name: str = "test.reboot", **spec: Any) -> dict[str, Any]:
    """A FaultType object. `remedy` may be a list of action names; `for_` is `for`."""
    rungs = spec.pop("remedy", ["RebootNode", "PowerCycle"])
    full: dict[str, Any] = {
        "class": spec.pop("class_", "GPU"),
        "severity": "Critical",
        "scope": "Node",
        "match": [{"condition": {"type": condition_of(name), "status": "True"}}],
        "clearsBy": spec.pop("clears_by", "reboot"),
        "remedy": [{"action": r} if isinstance(r, str) else r for r in rungs] if rungs is not None else None,
    }
    if "for_" in spec:
        full["for"] = spec.pop("for_")
    return {
        "apiVersion": "sickbay.dev/v1alpha1",
        "kind": "FaultType",
        "metadata": {"name": name},
        "spec": full | spec,
    }


def typed(obj: Mapping[str, Any]) -> FaultType:
    return msgspec.convert(dict(obj), FaultType)


STANDARD = (
    fault_type("test.reboot"),
    fault_type("test.reset", remedy=["ResetGPU", "RebootNode"], clears_by="reset", severity="Error"),
    fault_type("test.service", class_="System", severity="Warning", remedy=["RestartService"], clears_by="condition"),
    fault_type("test.hardware", remedy=["RepairHardware"], clears_by="replacement"),
    fault_type("test.support", remedy=["ContactSupport"], clears_by="condition"),
    fault_type("test.replace", remedy=["ReplaceNode"], clears_by="replacement"),
    fault_type("test.suspect", remedy=[], clears_by="probe", severity="Error"),
    fault_type("test.noted", remedy=["None"], clears_by="condition", severity="Info"),
    fault_type("test.node", class_="Node", remedy=["RebootNode"], clears_by="reboot"),
)
_CATALOGUES: dict[str, Catalogue] = {}


def catalogue(*types: Mapping[str, Any]) -> Catalogue:
    """The catalogue of these types over the standard ones of the tests, and without the built-in entries."""
    chosen = [*STANDARD, *types]
    key = json.dumps(chosen, sort_keys=True)
    if key not in _CATALOGUES:
        with mock.patch.object(entries, "builtin", lambda: ("1.0.0", {})):
            _CATALOGUES[key] = catalogues.build(chosen)
    return _CATALOGUES[key]


def node(
    name: str = "n1",
    *,
    faults: Mapping[str, Any] | Iterable[str] = (),
    uid: str = "",
    boot: str = "boot-1",
    ready: Any = True,
    agent: Any = True,
    labels: Mapping[str, str] = {},
    annotations: Mapping[str, str] = {},
    unschedulable: bool = False,
    taints: Iterable[str] = (),
    gpus: Any = 8,
    allocatable: Any = None,
    provider_id: str = "fake:///n1/1",
    serial: str = "",
    deleting: bool = False,
    conditions: Iterable[Mapping[str, Any]] = (),
) -> Node:
    """A Node.

    faults   names of faults whose condition is True since second 0, or a map to (status, seconds since)
    ready    True, False or "Unknown"; or (status, seconds since)
    agent    True = sees, "Unknown" = blind, None = there is no agent
    """
    found = [_condition("Ready", ready if isinstance(ready, tuple) else (ready, -3600))]
    if agent is not None:
        found.append(_condition(names.DETECTION_BLIND, ("False" if agent is True else agent, -3600)))
    given = faults if isinstance(faults, Mapping) else dict.fromkeys(faults, ("True", 0))
    found += [_condition(condition_of(fault), value) for fault, value in given.items()]
    capacity = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    offered = capacity if allocatable is None else {"nvidia.com/gpu": str(allocatable)}
    meta: dict[str, Any] = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": "1"}
    meta |= {"labels": {"pool": "train", **labels}, "annotations": dict(annotations)}
    if deleting:
        meta["deletionTimestamp"] = rfc3339(START)
    obj = {
        "metadata": meta,
        "spec": {
            "providerID": provider_id,
            "unschedulable": unschedulable,
            "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
        },
        "status": {
            "capacity": capacity,
            "allocatable": offered,
            "nodeInfo": {"bootID": boot, "systemUUID": serial},
            "conditions": [*found, *conditions],
        },
    }
    return msgspec.convert(obj, Node)


def _condition(type_: str, value: Any) -> dict[str, Any]:
    status, since, *rest = value if isinstance(value, tuple) else (value, 0)
    text = {True: "True", False: "False"}.get(status, status)
    return {
        "type": type_,
        "status": text,
        "lastTransitionTime": rfc3339(at(since)),
        "reason": rest[0] if rest else "",
        "message": rest[1] if len(rest) > 1 else "",
    }


def pool(name: str = "train", *, mode: str = "Act", rule: str | None = "standard", **spec: Any) -> RepairPool:
    """A RepairPool; keyword arguments are fields of its spec as they stand in YAML. `slots` goes into its status."""
    status = {"slots": spec.pop("slots", [])}
    full = {"nodeSelector": {"matchLabels": {"pool": "train"}}, "mode": mode, **spec}
    if rule:
        full["rule"] = rule
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1}
    return msgspec.convert({"metadata": meta, "spec": full, "status": status}, RepairPool)


def procedure(*steps: Any, **gates: Any) -> list[dict[str, Any]]:
    """Steps by name, or as maps; `Drain={...}` gives a step an approval."""
    made = [dict(s) if isinstance(s, Mapping) else {"step": s} for s in steps or FULL]
    for step in made:
        if step["step"] in gates:
            step["approval"] = gates[step["step"]]
    return made


def rule(
    steps: list[dict[str, Any]] | None = None, *, entries: Any = None, name: str = "standard", **spec: Any
) -> RepairRule:
    """A RepairRule with one entry for every fault, or the entries given as maps."""
    rules = entries or [{"name": "all", "procedure": steps or procedure()}]
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1}
    return msgspec.convert({"metadata": meta, "spec": {"rules": rules, **spec}}, RepairRule)


def apply_node_ops(entries: Mapping[str, dict[str, str]], ops: Iterable[Mapping[str, Any]]) -> None:
    """Apply JSON patch operations to maps of labels and annotations, as the API server would."""
    for op in ops:
        _, _, which, *key = op["path"].split("/", 3)
        assert which in entries, f"decide writes nothing at {op['path']}"
        if not key:
            assert not entries[which], "a whole map is added only where there is none"
        elif op["op"] == "remove":
            del entries[which][key[0].replace("~1", "/")]
        else:
            entries[which][key[0].replace("~1", "/")] = op["value"]


def record(**fields: Any) -> NodeRepair:
    """A NodeRepair from a map as it would stand in YAML."""
    return msgspec.convert(fields, NodeRepair)


def copy_of(repair: NodeRepair) -> NodeRepair:
    return msgspec.convert(msgspec.to_builtins(repair), NodeRepair)
