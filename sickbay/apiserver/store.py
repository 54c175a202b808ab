"""The store: every object, every rule of the API that is not about HTTP.

Synchronous and free of I/O. A call reads, checks and writes in one go, so between two calls the state is always
consistent, and under a deterministic event loop a whole run is a function of its seed.

Objects are plain dicts. What the store hands out is shared with its history and its watchers: never change it in
place. What it is given it copies.

One revision counter serves all resources, as etcd's does: it is the resourceVersion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from sickbay.apiserver import crds, versions
from sickbay.apiserver.apply.ownership import APPLY, UPDATE, Owner, apply, as_objects
from sickbay.apiserver.apply.typed import typed
from sickbay.apiserver.binding import bound
from sickbay.apiserver.builtin import register_builtin
from sickbay.apiserver.deletion import Deleted, DeleteOptions, Deletion
from sickbay.apiserver.errors import Obj, StatusError, Undecodable, already_exists, bad_request, conflict, not_found
from sickbay.apiserver.eviction import evict
from sickbay.apiserver.listing import check_kept, selection
from sickbay.apiserver.patching import JSON, MERGE, STRATEGIC, patcher
from sickbay.apiserver.persistence import Journal
from sickbay.apiserver.resources import Registry, ResourceType, Served
from sickbay.apiserver.table import Entry, Filter, Table, Watcher
from sickbay.apiserver.writes import SYSTEM, Caller, Hook, Write
from sickbay.clock import Clock, Randomness, rfc3339

HISTORY = 10_000
"""Changes kept for each resource; a watch that resumes from before them gets 410."""
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

__all__ = ["JSON", "MERGE", "STRATEGIC", "Store"]


def copied(obj: Obj) -> Obj:
    """A deep copy; also proves that the object is JSON."""
    try:
        result: Obj = msgspec.json.decode(msgspec.json.encode(obj))
    except TypeError as error:
        raise bad_request(f"the object is not JSON: {error}") from None
    return result


class Store:
    """All objects of one cluster."""

    decides = True
    """False where what is written here is only asked for: then nothing may be put past `create` and `patch`."""

    def __init__(
        self, clock: Clock, randomness: Randomness, *, history: int = HISTORY, journal: Journal | None = None
    ) -> None:
        """`journal` keeps the objects on disk; what it holds already is loaded."""
        self.clock = clock
        self.randomness = randomness
        self.resources = Registry()
        self.revision = 0
        self._history = history
        self._forgotten = 0
        """Nothing is known of changes up to this revision, whatever the resource."""
        self._tables: dict[str, Table] = {}
        self._before: list[Hook] = []
        self._validating: list[Hook] = []
        self._after: list[tuple[Hook, frozenset[str]]] = []
        self._told: dict[str, list[Hook]] = {}
        """Of each resource, whom to call after a write."""
        self.deletion = Deletion(self)
        self._journal = journal
        register_builtin(self.resources)
        if journal is not None:
            self._load(journal)
        for name in SYSTEM_NAMESPACES:
            if self.find("namespaces", name) is None:
                self.create("namespaces", {"metadata": {"name": name}})

    def _load(self, journal: Journal) -> None:
        """Take over what is on disk; the history begins there."""
        self.revision = self._forgotten = journal.revision
        stored = list(journal.objects())
        for found in stored:
            if found.resource == crds.CRDS:
                crds.definition_changed(self, found.obj)
        for found in stored:
            if found.resource in self.resources:
                self.table(found.resource).load(found.key, found.obj, found.revision)

    # -- hooks

    def before_write(self, hook: Hook) -> None:
        """Call `hook` before each write is judged. It may write itself, or raise a StatusError to refuse."""
        self._before.append(hook)

    def validate_update(self, hook: Hook) -> None:
        """Call `hook` with an object as it was and as an update or patch would leave it, as a validating webhook is
        called. It may raise a StatusError to refuse."""
        self._validating.append(hook)

    def after_write(self, hook: Hook, resources: Iterable[str] = ()) -> None:
        """Call `hook` after each write (of these resources, where any are named), when watchers have been told."""
        self._after.append((hook, frozenset(resources)))
        self._told.clear()

    def announce(self, write: Write) -> None:
        for hook in self._before:
            hook(write)

    def report(self, write: Write) -> None:
        hooks = self._told.get(write.resource)
        if hooks is None:
            hooks = [hook for hook, wanted in self._after if not wanted or write.resource in wanted]
            self._told[write.resource] = hooks
        for hook in hooks:
            hook(write)

    # -- reading

    def type(self, resource: str) -> ResourceType:
        """Raises StatusError(404) for a resource that is not served."""
        if resource not in self.resources:
            raise StatusError(404, "NotFound", f"the server could not find the requested resource ({resource})")
        return self.resources.get(resource)

    def table(self, resource: str) -> Table:
        found = self._tables.get(resource)
        if found is None:
            found = self._tables[resource] = Table(self.type(resource), self._history, self._forgotten)
        return found

    def entry(self, resource: str, name: str, namespace: str = "") -> Entry:
        """Raises StatusError(404)."""
        found = self.table(resource).entries.get(self.type(resource).object_key(namespace, name))
        if found is None:
            raise not_found(resource, name)
        return found

    def get(self, resource: str, name: str, namespace: str = "") -> Obj:
        """Raises StatusError(404)."""
        return self.entry(resource, name, namespace).obj

    def find(self, resource: str, name: str, namespace: str = "") -> Obj | None:
        if resource not in self.resources:
            return None
        found = self.table(resource).entries.get(self.type(resource).object_key(namespace, name))
        return None if found is None else found.obj

    def list(self, resource: str, namespace: str = "", *, labels: str = "", fields: str = "") -> list[Obj]:
        """Matching objects in key order (namespace, then name); all namespaces when none is given."""
        chosen = selection(self.type(resource), namespace, labels, fields)
        return [entry.obj for entry in self.table(resource).select(chosen)]

    def watch(self, resource: str, selection: Filter | None = None, *, since: int | None = None) -> Watcher:
        """Watch from a revision (now, when none is given). Raises StatusError(410) when that is no longer kept."""
        table = self.table(resource)
        revision = self.revision if since is None else since
        check_kept(table, revision)
        return table.watch(selection or Filter(), revision)

    def compact(self, revision: int | None = None) -> None:
        """Forget the history up to `revision` (all of it, when none is given); older watches and pages get 410."""
        upto = self.revision if revision is None else revision
        self._forgotten = max(self._forgotten, upto)
        for table in self._tables.values():
            table.compact(upto)

    def disconnect(self, resource: str = "") -> None:
        """End all watches (of one resource); clients see their stream close."""
        for key, table in self._tables.items():
            if resource in ("", key):
                for watcher in table.watchers():
                    watcher.close()

    # -- writing

    def create(
        self,
        resource: str,
        obj: Obj,
        namespace: str = "",
        *,
        caller: Caller = SYSTEM,
        dry_run: bool = False,
        view: Served | None = None,
    ) -> Obj:
        """Raises StatusError: 409 when it exists, 422 when it is invalid, 404 for an unknown namespace."""
        kind = self.type(resource)
        given = (obj.get("metadata") or {}).get("name", "")
        write = self._write("create", kind, namespace, given, "", caller, obj)
        self.announce(write)
        new = versions.created(self, kind, copied(obj), namespace, view)
        name, space = new["metadata"]["name"], new["metadata"].get("namespace", "")
        there = self.table(resource).entries.get(kind.object_key(space, name))
        if there is not None:
            raise already_exists(resource, name, ends="deletionTimestamp" in there.obj["metadata"])
        if dry_run:
            return new
        stored = self.put(kind, new)
        self.report(write.done(None, stored, namespace=space, name=name))
        return stored

    def update(
        self,
        resource: str,
        obj: Obj,
        namespace: str = "",
        *,
        subresource: str = "",
        caller: Caller = SYSTEM,
        dry_run: bool = False,
        view: Served | None = None,
    ) -> Obj:
        """Replace an object. A resourceVersion in it must be the current one; without one the last writer wins."""
        kind = self.type(resource)
        name = (obj.get("metadata") or {}).get("name", "")
        write = self._write("update", kind, namespace, name, subresource, caller, obj)
        return self._modify(
            kind, write, lambda old: versions.replacement(kind, copied(obj), old), dry_run, view, caller
        )

    def patch(
        self,
        resource: str,
        name: str,
        body: Any,
        patch_type: str = MERGE,
        namespace: str = "",
        *,
        subresource: str = "",
        caller: Caller = SYSTEM,
        dry_run: bool = False,
        view: Served | None = None,
    ) -> Obj:
        """Patch an object: `json` (a list of operations), `merge`, or `strategic` (built-in kinds only).

        `view` is the version the patch speaks of, where it is not the stored one.
        """
        kind = self.type(resource)
        write = self._write("patch", kind, namespace, name, subresource, caller, None)
        change = patcher(kind, body, patch_type)
        if view is not None and not view.native:
            return self._modify(kind, write, lambda old: view.inward(change(view.outward(old))), dry_run, view, caller)
        return self._modify(kind, write, change, dry_run, view, caller)

    def apply(
        self,
        resource: str,
        name: str,
        config: Obj,
        namespace: str = "",
        *,
        force: bool = False,
        subresource: str = "",
        caller: Caller = SYSTEM,
        dry_run: bool = False,
    ) -> tuple[Obj, bool]:
        """Server-side apply under `caller.manager`. Gives the object, and whether it was created.

        Raises StatusError: 409 for a field somebody else owns, 404 for the status of what does not exist.
        """
        kind = self.type(resource)
        write = self._write("patch", kind, namespace, name, subresource, caller, None)
        self.announce(write)
        old = self.find(resource, name, namespace)
        if old is None and subresource:
            raise not_found(resource, name)
        given = (config.get("metadata") or {}).get("resourceVersion", "")
        if given and (old is None or given != old["metadata"]["resourceVersion"]):
            raise conflict(resource, name)
        applier = self._owner(kind, caller, APPLY, subresource)
        wanted = kind.strategy.appliable(copied(config), subresource)
        by_kubectl = caller.user_agent.startswith("kubectl/")
        applied = apply(typed(kind), old, wanted, applier, force=force, by_kubectl=by_kubectl)
        managed = as_objects(applied.entries)
        if old is not None:
            return self._finish(
                kind,
                write,
                old,
                lambda: versions.updated(kind, applied.obj, old, subresource, None, lambda: applier, managed),
                dry_run,
            ), False
        try:
            new = versions.created(self, kind, applied.obj, namespace, None, managed)
        except Undecodable as error:
            raise error.of_patch() from None
        if dry_run:
            return new, True
        stored = self.put(kind, new)
        self.report(write.done(None, stored))
        return stored, True

    def _owner(self, kind: ResourceType, caller: Caller, operation: str, subresource: str) -> Owner:
        now = rfc3339(self.clock.now())
        return Owner(caller.manager, operation, kind.api_version, subresource, now, {})

    def _write(
        self,
        verb: str,
        kind: ResourceType,
        namespace: str,
        name: str,
        subresource: str,
        caller: Caller,
        new: Obj | None,
    ) -> Write:
        old = self.find(kind.key, name, namespace)
        return Write(verb, kind.key, kind.kind, namespace, name, subresource, caller.user, caller.user_agent, old, new)

    def _modify(
        self,
        kind: ResourceType,
        write: Write,
        change: Callable[[Obj], Obj],
        dry_run: bool,
        view: Served | None,
        caller: Caller,
    ) -> Obj:
        self.announce(write)
        old = self.get(kind.key, write.name, write.namespace)

        def writer() -> Owner:
            return self._owner(kind, caller, UPDATE, write.subresource)

        return self._finish(
            kind,
            write,
            old,
            lambda: versions.updated(kind, change(old), old, write.subresource, view, writer),
            dry_run,
        )

    def _finish(self, kind: ResourceType, write: Write, old: Obj, build: Callable[[], Obj], dry_run: bool) -> Obj:
        try:
            new = build()
        except Undecodable as error:
            raise (error.of_patch() if write.verb == "patch" else error) from None
        for hook in self._validating:
            hook(write.done(old, new))
        if dry_run:
            return new
        if new == old:
            self.report(write.done(old, old))
            return old
        if versions.ends(new):
            final = self.drop(kind, new)
            self.report(write.done(old, None))
            return final
        stored = self.put(kind, new)
        self.report(write.done(old, stored))
        return stored

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        grace: int | None = None,
        propagation: str = "",
        caller: Caller = SYSTEM,
        dry_run: bool = False,
    ) -> Deleted:
        """Delete, or begin to: finalizers and the grace of a running pod let the object live on, marked.

        Raises StatusError: 404, or 409 when `uid` or `resource_version` do not match.
        """
        kind = self.type(resource)
        write = self._write("delete", kind, namespace, name, "", caller, None)
        self.announce(write)
        options = DeleteOptions(uid, resource_version, grace, propagation, dry_run)
        return self.deletion.delete(kind, write, options)

    def evict(
        self,
        name: str,
        namespace: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace: int | None = None,
        caller: Caller = SYSTEM,
        dry_run: bool = False,
    ) -> None:
        """Evict a pod where its budget allows it. Raises StatusError: 404, 409, 429 (budget), 500 (two budgets)."""
        kind = self.type("pods")
        write = self._write("evict", kind, namespace, name, "eviction", caller, None)
        self.announce(write)
        evict(self, write, DeleteOptions(uid, resource_version, grace, "", dry_run))

    def bind(self, name: str, namespace: str, node: str, *, uid: str = "", caller: Caller = SYSTEM) -> None:
        """Assign a pod to a node, as the scheduler does. Raises StatusError(409) when it is assigned already."""
        kind = self.type("pods")
        write = self._write("create", kind, namespace, name, "binding", caller, None)
        self.announce(write)
        old = self.get("pods", name, namespace)
        stored = self.put(kind, bound(old, node, uid, rfc3339(self.clock.now())))
        self.report(write.done(old, stored))

    # -- committing

    def next_revision(self) -> int:
        self.revision += 1
        return self.revision

    def put(self, kind: ResourceType, obj: Obj) -> Obj:
        """Store a finished version under the next revision. No rule is applied: for the store's own modules."""
        revision = self.next_revision()
        meta = {**obj["metadata"], "resourceVersion": str(revision)}
        stored = {**obj, "metadata": meta}
        table = self.table(kind.key)
        entry = table.entry(kind.object_key(meta.get("namespace", ""), meta["name"]), stored, revision)
        if self._journal is not None:
            self._journal.put(kind.key, entry.key, revision, entry.json())
        if kind.key == crds.CRDS:
            crds.definition_changed(self, stored)
        table.put(entry)
        return stored

    def drop(self, kind: ResourceType, obj: Obj) -> Obj:
        """Remove an object whose last state is `obj`. No rule is applied: for the store's own modules."""
        revision = self.next_revision()
        meta = {**obj["metadata"], "resourceVersion": str(revision)}
        final = {**obj, "metadata": meta}
        table = self.table(kind.key)
        entry = table.entry(kind.object_key(meta.get("namespace", ""), meta["name"]), final, revision)
        if self._journal is not None:
            self._journal.drop(kind.key, entry.key, revision)
        table.remove(entry)
        if kind.key == crds.CRDS:
            crds.definition_gone(self, final)
        return final

    def serve(self, kind: ResourceType) -> None:
        """Make a custom resource served, or change how it is."""
        self.resources.add(kind)
        found = self._tables.get(kind.key)
        if found is not None:
            found.resource = kind

    def unserve(self, resource: str) -> None:
        """Remove a custom resource and all its objects; its watches end."""
        if resource not in self.resources:
            return
        kind, table = self.type(resource), self.table(resource)
        for key in table.sorted_keys():
            self.drop(kind, table.entries[key].obj)
        for watcher in table.watchers():
            watcher.close()
        self.resources.remove(resource)
        self._tables.pop(resource, None)
        # Should it be served again, its table begins here.
        self._forgotten = max(self._forgotten, self.revision)
