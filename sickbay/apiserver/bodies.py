"""Bodies of one known kind that are read and not kept: evictions, bindings, delete options, reviews."""

from __future__ import annotations

from sickbay.apiserver.calls import Call, decode_body
from sickbay.apiserver.errors import Cause, Obj, bad_request, invalid
from sickbay.apiserver.metadata import as_json, quoted
from sickbay.apiserver.openapi.decoding import decoded, decoded_metadata, kind_type

DELETE_OPTIONS = "DeleteOptions"
_FOREGROUND, _BACKGROUND, _ORPHAN = "Foreground", "Background", "Orphan"
_OLDER = {"Eviction": ("policy/v1beta1",)}
"""Versions that are read as well."""
POLICIES = ("", _FOREGROUND, _BACKGROUND, _ORPHAN)


def typed(body: Obj, group: str, version: str, kind: str) -> Obj:
    """A body as its Go type holds it. Raises StatusError(400) for another kind, and for fields that do not fit."""
    api_version = f"{group}/{version}" if group else version
    what = f'{body.get("kind") or kind} in version "{body.get("apiVersion") or api_version}"'
    accepted = ("", api_version, *_OLDER.get(kind, ()))
    if (body.get("kind") or kind) != kind or (body.get("apiVersion") or "") not in accepted:
        raise bad_request(f'{what} cannot be handled as a {kind}: the path names {kind} in version "{api_version}"')
    found = _typed(body, group, version, kind)
    return {**found, "metadata": decoded_metadata(what, body.get("metadata"))}


def _typed(body: Obj, group: str, version: str, kind: str) -> Obj:
    go_type = kind_type(group, version, kind)
    return body if go_type is None else decoded(go_type, f'{kind} in version "{version}"', body)


def delete_options(call: Call) -> Obj:
    """DeleteOptions from the body, or else from the query. Raises StatusError (400, 422)."""
    options = _in_body(call) if call.body else _in_query(call)
    check_delete_options(options)
    return options


def _in_body(call: Call) -> Obj:
    body = decode_body(call)
    kind = body.get("kind") or DELETE_OPTIONS
    if kind != DELETE_OPTIONS:
        version = body.get("apiVersion") or "meta.k8s.io/v1"
        raise bad_request(
            f"no kind {quoted(kind)} is registered for version {quoted(version)}: a DELETE takes {DELETE_OPTIONS}"
        )
    return _typed(body, "", "v1", DELETE_OPTIONS)


def _in_query(call: Call) -> Obj:
    query = call.query
    options: Obj = {
        "gracePeriodSeconds": query.number("gracePeriodSeconds"),
        "propagationPolicy": query.text("propagationPolicy"),
        "dryRun": query.every("dryRun"),
    }
    if query.present("orphanDependents"):
        options["orphanDependents"] = query.flag("orphanDependents")
    return options


def check_delete_options(options: Obj) -> None:
    """Raises StatusError(422) for words that are none, and for two that contradict each other."""
    causes = []
    policy, dry_run = options.get("propagationPolicy") or "", options.get("dryRun") or []
    if policy not in POLICIES:
        listed = '"Foreground", "Background", "Orphan", "nil"'
        message = f"Unsupported value: {quoted(policy)}: supported values: {listed}"
        causes.append(Cause("FieldValueNotSupported", message, "propagationPolicy"))
    elif policy and options.get("orphanDependents") is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(Cause("FieldValueInvalid", f"Invalid value: {quoted(policy)}: {why}", "propagationPolicy"))
    if any(word != "All" for word in dry_run):
        message = f'Unsupported value: {as_json(dry_run)}: supported values: "All"'
        causes.append(Cause("FieldValueNotSupported", message, "dryRun"))
    if causes:
        raise invalid(DELETE_OPTIONS, "meta.k8s.io", "", causes)


def propagation(options: Obj) -> str:
    """The policy asked for, in the new word or the old one; "" leaves it to the kind."""
    if options.get("propagationPolicy"):
        return str(options["propagationPolicy"])
    orphan = options.get("orphanDependents")
    if orphan is None:
        return ""
    return _ORPHAN if orphan else _BACKGROUND
