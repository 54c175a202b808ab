"""POST, PUT, PATCH and DELETE, and the subresources that are written to."""

from __future__ import annotations

from typing import Any

from sickbay.apiserver import applying, subresources
from sickbay.apiserver import store as storing
from sickbay.apiserver.bodies import delete_options, propagation
from sickbay.apiserver.calls import Answer, ResourceCall, decode_body, decode_patch, encode
from sickbay.apiserver.deletion import Deleted
from sickbay.apiserver.errors import (
    Obj,
    StatusError,
    bad_request,
    conflict,
    method_not_allowed,
    no_such_path,
    unsupported_patch,
)
from sickbay.apiserver.fieldvalidation import check_fields
from sickbay.apiserver.identity import check_identity
from sickbay.apiserver.listing import page, selection
from sickbay.apiserver.openapi.decoding import decoded, decoded_metadata
from sickbay.apiserver.podrules import check_new_pod
from sickbay.apiserver.reading import list_json, object_json
from sickbay.apiserver.requests import Target
from sickbay.apiserver.store import Store

PATCH_TYPES = {
    "application/json-patch+json": storing.JSON,
    "application/merge-patch+json": storing.MERGE,
    "application/strategic-merge-patch+json": storing.STRATEGIC,
}


NOT_READY = "node.kubernetes.io/not-ready"
APPLY_TYPE = "application/apply-patch+yaml"


def create(store: Store, request: ResourceCall) -> Answer:
    target, call = request.target, request.call
    if target.name:
        return subresources.create(store, request)
    body = decode_body(call)
    warnings = check_fields(call, request.view, body, "CreateOptions")
    obj = _inward(request, body)
    if request.key in ("nodes", "pods"):
        obj = _admitted(store, request, obj)
    new = store.create(
        request.key, obj, target.namespace, caller=call.caller, dry_run=call.query.dry_run(), view=request.view
    )
    return Answer(201, object_json(store, request.view, new), warnings)


def _admitted(store: Store, request: ResourceCall, obj: Obj) -> Obj:
    """What is asked of nodes and pods at the door, and not of those that are put into the store directly."""
    obj = _decode(request, obj)
    if request.key == "nodes":
        return new_node(obj)
    check_new_pod(store, obj)
    return obj


def _decode(request: ResourceCall, obj: Obj) -> Obj:
    """A built-in kind as its Go type holds it. Raises StatusError(400)."""
    kind = request.view.type
    return obj if kind.go_type is None else decoded(kind.go_type, f'{kind.kind} in version "{kind.version}"', obj)


def new_node(obj: Obj) -> Obj:
    """What the TaintNodesByCondition admission plug-in does: a new node takes no pods until it is seen to be ready.

    Nodes that are put into the store directly are as they are given: the simulator's fleets, for one.
    """
    spec = obj.get("spec") or {}
    taints = spec.get("taints") or []
    if any(taint.get("key") == NOT_READY for taint in taints):
        return obj
    return {**obj, "spec": {**spec, "taints": [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]}}


def _inward(request: ResourceCall, obj: Obj) -> Obj:
    """The object in its stored form. Raises StatusError where it is not what the path names."""
    view = request.view
    check_identity(view, obj)
    kind = view.type.kind
    obj = {**obj, "metadata": decoded_metadata(f'{kind} in version "{view.version}"', obj.get("metadata"))}
    if view.native:
        return obj
    return {**view.inward(obj), "apiVersion": view.type.api_version}


def _check_subresource(request: ResourceCall) -> None:
    subresource = request.target.subresource
    if not subresource:
        return
    if subresource not in request.view.type.subresources:
        raise no_such_path()
    if subresource not in ("status", "finalize"):
        raise method_not_allowed()


def update(store: Store, request: ResourceCall) -> Answer:
    call, target = request.call, request.target
    _check_subresource(request)
    body = decode_body(call)
    warnings = check_fields(call, request.view, body, "UpdateOptions")
    obj = _inward(request, body)
    _check_place(obj["metadata"], target)
    options: dict[str, Any] = {
        "caller": call.caller,
        "dry_run": call.query.dry_run("UpdateOptions"),
        "view": request.view,
    }
    absent = store.find(request.key, target.name, target.namespace) is None
    if absent and request.view.type.strategy.create_on_update and not target.subresource:
        new_uid = obj["metadata"].get("uid")
        if new_uid:
            why = f"Precondition failed: UID in precondition: {new_uid}, UID in object meta: "
            raise conflict(request.key, target.name, why)
        obj["metadata"] = {**obj["metadata"], "resourceVersion": ""}
        new = store.create(request.key, obj, target.namespace, **options)
        return Answer(201, object_json(store, request.view, new), warnings)
    try:
        new = store.update(request.key, obj, target.namespace, subresource=target.subresource, **options)
    except StatusError:
        # A body that is none is told before an object that is not there, or not as it was.
        _decode(request, obj)
        raise
    return Answer(200, object_json(store, request.view, new), warnings)


def _check_place(meta: Obj, target: Target) -> None:
    name = meta.get("name")
    if not name:
        why = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(why)
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if (meta.get("namespace") or target.namespace) != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def patch(store: Store, request: ResourceCall) -> Answer:
    call, target = request.call, request.target
    _check_subresource(request)
    if call.content_type == APPLY_TYPE:
        return applying.apply(store, request)
    kind = PATCH_TYPES.get(call.content_type)
    if kind is None:
        raise unsupported_patch()
    body = decode_patch(call)
    warnings = check_fields(call, request.view, body, "PatchOptions")
    new = store.patch(
        request.key,
        target.name,
        body,
        kind,
        target.namespace,
        subresource=target.subresource,
        caller=call.caller,
        dry_run=call.query.dry_run("PatchOptions"),
        view=request.view,
    )
    return Answer(200, object_json(store, request.view, new), warnings)


def delete(store: Store, request: ResourceCall) -> Answer:
    target = request.target
    if target.subresource:
        raise method_not_allowed() if target.subresource in request.view.type.subresources else no_such_path()
    options = delete_options(request.call)
    gone = _delete_one(store, request, target.namespace, target.name, options)
    if not gone.gone or request.view.type.strategy.returns_deleted:
        # Upstream's word for "it will go, and what it owns with it", for who asks in the old way.
        code = 202 if not gone.gone and options.get("orphanDependents") is False else 200
        return Answer(code, object_json(store, request.view, gone.obj))
    group, plural = request.view.group, request.view.type.plural
    details = {"name": target.name, "group": group, "kind": plural, "uid": gone.obj["metadata"]["uid"]}
    details = {key: value for key, value in details.items() if value}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return Answer(200, encode(status))


def _delete_one(store: Store, request: ResourceCall, namespace: str, name: str, options: Obj) -> Deleted:
    preconditions = options.get("preconditions") or {}
    return store.delete(
        request.key,
        name,
        namespace,
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        grace=options.get("gracePeriodSeconds"),
        propagation=propagation(options),
        caller=request.call.caller,
        dry_run=bool(options.get("dryRun")),
    )


def delete_collection(store: Store, request: ResourceCall) -> Answer:
    """DELETE of a list: each matching object for itself."""
    query, target = request.call.query, request.target
    kind = request.view.type
    if kind.kind == "Namespace" or (kind.namespaced and not target.namespace):
        raise method_not_allowed()
    options = delete_options(request.call)
    chosen = selection(kind, target.namespace, query.text("labelSelector"), query.text("fieldSelector"), request.view)
    found = page(store.table(request.key), store.revision, chosen, query.number("limit") or 0, query.text("continue"))
    for entry in found.entries:
        meta = entry.obj["metadata"]
        try:
            _delete_one(store, request, meta.get("namespace", ""), meta["name"], options)
        except StatusError as error:
            if error.code != 404:
                raise
    return Answer(200, list_json(request.view, found))
