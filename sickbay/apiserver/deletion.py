"""Deletion: at once, after a grace period, or when the last finalizer is gone.

A DELETE of an object that cannot go yet only marks it: `deletionTimestamp` (for a pod: when its grace ends),
`deletionGracePeriodSeconds`, and a finalizer for the propagation asked for. The kubelet's second DELETE (grace 0) or
the update that takes the last finalizer away removes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from sickbay.apiserver.errors import Obj, conflict, forbidden
from sickbay.apiserver.resources import ResourceType
from sickbay.apiserver.writes import Write
from sickbay.clock import parse_time, rfc3339

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store

FOREGROUND, ORPHAN, BACKGROUND = "Foreground", "Orphan", "Background"
IMMORTAL_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
"""Namespaces the NamespaceLifecycle admission plug-in keeps."""
_FINALIZER = {FOREGROUND: "foregroundDeletion", ORPHAN: "orphan"}


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    uid: str = ""
    resource_version: str = ""
    grace: int | None = None
    """Seconds; None = the kind's own."""
    propagation: str = ""
    dry_run: bool = False


class Deleted(NamedTuple):
    """`gone` is False while a grace period or a finalizer keeps the object."""

    obj: Obj
    gone: bool


class Deletion:
    """Carries deletions out on a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def delete(self, kind: ResourceType, write: Write, options: DeleteOptions) -> Deleted:
        """Raises StatusError(404 or 409)."""
        old = self._store.get(kind.key, write.name, write.namespace)
        check_preconditions(kind, old, options)
        marked, remove = self._outcome(kind, old, options)
        if options.dry_run:
            return Deleted(marked, remove)
        if remove:
            final = self._store.drop(kind, marked)
            self._store.report(write.done(old, None))
            return Deleted(final, True)
        if marked == old:
            self._store.report(write.done(old, old))
            return Deleted(old, False)
        stored = self._store.put(kind, marked)
        self._store.report(write.done(old, stored))
        return Deleted(stored, False)

    def _outcome(self, kind: ResourceType, old: Obj, options: DeleteOptions) -> tuple[Obj, bool]:
        """The object after the DELETE, and whether that is its end."""
        finalizers = _finalizers(old, options.propagation)
        grace = kind.strategy.grace(old, options.grace)
        if kind.kind == "Namespace":
            return self._namespace(old, finalizers)
        if grace:
            return self._graceful(old, finalizers, grace), False
        if finalizers or grace == 0:
            return self._marked(old, finalizers, 0), not finalizers
        return old, True

    def _graceful(self, old: Obj, finalizers: list[str], grace: int) -> Obj:
        meta = old["metadata"]
        current = meta.get("deletionGracePeriodSeconds")
        if meta.get("deletionTimestamp") and current is not None and current <= grace:
            return _with_finalizers(old, finalizers)
        return self._marked(old, finalizers, grace)

    def _marked(self, old: Obj, finalizers: list[str], grace: int) -> Obj:
        meta = dict(old["metadata"])
        if not meta.get("deletionTimestamp"):
            end = self._store.clock.now() + timedelta(seconds=grace)
            if "generation" in meta:
                meta["generation"] += 1
        else:
            # A shorter grace moves the end forward, counted from when the deletion began.
            before = meta.get("deletionGracePeriodSeconds") or 0
            end = parse_time(meta["deletionTimestamp"]) - timedelta(seconds=before) + timedelta(seconds=grace)
        meta["deletionTimestamp"] = rfc3339(end)
        meta["deletionGracePeriodSeconds"] = grace
        return _with_finalizers({**old, "metadata": meta}, finalizers)

    def _namespace(self, old: Obj, finalizers: list[str]) -> tuple[Obj, bool]:
        if old["metadata"]["name"] in IMMORTAL_NAMESPACES:
            raise forbidden("namespaces", old["metadata"]["name"], "this namespace may not be deleted")
        status = {**(old.get("status") or {}), "phase": "Terminating"}
        marked = old
        if not old["metadata"].get("deletionTimestamp"):
            meta = {**old["metadata"], "deletionTimestamp": rfc3339(self._store.clock.now())}
            marked = {**old, "metadata": meta, "status": status}
        held = bool(finalizers or (old.get("spec") or {}).get("finalizers"))
        return _with_finalizers(marked, finalizers), not held


def _finalizers(obj: Obj, propagation: str) -> list[str]:
    """The finalizers after a DELETE that asks for a propagation policy."""
    current = list(obj["metadata"].get("finalizers") or ())
    if not propagation:
        return current
    kept = [name for name in current if name not in _FINALIZER.values()]
    return [*kept, _FINALIZER[propagation]] if propagation in _FINALIZER else kept


def _with_finalizers(obj: Obj, finalizers: list[str]) -> Obj:
    if finalizers == list(obj["metadata"].get("finalizers") or ()):
        return obj
    meta = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
    if finalizers:
        meta["finalizers"] = finalizers
    return {**obj, "metadata": meta}


def check_preconditions(kind: ResourceType, obj: Obj, options: DeleteOptions) -> None:
    """Raises StatusError(409) when the object is not the one, or not the version, the caller means."""
    meta = obj["metadata"]
    # Upstream names the kind here, where all its other messages name the resource.
    of = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    if options.uid and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']})."
            " The object might have been deleted and then recreated"
        )
        raise conflict(of, meta["name"], why)
    if options.resource_version and options.resource_version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion"
            f" in record ({meta['resourceVersion']}). The object might have been modified"
        )
        raise conflict(of, meta["name"], why)
