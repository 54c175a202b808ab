"""The scale subresource: the number of replicas of a workload, whatever its kind, as one autoscaling/v1 Scale.

Built-in workloads have it at `spec.replicas`; a definition says where its objects have theirs.
"""

from __future__ import annotations

from typing import Any

from sickbay.apiserver.bodies import typed
from sickbay.apiserver.calls import Answer, ResourceCall, decode_body, decode_patch, json_answer
from sickbay.apiserver.errors import (
    Obj,
    StatusError,
    Undecodable,
    bad_request,
    conflict,
    invalid,
    method_not_allowed,
    unsupported_patch,
)
from sickbay.apiserver.metadata import invalid_value
from sickbay.apiserver.patching import JSON, MERGE, patcher
from sickbay.apiserver.printers import NONE
from sickbay.apiserver.resources import ResourceType
from sickbay.apiserver.store import Store
from sickbay.apiserver.workload_printers import selector_text

_PATCHES = {"application/json-patch+json": JSON, "application/merge-patch+json": MERGE}
_STRATEGIC = "application/strategic-merge-patch+json"
SCALE = ("autoscaling", "v1", "Scale")
_BUILT_IN = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def answer(store: Store, request: ResourceCall) -> Answer:
    """GET, PUT and PATCH of `<object>/scale`. Raises StatusError."""
    call, target = request.call, request.target
    if call.method not in ("GET", "PUT", "PATCH"):
        raise method_not_allowed()
    obj = store.get(request.key, target.name, target.namespace)
    kind = request.view.type
    if call.method == "GET":
        return json_answer(200, scale_of(kind, obj))
    if call.method == "PUT":
        wanted = typed(decode_body(call), *SCALE)
    else:
        wanted = _patched(request, scale_of(kind, obj))
    new = _write(store, request, obj, wanted)
    return json_answer(200, scale_of(kind, new))


def _paths(kind: ResourceType) -> Obj:
    if kind.custom is None:
        return _BUILT_IN
    found: Obj = kind.custom.version["subresources"]["scale"]
    return found


def _at(obj: Any, path: str) -> Any:
    for key in path.strip(".").split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def scale_of(kind: ResourceType, obj: Obj) -> Obj:
    paths, meta = _paths(kind), obj["metadata"]
    replicas = _at(obj, paths["specReplicasPath"])
    if replicas is None and kind.custom is not None:
        why = f'the spec replicas field "{paths["specReplicasPath"]}" does not exist'
        raise StatusError(
            500, "InternalError", f"Internal error occurred: {why}", details={"causes": [{"message": why}]}
        )
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Obj = {"replicas": _at(obj, paths.get("statusReplicasPath", "")) or 0}
    if selector := _selector(kind, obj):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in kept if key in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _selector(kind: ResourceType, obj: Obj) -> str:
    if kind.custom is not None:
        return str(_at(obj, _paths(kind).get("labelSelectorPath", "")) or "")
    text = selector_text((obj.get("spec") or {}).get("selector"))
    return "" if text == NONE else text


def _patched(request: ResourceCall, scale: Obj) -> Obj:
    patch_type = _PATCHES.get(request.call.content_type)
    if request.call.content_type == _STRATEGIC and request.view.type.custom is None:
        patch_type = MERGE  # a Scale has no lists
    if patch_type is None:
        raise unsupported_patch()
    patched = patcher(request.view.type, decode_patch(request.call), patch_type)(scale)
    try:
        return typed(patched, *SCALE)
    except Undecodable as error:
        raise error.of_patch() from None


def _negative(request: ResourceCall, replicas: int) -> StatusError:
    kind, name = request.view.type, request.target.name
    if kind.custom is None:
        cause = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        return invalid("Scale", "autoscaling", name, [cause])
    cause = invalid_value(_paths(kind)["specReplicasPath"], replicas, "should be a non-negative integer")
    return invalid(kind.kind, kind.group, name, [cause])


def _write(store: Store, request: ResourceCall, obj: Obj, wanted: Obj) -> Obj:
    target, meta = request.target, wanted.get("metadata") or {}
    if meta.get("name", target.name) != target.name:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})")
    version = meta.get("resourceVersion") or obj["metadata"]["resourceVersion"]
    if version != obj["metadata"]["resourceVersion"]:
        raise conflict(request.key, target.name)
    replicas = int((wanted.get("spec") or {}).get("replicas") or 0)
    if replicas < 0:
        raise _negative(request, replicas)
    body: Any = replicas
    for key in reversed(_paths(request.view.type)["specReplicasPath"].strip(".").split(".")):
        body = {key: body}
    dry_run = request.call.query.dry_run("UpdateOptions")
    return store.patch(
        request.key,
        target.name,
        {**body, "metadata": {"resourceVersion": version}},
        MERGE,
        target.namespace,
        caller=request.call.caller,
        dry_run=dry_run,
    )
