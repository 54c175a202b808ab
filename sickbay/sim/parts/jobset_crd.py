"""The JobSet definition, cut down: what controllers and tests read, with the defaults that its webhook would set.

After config/components/crd/bases of sigs.k8s.io/jobset v0.11. Pod templates are kept as they come; what the real
schema knows beyond this (coordinator, volumeClaimPolicies, ...) is kept too, unjudged.
"""

from __future__ import annotations

from typing import Any

GROUP, VERSION, PLURAL = "jobset.x-k8s.io", "v1alpha2", "jobsets"

_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_COUNT = {"type": "integer", "format": "int32", "minimum": 0}
_WORD = {"type": "string"}


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def _keyed(item: dict[str, Any], key: str) -> dict[str, Any]:
    return {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def _fixed(schema: dict[str, Any]) -> dict[str, Any]:
    rule = {"rule": "self == oldSelf", "message": "Value is immutable"}
    return {**schema, "x-kubernetes-validations": [rule]}


_REPLICATED_JOB = _object(
    {
        "name": _WORD,
        "groupName": {**_WORD, "default": "default"},
        "replicas": {**_COUNT, "default": 1},
        "template": _object(
            {
                "metadata": _ANY,
                "spec": {**_ANY, "properties": {"completionMode": {**_WORD, "default": "Indexed"}}},
            }
        ),
    },
    required=["name", "template"],
    **{"x-kubernetes-preserve-unknown-fields": True},
)

_FAILURE_POLICY = _object(
    {
        "maxRestarts": {**_COUNT, "default": 0},
        "restartStrategy": {**_WORD, "enum": ["Recreate", "BlockingRecreate", "InPlaceRestart"], "default": "Recreate"},
        "rules": {
            "type": "array",
            "items": _object(
                {
                    "name": _WORD,
                    "action": {
                        **_WORD,
                        "enum": ["FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"],
                    },
                    "onJobFailureReasons": {"type": "array", "items": _WORD},
                    "targetReplicatedJobs": {"type": "array", "items": _WORD},
                },
                required=["name", "action"],
            ),
        },
    }
)

_SPEC = _object(
    {
        "replicatedJobs": _keyed(_REPLICATED_JOB, "name"),
        "suspend": {"type": "boolean"},
        "managedBy": _WORD,
        "ttlSecondsAfterFinished": _COUNT,
        "failurePolicy": _fixed(_FAILURE_POLICY),
        "successPolicy": _fixed(
            _object(
                {
                    "operator": {**_WORD, "enum": ["All", "Any"], "default": "All"},
                    "targetReplicatedJobs": {"type": "array", "items": _WORD},
                },
                default={"operator": "All"},
            )
        ),
        "network": _fixed(
            _object(
                {
                    "enableDNSHostnames": {"type": "boolean", "default": True},
                    "publishNotReadyAddresses": {"type": "boolean", "default": True},
                    "subdomain": _WORD,
                },
                default={"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            )
        ),
    },
    **{"x-kubernetes-preserve-unknown-fields": True},
)

_STATUS = _object(
    {
        "conditions": _keyed(_ANY | {"properties": {"type": _WORD}, "required": ["type"]}, "type"),
        "restarts": _COUNT,
        "restartsCountTowardsMax": _COUNT,
        "terminalState": _WORD,
        "replicatedJobsStatus": _keyed(_ANY | {"properties": {"name": _WORD}, "required": ["name"]}, "name"),
    },
    **{"x-kubernetes-preserve-unknown-fields": True},
)


def manifest() -> dict[str, Any]:
    """The CustomResourceDefinition."""
    names = {"kind": "JobSet", "listKind": "JobSetList", "plural": PLURAL, "singular": "jobset"}
    schema = _object(
        {"apiVersion": _WORD, "kind": _WORD, "metadata": {"type": "object"}, "spec": _SPEC, "status": _STATUS}
    )
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
