"""The CustomResourceDefinitions, generated from the structs.

`manifests()` is what `sickbay crds` prints, what deploy/crds holds and what the simulator's API server serves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TextIO

import yaml

from sickbay.api import kinds
from sickbay.api.kinds import Kind
from sickbay.api.schema import Schema, resource_schema


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; priority 1 shows in `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Definition:
    """What a CRD says beyond its schema."""

    kind: Kind[Any]
    short: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    """Fields by which `kubectl get --field-selector` and watches can select."""
    defaults: bool = True
    """Whether the spec has schema defaults."""


_AGE = Column("Age", ".metadata.creationTimestamp", "date")


def _valid(priority: int = 0) -> Column:
    return Column("Valid", '.status.conditions[?(@.type=="Valid")].status', priority=priority)


DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        kinds.REPAIR_POOL,
        "rp",
        (
            Column("Mode", ".spec.mode"),
            Column("Rule", ".spec.rule"),
            Column("Nodes", ".status.nodes", "integer"),
            Column("Faulty", ".status.faulty", "integer"),
            Column("Unavailable", ".status.unavailable", "integer"),
            Column("Breaker", ".status.breaker.state"),
            _valid(1),
            _AGE,
        ),
    ),
    Definition(kinds.REPAIR_RULE, "rr", (_valid(), Column("Approval", ".spec.approvalPrefix"), _AGE)),
    Definition(
        kinds.FAULT_TYPE,
        "ft",
        (
            Column("Class", ".spec.class"),
            Column("Severity", ".spec.severity"),
            Column("Scope", ".spec.scope"),
            Column("ClearsBy", ".spec.clearsBy"),
            _valid(),
            _AGE,
        ),
        defaults=False,
    ),
    Definition(
        kinds.HOLD,
        "hold",
        (
            Column("Level", ".spec.level"),
            Column("All", ".spec.scope.all", "boolean"),
            Column("Until", ".spec.until", "string"),
            Column("Owner", ".spec.owner"),
            Column("Reason", ".spec.reason", priority=1),
            _AGE,
        ),
    ),
    Definition(
        kinds.NODE_REPAIR,
        "nr",
        (
            Column("Node", ".spec.node.name"),
            Column("Fault", ".spec.faults[0].type"),
            Column("Phase", ".status.phase"),
            Column("Step", ".status.current.step"),
            Column("WaitsFor", ".status.current.waitsFor"),
            Column("Outcome", ".status.outcome"),
            Column("Needs", ".status.needs", priority=1),
            Column("Pool", ".spec.pool.name", priority=1),
            Column("Deadline", ".status.current.deadline", priority=1),
            _AGE,
        ),
        selectable=(".spec.node.name",),
    ),
    Definition(
        kinds.NODE_TASK,
        "nt",
        (
            Column("Node", ".spec.node.name"),
            Column("Action", ".spec.action"),
            Column("Phase", ".status.phase"),
            Column("Expires", ".spec.expires", priority=1),
            _AGE,
        ),
        selectable=(".spec.node.name",),
    ),
    Definition(
        kinds.INFRA_EVENT,
        "ie",
        (
            Column("Source", ".spec.source"),
            Column("Type", ".spec.type"),
            Column("Node", ".spec.node.name"),
            Column("Phase", ".status.phase"),
            Column("NotBefore", ".spec.notBefore"),
            _AGE,
        ),
        selectable=(".spec.node.name",),
    ),
    Definition(
        kinds.RECOVERY_POLICY,
        "rpol",
        (Column("Mode", ".spec.mode"), Column("OnNoFit", ".spec.onNoFit"), _valid(), _AGE),
    ),
    Definition(
        kinds.JOB_RECOVERY,
        "jr",
        (
            Column("Kind", ".spec.job.kind"),
            Column("Job", ".spec.job.name"),
            Column("Phase", ".status.phase"),
            Column("Policy", ".spec.policy", priority=1),
            _AGE,
        ),
    ),
)


@lru_cache(maxsize=1)
def schemas() -> dict[str, Schema]:
    """The openAPIV3Schema of each kind by its name. Shared: do not change it."""
    return {d.kind.kind: resource_schema(d.kind.struct, defaults=d.defaults) for d in DEFINITIONS}


def manifests() -> list[dict[str, Any]]:
    """The nine CustomResourceDefinitions, ready to be applied."""
    return [manifest(definition) for definition in DEFINITIONS]


def manifest(definition: Definition) -> dict[str, Any]:
    kind = definition.kind
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in definition.columns],
        "schema": {"openAPIV3Schema": schemas()[kind.kind]},
        "subresources": {"status": {}},
    }
    if definition.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in definition.selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource, "labels": {"app.kubernetes.io/name": "sickbay"}},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": [definition.short] if definition.short != kind.kind.lower() else [],
                "categories": ["sickbay"],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def write_yaml(stream: TextIO) -> None:
    """All nine as one multi-document YAML file."""
    yaml.dump_all(manifests(), stream, Dumper=_Plain, sort_keys=False, width=110, explicit_start=True)


def to_yaml(manifest: dict[str, Any]) -> str:
    """One manifest, as it stands in deploy/crds."""
    text: str = yaml.dump(manifest, Dumper=_Plain, sort_keys=False, width=110, explicit_start=True)
    return text


def file_name(manifest: dict[str, Any]) -> str:
    """Its file in deploy/crds: `sickbay.dev_noderepairs.yaml`."""
    spec = manifest["spec"]
    return f"{spec['group']}_{spec['names']['plural']}.yaml"


class _Plain(yaml.SafeDumper):
    """Writes out what occurs twice instead of referring to it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


# kubectl reads YAML 1.1 in full, where a plain `n` or `y` is a boolean; PyYAML quotes them only when told so.
_Plain.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("[yYnN]"), list("yYnN"))


def _column(column: Column) -> dict[str, Any]:
    described: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.priority:
        described["priority"] = column.priority
    return described
