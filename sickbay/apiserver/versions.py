"""From what a client sent to the version that is stored: metadata, the kind's strategy, validation.

    created   a new object          updated   the next version of one          ends   whether a version is the last

Nothing is stored here. What a client sent is a private copy by now; a stored version is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sickbay.apiserver import metadata
from sickbay.apiserver.apply.ownership import Owner, after_update
from sickbay.apiserver.apply.typed import typed
from sickbay.apiserver.errors import (
    Cause,
    Obj,
    StatusError,
    Undecodable,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from sickbay.apiserver.openapi.decoding import decoded, decoded_metadata
from sickbay.apiserver.resources import ResourceType, Served
from sickbay.clock import rfc3339

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store


Managed = list[Any] | None
"""managedFields as an apply leaves them; None for writes that are none."""


def created(
    store: Store, kind: ResourceType, obj: Obj, namespace: str, view: Served | None, managed: Managed = None
) -> Obj:
    """Raises StatusError (400, 403, 404, 422)."""
    meta = _created_metadata(store, kind, obj, namespace)
    if managed:
        meta["managedFields"] = managed
    new = _decoded(kind, {**obj, "metadata": meta}, None)
    _check_type(kind, new)
    kind.strategy.prepare_create(new, store)
    if kind.strategy.generation:
        new["metadata"]["generation"] = 1
    causes = metadata.check_name(meta, kind.strategy.name_problems)
    causes += metadata.check(new["metadata"], None)
    causes += kind.strategy.validate(new, None, "")
    _refuse(kind, meta["name"], causes + _asked_by(view, new, None), view)
    return new


def _created_metadata(store: Store, kind: ResourceType, obj: Obj, namespace: str) -> Obj:
    given = decoded_metadata(_what(kind), obj.get("metadata"))
    if given.get("resourceVersion", "") not in ("", "0"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    meta = metadata.normalise(given)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"):
        meta.pop(field, None)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = _fresh_name(store, kind, meta["generateName"], namespace)
    if not meta.get("name"):
        cause = metadata.required("metadata.name", "name or generateName is required")
        raise invalid(kind.kind, kind.group, "", [cause])
    _place(store, kind, meta, namespace)
    meta["uid"] = store.randomness.uuid()
    meta["creationTimestamp"] = rfc3339(store.clock.now())
    return meta


def _fresh_name(store: Store, kind: ResourceType, base: str, namespace: str) -> str:
    entries = store.table(kind.key).entries
    while True:
        name = metadata.generated_name(base, store.randomness.below)
        if kind.object_key(namespace, name) not in entries:
            return name


def _place(store: Store, kind: ResourceType, meta: Obj, namespace: str) -> None:
    """Settle the namespace, which must exist and live."""
    if not kind.namespaced:
        meta.pop("namespace", None)
        return
    given = meta.get("namespace", "")
    if given and namespace and given != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    space = given or namespace
    if not space:
        raise bad_request("an empty namespace may not be set during creation")
    meta["namespace"] = space
    found = store.find("namespaces", space)
    if found is None:
        raise not_found("namespaces", space)
    if (found.get("status") or {}).get("phase") == "Terminating":
        why = f"unable to create new content in namespace {space} because it is being terminated"
        message = f"namespace {space} is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
        raise forbidden(kind.key, meta.get("name", ""), why, [cause])


def replacement(kind: ResourceType, new: Obj, old: Obj) -> Obj:
    """What a PUT brings, where it may replace `old`. Raises StatusError (409, 422)."""
    meta, before = new.get("metadata") or {}, old["metadata"]
    uid = meta.get("uid", "")
    if uid and uid != before["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}"
        raise conflict(kind.key, before["name"], why)
    if not kind.strategy.unconditional and not meta.get("resourceVersion"):
        cause = metadata.invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise invalid(kind.plural, kind.group, before["name"], [cause])
    return new


def updated(
    kind: ResourceType,
    candidate: Obj,
    old: Obj,
    subresource: str,
    view: Served | None,
    writer: Callable[[], Owner],
    managed: Managed = None,
) -> Obj:
    """Raises StatusError (400, 409, 422).

    `managed` is given by an apply. Other writers own what they change of an object that has owners: then `writer` is
    asked for.
    """
    before = old["metadata"]
    meta = metadata.normalise(decoded_metadata(_what(kind), candidate.get("metadata"), before))
    new = _decoded(kind, {**candidate, "metadata": meta}, old)
    _check_type(kind, new)
    _check_place(meta, before)
    if meta.get("resourceVersion", "0") not in ("0", before["resourceVersion"]):
        raise conflict(kind.key, before["name"])
    causes = metadata.check_update(meta, before)
    meta["resourceVersion"] = before["resourceVersion"]
    if subresource == "status":
        kind.strategy.prepare_status(new, old)
    elif subresource == "finalize":
        kind.strategy.prepare_finalize(new, old)
    else:
        kind.strategy.prepare_update(new, old)
    _count_generation(kind, new, old)
    causes += metadata.check(new["metadata"], before)
    causes += kind.strategy.validate(new, old, subresource)
    _refuse(kind, before["name"], causes + _asked_by(view, new, old), view)
    owned = managed
    if owned is None and before.get("managedFields"):
        owned = after_update(typed(kind), new, old, writer())
    if owned:
        new["metadata"]["managedFields"] = owned
    return new


def _what(kind: ResourceType) -> str:
    return f'{kind.kind} in version "{kind.version}"'


def _check_place(meta: Obj, before: Obj) -> None:
    """Name and namespace must be those of the path, which are those of the object as it is."""
    wanted = before["name"]
    if not meta.get("name"):
        raise bad_request(f"the name of the object ({wanted} based on URL) was undeterminable: name must be provided")
    if meta["name"] != wanted:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({wanted})")
    if meta.get("namespace", before.get("namespace")) != before.get("namespace"):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _decoded(kind: ResourceType, obj: Obj, old: Obj | None) -> Obj:
    """A built-in kind as its Go type holds it; the top level is a private copy in any case."""
    go_type = kind.go_type
    return obj if go_type is None else decoded(go_type, _what(kind), obj, old)


def _count_generation(kind: ResourceType, new: Obj, old: Obj) -> None:
    meta, before = new["metadata"], old["metadata"]
    if "generation" not in before:
        meta.pop("generation", None)
    elif kind.strategy.generation and kind.strategy.changes_generation(new, old):
        meta["generation"] = before["generation"] + 1
    else:
        meta["generation"] = before["generation"]


def _check_type(kind: ResourceType, obj: Obj) -> None:
    """The stored object names its own kind; a body that names another is refused."""
    for field, expected in (("kind", kind.kind), ("apiVersion", kind.api_version)):
        given = obj.setdefault(field, expected)
        if given != expected:
            raise Undecodable(
                f"the object provided is unrecognized (must be of type {kind.kind}): {field} is {given!r},"
                f" expected {expected!r}"
            )


def _asked_by(view: Served | None, new: Obj, old: Obj | None) -> list[Cause]:
    """What the version spoken asks beyond the kind's own rules."""
    return view.check(new, old) if view is not None and view.check is not None else []


def _refuse(kind: ResourceType, name: str, causes: list[Cause], view: Served | None) -> None:
    if not causes:
        return
    if view is not None and view.cause_names:
        causes = [replace(cause, field=view.cause_names.get(cause.field, cause.field)) for cause in causes]
    raise invalid(kind.kind, kind.group, name, causes)


def ends(obj: Obj) -> bool:
    """Whether a version is the last: marked for deletion, and nothing holds it any more."""
    meta: Mapping[str, Any] = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers"):
        return False
    if obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers"):
        return False
    return not meta.get("deletionGracePeriodSeconds")
