"""Strategies of workloads: defaults of apps/v1 and batch/v1, and what the API server itself adds to a Job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.poddefaults import with_defaults
from sickbay.apiserver.strategy import SpecStatus

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store

MAX_BACKOFF = 2147483647
"""`backoffLimit` of a Job whose limit is per index (batch/v1 defaults)."""


class Templated(SpecStatus):
    """A workload: its pod template gets the defaults of pods, its spec and status those given here."""

    def __init__(self, spec: Obj | None = None, status: tuple[str, ...] = ()) -> None:
        self._spec = spec or {}
        self._status = status

    def prepare_create(self, obj: Obj, store: Store) -> None:
        obj["spec"] = self._defaulted(obj.get("spec") or {})
        obj["status"] = dict.fromkeys(self._status, 0)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        if new.get("spec") is not old.get("spec"):
            new["spec"] = self._defaulted(new.get("spec") or {})

    def _defaulted(self, spec: Obj) -> Obj:
        template = spec.get("template") or {}
        filled: Obj = _filled(spec, self._spec)
        for field in ("strategy", "updateStrategy"):
            asked = spec.get(field) or {}
            if asked.get("type", "RollingUpdate") != "RollingUpdate":
                filled[field] = asked
        filled["template"] = {**template, "spec": with_defaults(template.get("spec") or {})}
        return filled


def _filled(value: Any, defaults: Any) -> Any:
    """`value` with what it lacks, objects within it included."""
    if not isinstance(defaults, dict):
        return value
    value = value or {}
    return {**defaults, **{key: _filled(entry, defaults.get(key)) for key, entry in value.items()}}


_ROLLING = {"type": "RollingUpdate"}
DEPLOYMENT = Templated(
    {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": {**_ROLLING, "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    }
)
REPLICA_SET = Templated({"replicas": 1}, ("replicas",))
STATEFUL_SET = Templated(
    {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {**_ROLLING, "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    ("replicas", "availableReplicas"),
)
DAEMON_SET = Templated(
    {
        "revisionHistoryLimit": 10,
        "updateStrategy": {**_ROLLING, "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    },
    ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"),
)


class JobStrategy(Templated):
    """The API server, not the controller, gives a Job its selector and its pods the matching labels."""

    def prepare_create(self, obj: Obj, store: Store) -> None:
        super().prepare_create(obj, store)
        spec = dict(obj["spec"])
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        defaults = {"parallelism": 1, "completionMode": "NonIndexed", "suspend": False, "manualSelector": False}
        for field, value in defaults.items():
            spec.setdefault(field, value)
        # The limit of an Indexed job with one per index is on the index, and there is none for the whole.
        spec.setdefault("backoffLimit", MAX_BACKOFF if spec.get("backoffLimitPerIndex") is not None else 6)
        spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
        if not spec["manualSelector"]:
            self._own_selector(obj, spec)
        obj["spec"] = spec
        if not obj["metadata"].get("labels") and (labels := (spec["template"].get("metadata") or {}).get("labels")):
            obj["metadata"]["labels"] = labels

    @staticmethod
    def _own_selector(obj: Obj, spec: Obj) -> None:
        uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
        template = dict(spec["template"])
        metadata = dict(template.get("metadata") or {})
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            "controller-uid": uid,
            "job-name": name,
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
        }
        template["metadata"] = metadata
        spec["template"] = template
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
