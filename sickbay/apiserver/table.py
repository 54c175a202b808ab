"""The objects of one resource, their history and who watches them.

Objects in a table are never changed, only replaced: a version that was handed out stays as it was, watchers and the
history share it, and its JSON text is made once. The history is a bounded ring: a watch from a revision that has left
it must list again (410), as after an etcd compaction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.resources import ResourceType
from sickbay.apiserver.selectors import FieldTerm, Predicate, field_value

_encode = msgspec.json.Encoder().encode


class Entry:
    """One version of one object."""

    __slots__ = ("_json", "key", "obj", "prefix", "revision")

    def __init__(self, key: str, obj: Obj, revision: int, prefix: bytes) -> None:
        self.key = key
        self.obj = obj
        self.revision = revision
        self.prefix = prefix
        self._json: bytes | None = None

    def json(self) -> bytes:
        """The object as JSON, kind and apiVersion first."""
        if self._json is None:
            bare = {key: value for key, value in self.obj.items() if key != "kind" and key != "apiVersion"}
            text = _encode(bare)
            self._json = self.prefix + text[1:] if bare else self.prefix[:-1] + b"}"
        return self._json

    def bare_json(self) -> bytes:
        """The same without kind and apiVersion, as items of a built-in list are shown."""
        return b"{" + self.json()[len(self.prefix) :]

    def forget_json(self) -> None:
        """Free the text of a version that has been replaced; it is made again for a watcher that lags."""
        self._json = None


class Change(msgspec.Struct, frozen=True):
    """One step of the history. `old` is None for ADDED; for DELETED `entry` is the last state with the new revision."""

    type: str
    entry: Entry
    old: Entry | None

    @property
    def revision(self) -> int:
        return self.entry.revision


class Event(msgspec.Struct, frozen=True):
    """What a watcher is told: ADDED, MODIFIED or DELETED."""

    type: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list or watch selects within a resource."""

    namespace: str = ""
    labels: Predicate | None = None
    fields: Predicate | None = None
    terms: tuple[FieldTerm, ...] = ()

    @property
    def everything(self) -> bool:
        return not self.namespace and self.labels is None and self.fields is None

    def matches(self, obj: Obj) -> bool:
        if self.namespace and obj["metadata"].get("namespace", "") != self.namespace:
            return False
        if self.labels is not None and not self.labels(obj):
            return False
        return self.fields is None or self.fields(obj)

    def name(self) -> str | None:
        """The one object name this can match, when a field selector says so."""
        for term in self.terms:
            if term.equal and term.path == "metadata.name":
                return term.value
        return None

    def trigger(self) -> FieldTerm | None:
        """A field and the value it must have: only changes of objects with that value concern such a watch."""
        return next((term for term in self.terms if term.equal), None)


MAX_PENDING = 50_000
"""Events a watcher may lag behind before its watch is ended; it lists again then."""


class Watcher:
    """A queue of what changed. `on_ready` is called when it stops being empty, and when the watch ends."""

    __slots__ = ("_everything", "_pending", "_table", "closed", "filter", "on_ready", "revision")

    def __init__(self, table: Table, selection: Filter, revision: int) -> None:
        self._table = table
        self._pending: deque[Event] = deque()
        self.filter = selection
        self._everything = selection.everything
        self.revision = revision
        self.closed = False
        self.on_ready: Callable[[], None] | None = None

    def offer(self, change: Change) -> None:
        event = Event(change.type, change.entry) if self._everything else seen_by(self.filter, change)
        if event is None or change.revision <= self.revision:
            return
        self._pending.append(event)
        if len(self._pending) > MAX_PENDING:
            self._pending.clear()
            self.close()
        if self.on_ready is not None:
            self.on_ready()

    def drain(self) -> list[Event]:
        """Everything that happened since the last call."""
        events = list(self._pending)
        self._pending.clear()
        return events

    def close(self) -> None:
        """End the watch; safe to call twice."""
        if self.closed:
            return
        self.closed = True
        self._table.unwatch(self)
        if self.on_ready is not None:
            self.on_ready()


def seen_by(selection: Filter, change: Change) -> Event | None:
    """A change as a selecting watcher sees it: what leaves its selection is deleted to it, what enters is added."""
    before = change.old is not None and selection.matches(change.old.obj)
    after = change.type != "DELETED" and selection.matches(change.entry.obj)
    if before and after:
        return Event("MODIFIED", change.entry)
    if after:
        return Event("ADDED", change.entry)
    if not before or change.old is None:
        return None
    if change.type == "DELETED":
        return Event("DELETED", change.entry)
    return Event("DELETED", at_revision(change.old, change.revision))


def at_revision(entry: Entry, revision: int) -> Entry:
    """The same object under another resourceVersion."""
    metadata = {**entry.obj["metadata"], "resourceVersion": str(revision)}
    return Entry(entry.key, {**entry.obj, "metadata": metadata}, revision, entry.prefix)


class Table:
    """The present objects of one resource and the changes that led here."""

    def __init__(self, resource: ResourceType, history: int, revision: int) -> None:
        self.resource = resource
        self.prefix = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()
        self.entries: dict[str, Entry] = {}
        self.compacted = revision
        self._changes: deque[Change] = deque()
        self._history = history
        self._sorted: list[str] | None = None
        self._watchers: dict[Watcher, None] = {}
        self._triggered: dict[str, dict[str, dict[Watcher, None]]] = {}
        """Watchers by the field and value that concerns them: a thousand agents each watch a node of their own."""

    def entry(self, key: str, obj: Obj, revision: int) -> Entry:
        """A version that is not in the table yet."""
        return Entry(key, obj, revision, self.prefix)

    def load(self, key: str, obj: Obj, revision: int) -> None:
        """Take over a version from elsewhere, without a change in the history."""
        self.entries[key] = self.entry(key, obj, revision)
        self._sorted = None

    def put(self, entry: Entry) -> None:
        old = self.entries.get(entry.key)
        self.entries[entry.key] = entry
        if old is None:
            self._sorted = None
        self._publish(Change("ADDED" if old is None else "MODIFIED", entry, old))

    def remove(self, entry: Entry) -> None:
        """`entry` is the last state, already under the revision of the removal."""
        old = self.entries.pop(entry.key)
        self._sorted = None
        self._publish(Change("DELETED", entry, old))

    def _publish(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > self._history:
            self.compacted = self._changes.popleft().revision
        for watcher in tuple(self._watchers):
            watcher.offer(change)
        for path, groups in tuple(self._triggered.items()):
            versions = (change.entry,) if change.old is None else (change.entry, change.old)
            for value in dict.fromkeys(self._field(entry.obj, path) for entry in versions):
                for watcher in tuple(groups.get(value, ())):
                    watcher.offer(change)
        if change.old is not None:
            change.old.forget_json()

    def compact(self, revision: int) -> None:
        """Forget the history up to and including `revision`."""
        while self._changes and self._changes[0].revision <= revision:
            self._changes.popleft()
        self.compacted = max(self.compacted, revision)

    def changes_since(self, revision: int) -> Iterator[Change]:
        """Oldest first; the caller has checked `compacted`."""
        found = []
        for change in reversed(self._changes):  # a watch asks for the last few of thousands
            if change.entry.revision <= revision:
                break
            found.append(change)
        return reversed(found)

    def at(self, revision: int) -> dict[str, Entry]:
        """The objects as they were; the caller has checked `compacted`."""
        entries = dict(self.entries)
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            if change.old is None:
                entries.pop(change.entry.key, None)
            else:
                entries[change.entry.key] = change.old
        return entries

    def sorted_keys(self) -> list[str]:
        if self._sorted is None:
            self._sorted = sorted(self.entries)
        return self._sorted

    def select(self, selection: Filter) -> list[Entry]:
        """Present entries that match, in key order."""
        return [entry for entry in self._candidates(selection) if selection.matches(entry.obj)]

    def _candidates(self, selection: Filter) -> Iterator[Entry]:
        name = selection.name()
        if name is not None and (selection.namespace or not self.resource.namespaced):
            found = self.entries.get(self.resource.object_key(selection.namespace, name))
            return iter(() if found is None else (found,))
        keys = self.sorted_keys()
        if self.resource.namespaced and selection.namespace:
            prefix = f"{selection.namespace}/"
            keys = keys[bisect_left(keys, prefix) : bisect_left(keys, f"{selection.namespace}0")]
        return (self.entries[key] for key in keys)

    def watch(self, selection: Filter, since: int) -> Watcher:
        """A watcher that sees every change after `since`; the caller has checked `compacted`."""
        watcher = Watcher(self, selection, since)
        for change in self.changes_since(since):
            watcher.offer(change)
        self._group(selection)[watcher] = None
        return watcher

    def _field(self, obj: Obj, path: str) -> str:
        return field_value(obj, path) or self.resource.fields.get(path, "")

    def _group(self, selection: Filter) -> dict[Watcher, None]:
        term = selection.trigger()
        if term is None:
            return self._watchers
        return self._triggered.setdefault(term.path, {}).setdefault(term.value, {})

    def unwatch(self, watcher: Watcher) -> None:
        group = self._group(watcher.filter)
        group.pop(watcher, None)
        term = watcher.filter.trigger()
        if term is None or group:
            return
        del self._triggered[term.path][term.value]
        if not self._triggered[term.path]:
            del self._triggered[term.path]

    def watchers(self) -> list[Watcher]:
        groups = (group for by_value in self._triggered.values() for group in by_value.values())
        return [*self._watchers, *(watcher for group in groups for watcher in group)]
