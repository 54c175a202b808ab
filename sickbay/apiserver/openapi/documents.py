"""The OpenAPI v3 documents: one for each group and version, and an index of them.

kubectl explain reads the schemas. kubectl apply looks whether PATCH takes `fieldValidation`, and if so leaves the
checking of fields to the server. Custom resources are described by the schema of their definition.
"""

from __future__ import annotations

import hashlib
from typing import Any

from sickbay.apiserver.calls import Answer, Call, encode, json_answer
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.openapi.schemas import OBJECT_META, PREFIX, Schema, closure, name_of
from sickbay.apiserver.resources import Registry, Served

_ROOT = "/openapi/v3"


def answer(registry: Registry, call: Call) -> Answer | None:
    """The document at a path; None for other paths and for what is not served."""
    if call.path == _ROOT:
        return json_answer(200, _index(registry))
    parts = call.path.removeprefix(f"{_ROOT}/").split("/")
    match parts:
        case ["api", version]:
            views = _views(registry, "", version)
        case ["apis", group, version]:
            views = _views(registry, group, version)
        case _:
            return None
    return json_answer(200, _document(views)) if views else None


def _views(registry: Registry, group: str, version: str) -> list[Served]:
    return [view for view in registry.served() if (view.group, view.version) == (group, version)]


def _index(registry: Registry) -> Obj:
    pairs = sorted({(view.group, view.version) for view in registry.served()})
    paths = {}
    for group, version in pairs:
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        # Clients cache a document until its address changes.
        content = encode(
            [view.type.custom.schema if view.type.custom else None for view in _views(registry, group, version)]
        )
        digest = hashlib.sha256(content).hexdigest().upper()
        paths[path] = {"serverRelativeURL": f"{_ROOT}/{path}?hash={digest}"}
    return {"paths": paths}


def _document(views: list[Served]) -> Obj:
    names = {view: schema_name(view) for view in views}
    schemas = closure({*names.values(), OBJECT_META})
    schemas |= {names[view]: _custom_schema(view) for view in views if view.type.custom is not None}
    paths: dict[str, Any] = {}
    for view, name in names.items():
        paths |= _paths(view, name)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def schema_name(view: Served) -> str:
    """What the schema of a resource is called: recorded names for built-in kinds, `dev.sickbay.v1alpha1.Hold`."""
    recorded = name_of(view.group, view.version, view.type.kind) if view.type.custom is None else None
    return recorded or ".".join([*reversed(view.group.split(".")), view.version, view.type.kind])


def _identity(view: Served) -> Obj:
    return {"group": view.group, "version": view.version, "kind": view.type.kind}


def _custom_schema(view: Served) -> Schema:
    schema: Schema = dict(view.type.custom.schema)
    about = {
        "apiVersion": {"type": "string", "description": "The version of the schema this object is in."},
        "kind": {"type": "string", "description": "The kind of the object."},
        "metadata": {"description": "Standard object metadata.", "allOf": [{"$ref": PREFIX + OBJECT_META}]},
    }
    schema["properties"] = {**about, **(schema.get("properties") or {}), "metadata": about["metadata"]}
    schema["x-kubernetes-group-version-kind"] = [_identity(view)]
    return schema


def _paths(view: Served, name: str) -> Obj:
    base = f"/apis/{view.group}/{view.version}" if view.group else f"/api/{view.version}"
    scope = "/namespaces/{namespace}" if view.type.namespaced else ""
    collection = f"{base}{scope}/{view.type.plural}"
    content = {"application/json": {"schema": {"$ref": PREFIX + name}}}
    responses = {"200": {"description": "OK", "content": content}}

    def operation(action: str) -> Obj:
        return {
            "operationId": f"{action}{view.type.kind}",
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": _identity(view),
            "parameters": [_query("fieldValidation"), _query("dryRun"), _query("fieldManager")],
            "responses": responses,
        }

    return {
        collection: {"get": operation("list"), "post": operation("post")},
        collection + "/{name}": {
            "get": operation("get"),
            "put": operation("put"),
            "patch": operation("patch"),
            "delete": operation("delete"),
        },
    }


def _query(name: str) -> Obj:
    return {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
