"""What exists in a scenario unless it says otherwise: a pool for each fleet entry, with wide limits, and one rule."""

from __future__ import annotations

from typing import Any

from sickbay.api.names import API_VERSION
from sickbay.apiserver import mergepatch
from sickbay.sim.scenario.manifest import Manifest
from sickbay.sim.scenario.spec import FleetEntry, Scenario

RULE = "automatic"
STEPS = ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")


def objects_of(scenario: Scenario) -> list[dict[str, Any]]:
    """The objects to create, defaults first; an object of a default's name is merged over it."""
    defaults = [_rule(), *map(_pool, scenario.fleet)] if scenario.defaults else []
    merged: dict[tuple[str, str, str, str], dict[str, Any]] = {_identity(obj): obj for obj in defaults}
    for obj in scenario.objects:
        identity = _identity(obj)
        over = identity in merged and bool(defaults)
        merged[identity] = Manifest(mergepatch.merge(merged[identity], obj), obj.line, obj.path) if over else obj
    return list(merged.values())


def _identity(obj: dict[str, Any]) -> tuple[str, str, str, str]:
    meta = obj["metadata"]
    name = meta.get("name") or f"{meta.get('generateName')}#{id(obj)}"
    return obj["apiVersion"], obj["kind"], meta.get("namespace", ""), name


def _rule() -> dict[str, Any]:
    procedure = [{"step": step} for step in STEPS]
    return {
        "apiVersion": API_VERSION,
        "kind": "RepairRule",
        "metadata": {"name": RULE},
        "spec": {"rules": [{"name": "all", "faults": {}, "procedure": procedure}]},
    }


def _pool(entry: FleetEntry) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "RepairPool",
        "metadata": {"name": entry.pool},
        "spec": {
            "nodeSelector": {"matchLabels": {"pool": entry.pool}},
            "mode": "Act",
            "rule": RULE,
            "maxParallelRepairs": "100%",
            "maxParallelValidations": "100%",
            "maxUnavailable": "100%",
            "minInterval": "0s",
            "breaker": {"threshold": "100%", "maxNodes": 100000},
            "storm": {"nodes": 0},
            "budgets": {"perNode": {"repairs": 1000}},
            "provider": {"name": entry.provider.name},
        },
    }
