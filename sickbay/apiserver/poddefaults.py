"""The defaults of core/v1 in a pod's spec, as pods and pod templates get them (kubernetes/pkg/apis/core/v1)."""

from __future__ import annotations

from sickbay.apiserver.errors import Obj

DEFAULT_GRACE = 30
"""Seconds; `terminationGracePeriodSeconds` of a pod that names none."""
_FILE_MODE = 0o644
_MODED = ("configMap", "secret", "downwardAPI", "projected")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def with_defaults(spec: Obj) -> Obj:
    spec = dict(spec)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", DEFAULT_GRACE)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    for field in ("containers", "initContainers"):
        if spec.get(field):
            spec[field] = [_container(container) for container in spec[field]]
    if spec.get("volumes"):
        spec["volumes"] = [_volume(volume) for volume in spec["volumes"]]
    return spec


def _container(container: Obj) -> Obj:
    image = str(container.get("image", ""))
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    latest = "@" not in image and tag in ("", "latest")
    defaults = {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always" if latest else "IfNotPresent",
    }
    filled = {**defaults, **container, "resources": _resources(container.get("resources") or {})}
    for field in _PROBES:
        if container.get(field):
            filled[field] = _probe(container[field])
    if container.get("ports"):
        filled["ports"] = [{**port, "protocol": port.get("protocol") or "TCP"} for port in container["ports"]]
    if container.get("env"):
        filled["env"] = [_variable(variable) for variable in container["env"]]
    return filled


def _resources(resources: Obj) -> Obj:
    """What is limited is requested, unless less is."""
    limits = resources.get("limits")
    if not limits or all(name in (resources.get("requests") or {}) for name in limits):
        return resources
    return {**resources, "requests": {**limits, **(resources.get("requests") or {})}}


def _probe(probe: Obj) -> Obj:
    defaults: Obj = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    filled = {**defaults, **{key: value for key, value in probe.items() if value or key not in defaults}}
    if probe.get("httpGet"):
        filled["httpGet"] = {"path": "/", "scheme": "HTTP", **probe["httpGet"]}
    return filled


def _variable(variable: Obj) -> Obj:
    source = variable.get("valueFrom") or {}
    if not source.get("fieldRef"):
        return variable
    return {**variable, "valueFrom": {**source, "fieldRef": {"apiVersion": "v1", **source["fieldRef"]}}}


def _volume(volume: Obj) -> Obj:
    if not volume.keys() - {"name"}:
        return {**volume, "emptyDir": {}}
    moded = {
        field: {"defaultMode": _FILE_MODE, **volume[field]} for field in _MODED if isinstance(volume.get(field), dict)
    }
    return {**volume, **moded}
