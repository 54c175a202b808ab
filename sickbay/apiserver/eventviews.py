"""Events under their two APIs: stored as core/v1, served as events.k8s.io/v1 too.

The two are one object with other field names (kubernetes/pkg/apis/events/v1/conversion.go).
"""

from __future__ import annotations

from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.metadata import invalid_value, required

_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_BACK = {new: old for old, new in _NAMES.items()}

FIELD_NAMES = {
    **{
        f"regarding.{part}": f"involvedObject.{part}"
        for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    },
    "reportingController": "reportingComponent",
}
"""Field selectors of events.k8s.io/v1 and what they mean in the stored form."""


def _rename(obj: Obj, names: dict[str, str], api_version: str) -> Obj:
    renamed = {names.get(key, key): value for key, value in obj.items()}
    renamed["apiVersion"] = api_version
    return renamed


def outward(obj: Obj) -> Obj:
    return _rename(obj, _NAMES, "events.k8s.io/v1")


def inward(obj: Obj) -> Obj:
    return _rename(obj, _BACK, "v1")


_SETTLED = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"),
    *("eventTime", "action", "related", "reportingComponent", "reportingInstance"),
)
"""Fields that events.k8s.io/v1 lets nobody change: an Event goes on by its series alone."""

CAUSE_NAMES = {"reportingComponent": "reportingController"}


def check(new: Obj, old: Obj | None) -> list[Cause]:
    """What events.k8s.io/v1 asks beyond core/v1; both objects are in the stored form."""
    if old is not None:
        return [
            invalid_value(field, new.get(field, ""), "field is immutable")
            for field in _SETTLED
            if new.get(field) != old.get(field)
        ]
    causes = [] if new.get("eventTime") else [required("eventTime")]
    if new.get("type") not in ("Normal", "Warning"):
        causes.append(invalid_value("type", new.get("type", ""), f"has invalid value: {new.get('type', '')}"))
    return causes
