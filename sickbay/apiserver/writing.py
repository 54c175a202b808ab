"""POST, PUT, PATCH and DELETE, and the subresources that are written to."""

from __future__ import annotations

from typing import Any

from sickbay.apiserver import store as storing
from sickbay.apiserver.calls import Answer, ResourceCall, decode, decode_body, encode, json_answer
from sickbay.apiserver.deletion import Deleted
from sickbay.apiserver.errors import (
    Obj,
    StatusError,
    bad_request,
    invalid,
    method_not_allowed,
    no_such_path,
    unsupported_media_type,
)
from sickbay.apiserver.listing import Page, selection
from sickbay.apiserver.protobuf import delete_options, is_protobuf
from sickbay.apiserver.reading import list_json, object_json
from sickbay.apiserver.store import Store

PATCH_TYPES = {
    "application/json-patch+json": storing.JSON,
    "application/merge-patch+json": storing.MERGE,
    "application/strategic-merge-patch+json": storing.STRATEGIC,
}


def create(store: Store, request: ResourceCall) -> Answer:
    target, call = request.target, request.call
    if target.name:
        return _subresource(store, request)
    obj = _inward(request, decode_body(call))
    if request.view.check_new is not None and (causes := request.view.check_new(obj)):
        raise invalid(
            request.view.type.kind, request.view.type.group, (obj.get("metadata") or {}).get("name", ""), causes
        )
    new = store.create(request.key, obj, target.namespace, caller=call.caller, dry_run=call.query.dry_run())
    return Answer(201, object_json(store, request.view, new))


def _inward(request: ResourceCall, obj: Obj) -> Obj:
    """The object in its stored form; a body without kind or apiVersion is taken to be of the path's."""
    view = request.view
    for field, expected in (("kind", view.type.kind), ("apiVersion", view.api_version)):
        given = obj.setdefault(field, expected)
        if given != expected:
            raise bad_request(
                f'{obj.get("kind")} in version "{obj.get("apiVersion", view.api_version)}" cannot be handled as a'
                f" {view.type.kind}: the path names {view.type.kind} in version {view.api_version}"
            )
    if view.native:
        return obj
    return {**view.inward(obj), "apiVersion": view.type.api_version}


def _subresource(store: Store, request: ResourceCall) -> Answer:
    target = request.target
    name = f"{request.key}/{target.subresource}"
    if target.subresource not in request.view.type.subresources:
        raise no_such_path() if target.subresource else method_not_allowed()
    if name == "pods/eviction":
        return _evict(store, request)
    if name == "pods/binding":
        return _bind(store, request)
    raise method_not_allowed()


def _evict(store: Store, request: ResourceCall) -> Answer:
    call, target = request.call, request.target
    body = decode_body(call)
    given = (body.get("metadata") or {}).get("name", "")
    if given and given != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = body.get("deleteOptions") or {}
    preconditions = options.get("preconditions") or {}
    store.evict(
        target.name,
        target.namespace,
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        grace=options.get("gracePeriodSeconds"),
        caller=call.caller,
        dry_run=call.query.dry_run() or bool(options.get("dryRun")),
    )
    return json_answer(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


def _bind(store: Store, request: ResourceCall) -> Answer:
    target = request.target
    body = decode_body(request.call)
    if (body.get("metadata") or {}).get("name", "") != target.name:
        raise bad_request("name in URL does not match name in Binding object")
    node = (body.get("target") or {}).get("name", "")
    if not node:
        raise bad_request("target.name: Required value: the name of the node")
    uid = (body.get("metadata") or {}).get("uid") or ""
    store.bind(target.name, target.namespace, node, uid=uid, caller=request.call.caller)
    return json_answer(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


def _check_subresource(request: ResourceCall, verb: str) -> None:
    subresource = request.target.subresource
    if not subresource:
        return
    if subresource not in request.view.type.subresources:
        raise no_such_path()
    if subresource not in ("status", "finalize"):
        raise method_not_allowed()


def update(store: Store, request: ResourceCall) -> Answer:
    call, target = request.call, request.target
    _check_subresource(request, "update")
    obj = _inward(request, decode_body(call))
    meta = obj.setdefault("metadata", {})
    name = meta.setdefault("name", target.name)
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    options: dict[str, Any] = {"caller": call.caller, "dry_run": call.query.dry_run("UpdateOptions")}
    absent = store.find(request.key, target.name, target.namespace) is None
    if absent and request.view.type.strategy.create_on_update and not target.subresource:
        new = store.create(request.key, obj, target.namespace, **options)
        return Answer(201, object_json(store, request.view, new))
    new = store.update(request.key, obj, target.namespace, subresource=target.subresource, **options)
    return Answer(200, object_json(store, request.view, new))


def patch(store: Store, request: ResourceCall) -> Answer:
    call, target = request.call, request.target
    _check_subresource(request, "patch")
    kind = PATCH_TYPES.get(call.content_type)
    if kind is None:
        raise unsupported_media_type(tuple(PATCH_TYPES))
    new = store.patch(
        request.key,
        target.name,
        decode(call.body),
        kind,
        target.namespace,
        subresource=target.subresource,
        caller=call.caller,
        dry_run=call.query.dry_run("PatchOptions"),
        view=request.view,
    )
    return Answer(200, object_json(store, request.view, new))


def _delete_options(request: ResourceCall) -> Obj:
    """DeleteOptions from the body and the query; the body wins."""
    call = request.call
    if is_protobuf(call.body):
        options = delete_options(call.body)
    elif call.body.strip():
        options = decode_body(call)
    else:
        options = {}
    query = call.query
    if "gracePeriodSeconds" not in options:
        options["gracePeriodSeconds"] = query.number("gracePeriodSeconds")
    options.setdefault("propagationPolicy", query.text("propagationPolicy"))
    if query.dry_run("DeleteOptions"):
        options["dryRun"] = ["All"]
    return options


def _policy(options: Obj) -> str:
    if options.get("propagationPolicy"):
        return str(options["propagationPolicy"])
    orphan = options.get("orphanDependents")
    if orphan is None:
        return ""
    return "Orphan" if orphan else "Background"


def delete(store: Store, request: ResourceCall) -> Answer:
    target = request.target
    if target.subresource:
        raise method_not_allowed()
    options = _delete_options(request)
    gone = _delete_one(store, request, target.namespace, target.name, options)
    if not gone.gone or request.view.type.strategy.returns_deleted:
        return Answer(200, object_json(store, request.view, gone.obj))
    group, plural = request.view.type.group, request.view.type.plural
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
        propagation=_policy(options),
        caller=request.call.caller,
        dry_run=bool(options.get("dryRun")),
    )


def delete_collection(store: Store, request: ResourceCall) -> Answer:
    """DELETE of a list: each matching object for itself."""
    query, target = request.call.query, request.target
    kind = request.view.type
    if kind.kind == "Namespace" or (kind.namespaced and not target.namespace):
        raise method_not_allowed()
    options = _delete_options(request)
    chosen = selection(kind, target.namespace, query.text("labelSelector"), query.text("fieldSelector"), request.view)
    entries = store.table(request.key).select(chosen)
    for entry in entries:
        meta = entry.obj["metadata"]
        try:
            _delete_one(store, request, meta.get("namespace", ""), meta["name"], options)
        except StatusError as error:
            if error.code != 404:
                raise
    return Answer(200, list_json(request.view, Page(entries, store.revision)))
