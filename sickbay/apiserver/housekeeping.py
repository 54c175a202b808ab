"""What kube-controller-manager and etcd do for every cluster, for a server that has neither.

    namespaces   a terminating one loses its content, then itself
    owners       a dependent goes when none of its owners exists any more; foreground and orphan deletion
    Events       expire an hour after they were last seen

`step` does what is due and is a function of the store's state; `run` calls it whenever something was deleted or got
an owner, and once a minute. The simulator has its own controllers instead, held to the real ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta

from sickbay.apiserver.deletion import BACKGROUND
from sickbay.apiserver.errors import Obj, StatusError
from sickbay.apiserver.resources import ResourceType
from sickbay.apiserver.store import Store
from sickbay.apiserver.writes import Caller, Write
from sickbay.clock import parse_time

EVENT_LIFE = timedelta(hours=1)
"""kube-apiserver's --event-ttl."""
PERIOD_SECONDS = 60.0
CALLER = Caller("system:apiserver:housekeeping", ("system:masters",), "housekeeping")
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"

Found = tuple[ResourceType, Obj]


class Housekeeper:
    """Keeps one store tidy."""

    def __init__(self, store: Store, owners: bool = True) -> None:
        """Without `owners` somebody else looks after what is owned."""
        self._store, self._owners = store, owners
        self._due = asyncio.Event()
        store.after_write(self._notice)

    def _notice(self, write: Write) -> None:
        """Deletions give work, and so do new references to owners, who may be gone already."""
        if write.new is None:
            self._due.set()
            return
        meta, before = write.new["metadata"], (write.old or {}).get("metadata") or {}
        if meta.get("deletionTimestamp") or meta.get("ownerReferences") != before.get("ownerReferences"):
            self._due.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._due.clear()
            self.step()
            pause = asyncio.ensure_future(self._store.clock.sleep(PERIOD_SECONDS))
            wake = asyncio.ensure_future(self._due.wait())
            try:
                await asyncio.wait((pause, wake), return_when=asyncio.FIRST_COMPLETED)
            finally:
                pause.cancel()
                wake.cancel()

    def step(self) -> None:
        """Do all that is due now."""
        self._expire_events()
        while (self._owners and self._collect()) or self._finish_namespaces():
            pass

    def _expire_events(self) -> None:
        now = self._store.clock.now()
        for event in self._store.list("events"):
            if now - last_seen(event) > EVENT_LIFE:
                self._delete(self._store.type("events"), event)

    def _finish_namespaces(self) -> bool:
        changed = False
        for namespace in self._store.list("namespaces"):
            if namespace["metadata"].get("deletionTimestamp"):
                changed = self._empty(namespace) or changed
        return changed

    def _empty(self, namespace: Obj) -> bool:
        """Delete what lies in a terminating namespace; when nothing does, let it go."""
        name = namespace["metadata"]["name"]
        content = [(kind, obj) for kind in self._namespaced() for obj in self._store.list(kind.key, name)]
        waiting = [found for found in content if not found[1]["metadata"].get("deletionTimestamp")]
        for kind, obj in waiting:
            self._delete(kind, obj)
        if content:
            return bool(waiting)
        if not (namespace.get("spec") or {}).get("finalizers"):
            return False
        without = {**namespace, "spec": {**namespace["spec"], "finalizers": []}}
        self._store.update("namespaces", without, subresource="finalize", caller=CALLER)
        return True

    def _namespaced(self) -> list[ResourceType]:
        return [kind for kind in self._store.resources if kind.namespaced]

    def _everything(self) -> Iterator[Found]:
        for kind in list(self._store.resources):
            for obj in self._store.list(kind.key):
                yield kind, obj

    def _collect(self) -> bool:
        """One pass over owners and dependents; whether it changed anything."""
        present: dict[str, Found] = {}
        owned: list[Found] = []
        for kind, obj in self._everything():
            present[obj["metadata"]["uid"]] = (kind, obj)
            if obj["metadata"].get("ownerReferences"):
                owned.append((kind, obj))
        changed = False
        for kind, obj in owned:
            changed = self._judge_dependent(kind, obj, present) or changed
        for kind, obj in present.values():
            changed = self._judge_owner(kind, obj, owned) or changed
        return changed

    def _judge_dependent(self, kind: ResourceType, obj: Obj, present: dict[str, Found]) -> bool:
        owners = obj["metadata"]["ownerReferences"]
        if obj["metadata"].get("deletionTimestamp"):
            return False
        solid = [
            owner for owner in owners if owner["uid"] in present and not _waits(present[owner["uid"]][1], FOREGROUND)
        ]
        return False if solid else self._delete(kind, obj)

    def _judge_owner(self, kind: ResourceType, obj: Obj, owned: list[Found]) -> bool:
        uid = obj["metadata"]["uid"]
        if _waits(obj, ORPHAN):
            for dependent in owned:
                if _reference(dependent[1], uid) is not None:
                    self._disown(dependent, uid)
            return self._take_finalizer(kind, obj, ORPHAN)
        if not _waits(obj, FOREGROUND):
            return False
        blocking = any((_reference(other, uid) or {}).get("blockOwnerDeletion") for _, other in owned)
        return False if blocking else self._take_finalizer(kind, obj, FOREGROUND)

    def _disown(self, dependent: Found, uid: str) -> None:
        kind, obj = dependent
        kept = [owner for owner in obj["metadata"]["ownerReferences"] if owner["uid"] != uid]
        self._change(kind, obj, {"metadata": {"ownerReferences": kept or None}})

    def _take_finalizer(self, kind: ResourceType, obj: Obj, finalizer: str) -> bool:
        kept = [name for name in obj["metadata"]["finalizers"] if name != finalizer]
        return self._change(kind, obj, {"metadata": {"finalizers": kept or None}})

    def _change(self, kind: ResourceType, obj: Obj, patch: Obj) -> bool:
        meta = obj["metadata"]
        try:
            self._store.patch(kind.key, meta["name"], patch, namespace=meta.get("namespace", ""), caller=CALLER)
        except StatusError:
            return False  # gone, or refused: the next step looks again
        return True

    def _delete(self, kind: ResourceType, obj: Obj) -> bool:
        meta = obj["metadata"]
        try:
            self._store.delete(
                kind.key,
                meta["name"],
                meta.get("namespace", ""),
                uid=meta["uid"],
                propagation=BACKGROUND,
                caller=CALLER,
            )
        except StatusError:
            return False  # gone, another by now, or refused: the next step looks again
        return True


def _waits(obj: Obj, finalizer: str) -> bool:
    """Whether an object is being deleted and held by this finalizer."""
    meta = obj["metadata"]
    return bool(meta.get("deletionTimestamp")) and finalizer in (meta.get("finalizers") or ())


def _reference(obj: Obj, uid: str) -> Obj | None:
    return next((owner for owner in obj["metadata"].get("ownerReferences") or () if owner["uid"] == uid), None)


def last_seen(event: Obj) -> datetime:
    """When an Event was last told; its creation when it does not say."""
    series = event.get("series") or {}
    moments = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return parse_time(next(filter(None, moments), event["metadata"]["creationTimestamp"]))
