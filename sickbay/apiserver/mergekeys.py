"""How the lists of built-in kinds merge under a strategic merge patch.

Taken from the `patchStrategy` and `patchMergeKey` tags of k8s.io/api. A list that is not named here is atomic: the
patch replaces it whole. `spec.taints` and `spec.tolerations` are such lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Shape:
    """What a strategic merge needs to know of one value."""

    key: str = ""
    """Merge key of a list of objects."""
    primitive: bool = False
    """A list of scalars that merges as a set."""
    replace: bool = False
    """An object that a patch replaces instead of merging into."""
    fields: Mapping[str, Shape] = field(default_factory=dict)
    """Shapes of the value's own fields (of its items, for a list)."""

    def child(self, name: str) -> Shape:
        return self.fields.get(name, ATOMIC)


ATOMIC = Shape()


def by(key: str, **fields: Shape) -> Shape:
    return Shape(key=key, fields=fields)


def obj(**fields: Shape) -> Shape:
    return Shape(fields=fields)


SET = Shape(primitive=True)
_CONDITIONS = by("type")
_META = obj(finalizers=SET, ownerReferences=by("uid"))
_CONTAINER = by(
    "name",
    ports=by("containerPort"),
    env=by("name"),
    volumeMounts=by("mountPath"),
    volumeDevices=by("devicePath"),
)
_POD_SPEC = obj(
    containers=_CONTAINER,
    initContainers=_CONTAINER,
    ephemeralContainers=_CONTAINER,
    volumes=by("name"),
    imagePullSecrets=by("name"),
    hostAliases=by("ip"),
    topologySpreadConstraints=by("topologyKey"),
    schedulingGates=by("name"),
    resourceClaims=by("name"),
)
_TEMPLATE = obj(metadata=_META, spec=_POD_SPEC)
_WORKLOAD = obj(metadata=_META, spec=obj(template=_TEMPLATE), status=obj(conditions=_CONDITIONS))
_STATUS = obj(metadata=_META, status=obj(conditions=_CONDITIONS))
_PLAIN = obj(metadata=_META)

_SHAPES: dict[str, Shape] = {
    "Node": obj(
        metadata=_META,
        spec=obj(podCIDRs=SET),
        status=obj(conditions=_CONDITIONS, addresses=by("type")),
    ),
    "Pod": obj(
        metadata=_META,
        spec=_POD_SPEC,
        status=obj(conditions=_CONDITIONS, podIPs=by("ip"), hostIPs=Shape(), resourceClaimStatuses=by("name")),
    ),
    "PodTemplate": obj(metadata=_META, template=_TEMPLATE),
    "PodDisruptionBudget": obj(
        metadata=_META, spec=obj(selector=Shape(replace=True)), status=obj(conditions=_CONDITIONS)
    ),
    "Service": obj(metadata=_META, spec=obj(ports=by("port")), status=obj(conditions=_CONDITIONS)),
    "ServiceAccount": obj(metadata=_META, secrets=by("name")),
    "CronJob": obj(metadata=_META, spec=obj(jobTemplate=obj(metadata=_META, spec=obj(template=_TEMPLATE)))),
    "PersistentVolumeClaim": _STATUS,
    "Namespace": _STATUS,
    "CustomResourceDefinition": _PLAIN,
    **dict.fromkeys(
        ("Job", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController"), _WORKLOAD
    ),
}


def shape_of(kind: str) -> Shape:
    """The shape of a built-in kind."""
    return _SHAPES.get(kind, _PLAIN)
