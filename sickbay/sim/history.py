"""What was: earlier versions of Nodes, and what our identities wrote. Fed by the store after each write.

Versions of an object are never changed once stored, so a history is a list of references and costs next to nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.sim.hand import EVENTS, NODES, PODS, REPAIRS, TASKS
from sickbay.sim.journal import Journal, Written

CONTROLLER = "system:serviceaccount:sickbay-system:sickbay-controller"
AGENT = "system:serviceaccount:sickbay-system:sickbay-agent"
OURS = (CONTROLLER, AGENT)

KUBERNETES_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
KUBERNETES_ANNOTATIONS = ("node.alpha.kubernetes.io/", "volumes.kubernetes.io/")
"""Marks of Kubernetes' own controllers, which come and go without anybody's fault."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What must be the same after a repair as before."""

    labels: dict[str, str]
    annotations: dict[str, str]
    taints: frozenset[tuple[str, str, str]]
    unschedulable: bool

    def differences(self, after: Marks) -> list[str]:
        """What people would call the difference, empty for none."""
        found = []
        for word, old, new in (
            ("label", self.labels, after.labels),
            ("annotation", self.annotations, after.annotations),
        ):
            for key in sorted(old.keys() | new.keys()):
                if old.get(key) != new.get(key):
                    found.append(f"{word} {key}: {old.get(key)!r} -> {new.get(key)!r}")
        found += [f"taint {t[0]}={t[1]}:{t[2]} is gone" for t in sorted(self.taints - after.taints)]
        found += [f"taint {t[0]}={t[1]}:{t[2]} is new" for t in sorted(after.taints - self.taints)]
        if self.unschedulable != after.unschedulable:
            found.append(f"unschedulable: {self.unschedulable} -> {after.unschedulable}")
        return found


def marks_of(node: Obj) -> Marks:
    meta, spec = node["metadata"], node.get("spec") or {}
    annotations = meta.get("annotations") or {}
    taints = spec.get("taints") or ()
    return Marks(
        dict(meta.get("labels") or {}),
        {key: value for key, value in annotations.items() if not key.startswith(KUBERNETES_ANNOTATIONS)},
        frozenset(
            (t["key"], t.get("value", ""), t["effect"]) for t in taints if not t["key"].startswith(KUBERNETES_TAINTS)
        ),
        bool(spec.get("unschedulable")),
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """A pod that was told to go."""

    at: float
    pod: Obj
    """Its metadata."""


class History:
    """See the module."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._nodes: dict[str, tuple[list[float], list[Obj | None]]] = {}
        self._first_of_ours: dict[tuple[str, float], int] = {}
        """How many versions a Node had before our first write to it at that moment."""
        self.created: dict[str, float] = {}
        """When each Event, NodeRepair and NodeTask was made, by its UID."""
        self.taken: dict[tuple[str, str], Taken] = {}
        """The pods on nodes that somebody evicted or deleted, by namespace and name."""

    def note(self, write: Write) -> None:
        if write.user in OURS:
            self._note_ours(write)
        if write.old is write.new:
            return
        if write.resource == PODS and _told_to_go(write):
            pod = {"metadata": (write.old or {})["metadata"]}
            self.taken[write.namespace, write.name] = Taken(self._journal.now(), pod)
        if write.resource == NODES:
            times, versions = self._nodes.setdefault(write.name, ([], []))
            if write.user in OURS:
                self._first_of_ours.setdefault((write.name, self._journal.now()), len(versions))
            times.append(self._journal.now())
            versions.append(write.new)
        elif write.resource in (EVENTS, REPAIRS, TASKS) and write.old is None and write.new is not None:
            self.created[write.new["metadata"]["uid"]] = self._journal.now()

    def _note_ours(self, write: Write) -> None:
        obj: dict[str, Any] = write.new or write.old or {"metadata": {}}
        name, by = _named(write.kind, write.namespace, write.name), _component(write.user_agent)
        at, uid = self._journal.now(), obj["metadata"].get("uid", "")
        self._journal.writes.append(Written(write.verb, by, at, name, write.subresource, uid))
        if write.resource != "pods" or write.verb not in ("evict", "delete") or _dead(obj):
            return
        meta, node = obj["metadata"], (obj.get("spec") or {}).get("nodeName", "")
        machine = self.node_at(node, at) or {"metadata": {}}
        self._journal.act(
            "Evict" if write.verb == "evict" else "DeletePod",
            node,
            at=at,
            node_uid=machine["metadata"].get("uid", ""),
            target=f"{write.namespace}/{write.name}",
            grace=meta.get("deletionGracePeriodSeconds"),
            pod_uid=uid,
        )

    def forget(self, before: float) -> None:
        """Drop what lies before that moment, but for the last version of each Node: a soak would otherwise not end."""
        for times, versions in self._nodes.values():
            kept = max(0, bisect_right(times, before) - 1)
            del times[:kept], versions[:kept]
        self._first_of_ours.clear()
        self.created = {uid: at for uid, at in self.created.items() if at >= before}
        self.taken = {key: taken for key, taken in self.taken.items() if taken.at >= before}

    def node_before_us(self, name: str, at: float) -> Obj | None:
        """The Node as it was at `at` before we wrote to it at that very moment. A reaction takes no time in the
        simulator, so that who names the moment of a fault means the Node before it."""
        before = self._first_of_ours.get((name, at))
        if before:
            return self._nodes[name][1][before - 1]
        return self.node_at(name, at)

    def node_at(self, name: str, at: float) -> Obj | None:
        """The Node as it was after the last write at or before `at`; None where there was none."""
        times, versions = self._nodes.get(name, ([], []))
        index = bisect_right(times, at + 1e-9) - 1
        return versions[index] if index >= 0 else None


def _dead(pod: Obj) -> bool:
    """Nothing of it runs any more, so that taking the object away destroys nothing."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


@lru_cache(maxsize=4096)
def _named(*parts: str) -> str:
    return "/".join(part for part in parts if part)


@lru_cache(maxsize=256)
def _component(user_agent: str) -> str:
    return user_agent.split("/", 1)[0].split(" ", 1)[0].removeprefix("sickbay-")


def _told_to_go(write: Write) -> bool:
    old, new = write.old, write.new
    if old is None or not (old.get("spec") or {}).get("nodeName") or "deletionTimestamp" in old["metadata"]:
        return False
    return new is None or "deletionTimestamp" in new["metadata"]
