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


def check_new(obj: Obj) -> list[Cause]:
    """What events.k8s.io/v1 asks of a new Event beyond core/v1; `obj` is in the stored form."""
    causes = [] if obj.get("eventTime") else [required("eventTime")]
    if obj.get("type") not in ("Normal", "Warning"):
        causes.append(invalid_value("type", obj.get("type", ""), f"has invalid value: {obj.get('type', '')}"))
    return causes
