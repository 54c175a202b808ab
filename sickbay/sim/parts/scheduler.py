"""The scheduler: binds pending pods to nodes that they fit on, the highest priority first.

Filters are resources, taints, cordons, nodeSelector and node affinity, pod affinity and anti-affinity, topology spread
(`scheduling/`). Pods of a gang are placed together or not at all. A pod that fits nowhere preempts pods of lower
priority where that helps: they are deleted, the place is kept for it by `nominatedNodeName`, and it is bound when they
are gone. Differs from the real one: nodes are ranked by fewer things, and a pod that fits nowhere is tried again at
once when something changed, without back-off. Absent: volumes, host ports, preferred pod affinity.

Its cache of Nodes is as new as the API server, unless `behind` says by how many seconds a change of a Node reaches it
late: what a client has seen the API server accept, a real scheduler need not have seen yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.clock import rfc3339
from sickbay.sim.hand import BUDGETS, NAMESPACES, NODES, PODS, condition_of, labels_of, with_condition
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.scheduling import gangs, preemption
from sickbay.sim.parts.scheduling.company import cares_for_others
from sickbay.sim.parts.scheduling.filters import Search, best, search, told
from sickbay.sim.parts.scheduling.picture import ENDED, Picture, key_of, node_of, priority_of
from sickbay.sim.stage import Stage

CYCLE = "cycle"
"""The one key: each look takes up all pods that wait to be tried."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a pod could go, and which pods would have to go for it."""

    node: str
    pod: Obj
    victims: tuple[Obj, ...] = ()
    message: str = ""


class Scheduler(Part):
    """See the module."""

    name = "scheduler"
    user = "system:kube-scheduler"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.picture = Picture()
        self.behind: Callable[[], float] | None = None
        self._late: set[str] = set()
        """Nodes of which a change is still on its way here."""
        self._waiting: dict[str, int] = {}
        """Pods without a node, by the order in which they came."""
        self._untried: dict[str, None] = {}
        """Of those the ones worth a try."""
        self._came = 0

    # --- what changes the picture

    def heeds(self) -> Iterable[str]:
        return (NODES, PODS, NAMESPACES, *gangs.POD_GROUPS)

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == NODES:
            self._see_node(write)
        elif write.resource == PODS:
            self._see_pod(write)
        elif write.resource == NAMESPACES and write.new is not None:
            self.picture.namespaces[write.name] = labels_of(write.new)
        elif write.resource in gangs.POD_GROUPS:
            self._try_all()
        return (CYCLE,) if self._untried else ()

    def _see_node(self, write: Write) -> None:
        if not _matters(write):
            if write.name not in self._late and write.new is not None:
                self.picture.nodes[write.name] = write.new
        elif self.behind is None:
            self._know(write.name, write.new)
        else:
            self._late.add(write.name)
            self.stage.loop.call_later(self.behind(), self._catch_up, write.name)

    def _catch_up(self, name: str) -> None:
        self._late.discard(name)
        self._know(name, self.store.find(NODES, name))
        if self._untried:
            self.wake(CYCLE)

    def _know(self, name: str, node: Obj | None) -> None:
        if node is None:
            self.picture.nodes.pop(name, None)
        else:
            self.picture.nodes[name] = node
        self._try_all()

    def _see_pod(self, write: Write) -> None:
        old, new = write.old, write.new
        was, now = _holds(old), _holds(new)
        if old is not None and was:
            self.picture.take(was, old)
        if new is not None and now:
            self.picture.put(now, new)
        key = f"{write.namespace}/{write.name}"
        self._nominate(key, new)
        if was and was != now:
            self._try_all()  # room has become free
        elif now and (old is None or was != now or labels_of(old) != labels_of(write.new or old)):
            self._try_company()
        if new is None or node_of(new) or (new.get("status") or {}).get("phase") in ENDED:
            self._waiting.pop(key, None)
            self._untried.pop(key, None)
        elif key not in self._waiting or (old is not None and old.get("spec") != new.get("spec")):
            self._came += 1
            self._waiting.setdefault(key, self._came)
            self._untried[key] = None

    def _nominate(self, key: str, pod: Obj | None) -> None:
        node = "" if pod is None or node_of(pod) else (pod.get("status") or {}).get("nominatedNodeName") or ""
        if pod is not None and node:
            self.picture.nominated[key] = (str(node), pod)
        else:
            self.picture.nominated.pop(key, None)

    def _try_all(self) -> None:
        self._untried.update(dict.fromkeys(self._waiting))

    def _try_company(self) -> None:
        """Pods to which it matters where others are."""
        for key in self._waiting:
            pod = self._pending(key)
            if pod is not None and cares_for_others(pod):
                self._untried[key] = None

    # --- one cycle

    def step(self, key: str) -> float | None:
        untried, self._untried = self._untried, {}
        pods = [pod for each in untried if (pod := self._pending(each)) is not None]
        done: set[str] = set()
        for pod in sorted(pods, key=lambda p: (-priority_of(p), self._waiting.get(key_of(p), 0))):
            if key_of(pod) in done or self._pending(key_of(pod)) is None:
                continue
            gang = gangs.gang_of(pod)
            together = self._gang(gang, pod) if gang else [pod]
            done.update(map(key_of, together))
            if together:
                self._place(gang, together)
        return 0.0 if self._untried else None

    def _pending(self, key: str) -> Obj | None:
        namespace, _, name = key.partition("/")
        pod = self.store.find(PODS, name, namespace)
        if pod is None or node_of(pod) or pod["metadata"].get("deletionTimestamp"):
            return None
        spec = pod["spec"]
        ours = spec.get("schedulerName", "default-scheduler") in gangs.SCHEDULERS
        return pod if ours and not spec.get("schedulingGates") else None

    def _gang(self, gang: str, pod: Obj) -> list[Obj]:
        """Members that must find a place together now; none while too few exist."""
        living = gangs.members(gang, pod["metadata"]["namespace"], self.store.list(PODS, pod["metadata"]["namespace"]))
        least = gangs.least(gang, living, self.store)
        placed = sum(1 for member in living if node_of(member))
        if placed >= least:
            return [pod]
        pending = [member for member in living if self._pending(key_of(member)) is not None]
        if placed + len(pending) < least:
            few = f"cannot find enough sibling pods, current pods number: {len(living)}, minMember of group: {least}"
            for member in pending:
                self._refuse(member, f'pod group "{gang}": {few}')
            return []
        return sorted(pending, key=lambda p: self._waiting.get(key_of(p), 0))[: least - placed]

    def _place(self, gang: str, pods: list[Obj]) -> None:
        """Bind all of them, or make room for all of them, or none."""
        places: list[_Place] = []
        refused = ""
        for pod in pods:
            found = search(pod, self.picture)
            place = self._free_place(pod, found) or self._won_place(pod, found)
            if isinstance(place, str):
                refused = self._told(gang, pod, pods, place)
                break
            self._think(place)
            places.append(place)
        for place in reversed(places):
            self._think_not(place)
        if refused:
            for pod in pods:
                self._refuse(pod, refused)
        elif any(place.victims for place in places):
            self._make_room(places)
        else:
            for place in places:
                meta = place.pod["metadata"]
                self.hand.bind(meta["name"], meta["namespace"], place.node, meta["uid"])

    def _free_place(self, pod: Obj, found: Search) -> _Place | None:
        if not found.fitting:
            return None
        return _Place(best(pod, found.fitting, self.picture)["metadata"]["name"], pod)

    def _won_place(self, pod: Obj, found: Search) -> _Place | str:
        """By preemption; otherwise why there is none."""
        nodes = len(self.picture.nodes)
        message = told(found.refusals.values(), nodes)
        barred = preemption.ineligible(pod, found, self.picture)
        if barred or not nodes:
            return f"{message} preemption: {barred}" if barred else message
        made, why = preemption.plan(pod, found, self.picture, self.store.list(BUDGETS))
        if made is None:
            return f"{message} preemption: {told(why, nodes)}"
        return _Place(made.node["metadata"]["name"], pod, made.victims, message)

    def _think(self, place: _Place) -> None:
        """The picture as if it had been done."""
        for victim in place.victims:
            self.picture.take(place.node, victim)
        self.picture.put(place.node, place.pod)

    def _think_not(self, place: _Place) -> None:
        self.picture.take(place.node, place.pod)
        for victim in place.victims:
            self.picture.put(place.node, victim)

    def _told(self, gang: str, pod: Obj, pods: list[Obj], refused: str) -> str:
        if not gang:
            return refused
        return f'pod group "{gang}" of {len(pods)} finds no place as a whole: {pod["metadata"]["name"]}: {refused}'

    def _make_room(self, places: list[_Place]) -> None:
        for victim in (victim for place in places for victim in place.victims):
            meta = victim["metadata"]
            if not meta.get("deletionTimestamp"):
                target = self._condition("DisruptionTarget", "True", preemption.BY_SCHEDULER, _PREEMPTED)
                self._merge(victim, {}, target)
                self.hand.discard(PODS, meta["name"], meta["namespace"], uid=meta["uid"])
        for place in places:
            pod = self._pending(key_of(place.pod))
            if pod is not None:
                waiting = self._condition("PodScheduled", "False", "Unschedulable", place.message or _ROOM)
                self._merge(pod, {"nominatedNodeName": place.node}, waiting)

    # --- writing

    def _refuse(self, pod: Obj, message: str) -> None:
        if condition_of(pod, "PodScheduled").get("message") == message:
            return
        nominated = (pod.get("status") or {}).get("nominatedNodeName")
        forget = {"nominatedNodeName": None} if nominated and preemption.WAITING not in message else {}
        self._merge(pod, forget, self._condition("PodScheduled", "False", "Unschedulable", message))

    def _condition(self, type_: str, status: str, reason: str, message: str) -> Obj:
        now = rfc3339(self.clock.now())
        return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}

    def _merge(self, pod: Obj, status: dict[str, Any], condition: Obj) -> None:
        meta = pod["metadata"]
        before = condition_of(pod, condition["type"])
        if before.get("status") == condition["status"] and before.get("lastTransitionTime"):
            condition = {**condition, "lastTransitionTime": before["lastTransitionTime"]}
        conditions = with_condition((pod.get("status") or {}).get("conditions") or [], condition)
        patch = {"status": {**status, "conditions": conditions}}
        self.hand.merge(PODS, meta["name"], patch, meta["namespace"], "status")


_ROOM = "room is being made for the rest of its group"
_PREEMPTED = "default-scheduler: preempting to accommodate a higher priority pod"


def _holds(pod: Obj | None) -> str:
    """The node of which a pod takes something."""
    if pod is None or (pod.get("status") or {}).get("phase") in ENDED:
        return ""
    return node_of(pod)


def _matters(write: Write) -> bool:
    """Heartbeats make no room."""
    if write.old is None or write.new is None:
        return True
    old, new = write.old, write.new
    return bool(
        old.get("spec") != new.get("spec")
        or old["metadata"].get("labels") != new["metadata"].get("labels")
        or (old.get("status") or {}).get("allocatable") != (new.get("status") or {}).get("allocatable")
    )
