"""Garbage collection of objects whose owners are gone, and of pods whose nodes are gone.

After kubernetes/pkg/controller/garbagecollector and podgc. A dependent goes when none of its owners exists any more;
an owner deleted in the foreground waits for the dependents that block it, and those for theirs; one deleted as orphan
cuts them loose.
"""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.clock import rfc3339
from sickbay.sim.hand import NODES, PODS, with_condition
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.lifecycle import OUT_OF_SERVICE
from sickbay.sim.parts.taints import taints_of
from sickbay.sim.stage import Stage

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
QUARANTINE_SECONDS = 40.0
"""How long a node must be missing before its pods are orphans (podgc's quarantineTime)."""
PERIOD_SECONDS = 20.0
"""podgc's gcCheckPeriod."""


class GarbageCollector(Part):
    """Keys are UIDs of owners that changed or went."""

    name = "generic-garbage-collector"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._dependents: dict[str, dict[tuple[str, str, str], None]] = {}
        self._owners: dict[str, tuple[str, str, str]] = {}
        """Where each living object is, by UID."""

    def touched(self, write: Write) -> Iterable[str]:
        place = (write.resource, write.name, write.namespace)
        if write.new is None:
            assert write.old is not None
            uid = write.old["metadata"]["uid"]
            self._owners.pop(uid, None)
            for owner in _owner_uids(write.old):
                self._dependents.get(owner, {}).pop(place, None)
            return (uid, *_owner_uids(write.old))
        meta = write.new["metadata"]
        self._owners[meta["uid"]] = place
        missing = []
        for owner in _owner_uids(write.new):
            self._dependents.setdefault(owner, {})[place] = None
            if owner not in self._owners:
                missing.append(owner)
        marked = meta.get("deletionTimestamp") and {FOREGROUND, ORPHAN} & set(meta.get("finalizers") or ())
        return (*missing, meta["uid"]) if marked else missing

    def step(self, key: str) -> float | None:
        place = self._owners.get(key)
        owner = self.store.find(place[0], place[1], place[2]) if place else None
        places = list(self._dependents.get(key, ()))
        dependents = [(p, found) for p in places if (found := self.store.find(*p)) and key in _owner_uids(found)]
        if owner is None:
            for where, dependent in dependents:
                if not any(uid in self._owners for uid in _owner_uids(dependent)):
                    self._delete(where, dependent)
            if not dependents:
                self._dependents.pop(key, None)
            return None
        finalizers = owner["metadata"].get("finalizers") or []
        assert place is not None
        if ORPHAN in finalizers:
            for where, dependent in dependents:
                self._cut_loose(where, dependent, key)
            self._unfinalize(place, finalizers, ORPHAN)
        elif FOREGROUND in finalizers:
            self._foreground(place, finalizers, dependents, key)
        return None

    def _foreground(
        self,
        place: tuple[str, str, str],
        finalizers: list[str],
        dependents: list[tuple[tuple[str, str, str], Obj]],
        uid: str,
    ) -> None:
        for where, dependent in dependents:
            has_own = bool(self._dependents.get(dependent["metadata"]["uid"]))
            self._delete(where, dependent, "Foreground" if has_own else "")
        left = [found for where, _ in dependents if (found := self.store.find(*where))]
        if not any(_blocks(dependent, uid) for dependent in left):
            self._unfinalize(place, finalizers, FOREGROUND)

    def _delete(self, where: tuple[str, str, str], obj: Obj, propagation: str = "") -> None:
        if not obj["metadata"].get("deletionTimestamp"):
            self.hand.discard(*where, uid=obj["metadata"]["uid"], propagation=propagation)

    def _cut_loose(self, where: tuple[str, str, str], obj: Obj, uid: str) -> None:
        kept = [owner for owner in obj["metadata"]["ownerReferences"] if owner["uid"] != uid]
        self.hand.merge(where[0], where[1], {"metadata": {"ownerReferences": kept or None}}, where[2])

    def _unfinalize(self, place: tuple[str, str, str], finalizers: list[str], done: str) -> None:
        kept = [finalizer for finalizer in finalizers if finalizer != done]
        self.hand.merge(place[0], place[1], {"metadata": {"finalizers": kept or None}}, place[2])


def _owner_uids(obj: Obj) -> list[str]:
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()]


def _blocks(obj: Obj, uid: str) -> bool:
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners)


class PodGC(Part):
    """Removes pods of nodes that are gone, and of nodes declared out of service. Keys are node names."""

    name = "pod-garbage-collector"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._missing: dict[str, float] = {}

    def heeds(self) -> Iterable[str]:
        return (NODES, PODS)

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == NODES:
            return (write.name,)
        if write.resource != PODS or write.new is None:
            return ()
        node = (write.new.get("spec") or {}).get("nodeName", "")
        return (node,) if node and self._suspicious(node) else ()

    def _suspicious(self, name: str) -> bool:
        node = self.store.find(NODES, name)
        return node is None or any(t["key"] == OUT_OF_SERVICE for t in taints_of(node))

    def step(self, key: str) -> float | None:
        pods = self.store.list(PODS, fields=f"spec.nodeName={key}")
        node = self.store.find(NODES, key)
        if node is None:
            since = self._missing.setdefault(key, self.clock.monotonic())
            left = since + QUARANTINE_SECONDS - self.clock.monotonic()
            if pods and left > 0:
                return left
            for pod in pods:
                self._remove(pod)
            return None
        self._missing.pop(key, None)
        if any(t["key"] == OUT_OF_SERVICE for t in taints_of(node)):
            for pod in pods:
                if pod["metadata"].get("deletionTimestamp"):
                    self._remove(pod)
        return None

    def _remove(self, pod: Obj) -> None:
        meta = pod["metadata"]
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": rfc3339(self.clock.now()),
            }
            conditions = with_condition((pod.get("status") or {}).get("conditions") or [], condition)
            status = {"phase": "Failed", "conditions": conditions}
            self.hand.merge(PODS, meta["name"], {"status": status}, meta["namespace"], "status")
        self.hand.discard(PODS, meta["name"], meta["namespace"], uid=meta["uid"], grace=0)
