"""Subresources that are created: evictions and bindings."""

from __future__ import annotations

from sickbay.apiserver.bodies import check_delete_options, typed
from sickbay.apiserver.calls import Answer, ResourceCall, decode_body, json_answer
from sickbay.apiserver.errors import Obj, bad_request, method_not_allowed, no_such_path
from sickbay.apiserver.store import Store

_SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def create(store: Store, request: ResourceCall) -> Answer:
    """POST below an object. Raises StatusError."""
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
    body = typed(decode_body(call), "policy", "v1", "Eviction")
    meta = body["metadata"]
    if (meta.get("namespace") or target.namespace) != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if meta.get("name", "") != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = body.get("deleteOptions") or {}
    check_delete_options(options)
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
    return json_answer(201, _SUCCESS)


def _bind(store: Store, request: ResourceCall) -> Answer:
    target = request.target
    body = typed(decode_body(request.call), "", "v1", "Binding")
    if body["metadata"].get("name", "") != target.name:
        raise bad_request("name in URL does not match name in Binding object")
    node = (body.get("target") or {}).get("name", "")
    if not node:
        raise bad_request("target.name: Required value: the name of the node")
    uid = body["metadata"].get("uid") or ""
    store.bind(target.name, target.namespace, node, uid=uid, caller=request.call.caller)
    return json_answer(201, _SUCCESS)
