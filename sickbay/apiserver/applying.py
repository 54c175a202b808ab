"""PATCH with `application/apply-patch+yaml`: server-side apply."""

from __future__ import annotations

from sickbay.api.structural import unknown_fields
from sickbay.apiserver.calls import Answer, ResourceCall
from sickbay.apiserver.errors import Cause, Obj, StatusError, bad_request, internal, invalid
from sickbay.apiserver.openapi.decoding import unknown_paths
from sickbay.apiserver.reading import object_json
from sickbay.apiserver.resources import Served
from sickbay.apiserver.store import Store
from sickbay.apiserver.texts import read_yaml


def apply(store: Store, request: ResourceCall) -> Answer:
    """Raises StatusError; 409 names the fields that others own."""
    call, target, view = request.call, request.target, request.view
    if not call.query.text("fieldManager"):
        cause = Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
        raise invalid("PatchOptions", "meta.k8s.io", "", [cause])
    if not view.native:
        raise bad_request(f"apply {view.type.kind} as {view.type.api_version}: this version is a view of it")
    config = _configuration(call.body)
    _check(view, config, target.name)
    obj, is_new = store.apply(
        request.key,
        target.name,
        config,
        target.namespace,
        force=call.query.flag("force"),
        subresource=target.subresource,
        caller=call.caller,
        dry_run=call.query.dry_run("PatchOptions"),
    )
    return Answer(201 if is_new else 200, object_json(store, view, obj))


def _configuration(body: bytes) -> Obj:
    try:
        config = read_yaml(body)
    except ValueError as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise bad_request("error decoding YAML: the configuration is no object")
    return config


def _check(view: Served, config: Obj, name: str) -> None:
    kind, version = config.get("kind", ""), config.get("apiVersion", "")
    if (kind, version) != (view.type.kind, view.api_version):
        group = version if "/" in str(version) else f"/{version}"
        raise bad_request(f"invalid object type: {group}, Kind={kind}")
    given = config.get("metadata")
    metadata = {} if given is None else given
    if not isinstance(metadata, dict):
        raise bad_request(f"{kind} cannot be applied: metadata: an object is needed, not {metadata!r}")
    config["metadata"] = metadata
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if metadata.setdefault("name", name) != name:
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    if view.type.custom is None:
        plain = _without_nulls(config)
        config.clear()
        config.update(plain)
    if unknown := next(iter(_unknown(view, config)), ""):
        raise _undeclared(view, config, unknown)


def _without_nulls(config: Obj) -> Obj:
    """A null in a configuration of a built-in kind says nothing: it neither sets a field nor gives one up."""
    kept = {key: value for key, value in config.items() if value is not None}
    return {key: _without_nulls(value) if isinstance(value, dict) else value for key, value in kept.items()}


def _unknown(view: Served, config: Obj) -> list[str]:
    if view.type.custom is not None:
        return [found.path for found in unknown_fields(view.type.custom.schema, config)]
    go_type = view.type.go_type
    return [] if go_type is None else list(unknown_paths(go_type, config))


def _undeclared(view: Served, config: Obj, path: str) -> StatusError:
    meta = config["metadata"]
    where = f"{meta.get('namespace', '')}/{meta['name']}; {view.api_version}, Kind={view.type.kind}"
    return internal(f"failed to create typed patch object ({where}): .{path}: field not declared in schema")
