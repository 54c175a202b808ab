"""Deployments: a ReplicaSet for each template, the newest grown while the others shrink.

After kubernetes/pkg/controller/deployment: RollingUpdate goes no further over the number of replicas than maxSurge and
no further below with available pods than maxUnavailable; Recreate lets all old pods go first. Absent: pause, roll-back
by revision, minReadySeconds, progress deadlines; a scaled Deployment in mid roll-out is not scaled in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.sim.hand import DEPLOYMENTS, PODS, REPLICA_SETS, labels_of
from sickbay.sim.parts.base import Part
from sickbay.sim.parts.disruption import controller_of
from sickbay.sim.parts.owned import key_of_owner, reference_to
from sickbay.sim.parts.replicas import replicas_of

HASH = "pod-template-hash"
COUNTS = ("replicas", "readyReplicas", "availableReplicas")
OLD_KEPT = 10
"""revisionHistoryLimit where none is given."""


class Deployments(Part):
    """Keys are `namespace/name`."""

    name = "deployment-controller"

    def heeds(self) -> Iterable[str]:
        return (DEPLOYMENTS, REPLICA_SETS)

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource == DEPLOYMENTS:
            return (f"{write.namespace}/{write.name}",)
        if write.resource != REPLICA_SETS:
            return ()
        return [k for k in {key_of_owner(write.old, "Deployment"), key_of_owner(write.new, "Deployment")} if k]

    def step(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        deployment = self.store.find(DEPLOYMENTS, name, namespace)
        if deployment is None or deployment["metadata"].get("deletionTimestamp"):
            return None
        own = self._own(deployment)
        new = next((r for r in own if _made_from(r, deployment)), None)
        old = [r for r in own if r is not new]
        if new is None:
            new = self._create(deployment, 0 if old else replicas_of(deployment))
        recreate = (deployment["spec"].get("strategy") or {}).get("type") == "Recreate"
        if not old:
            self._scale(new, replicas_of(deployment))
        elif recreate:
            self._recreate(deployment, new, old)
        else:
            self._roll(deployment, new, old)
        self._forget(deployment, old)
        self._report(deployment, new["metadata"]["name"])
        return None

    def _own(self, deployment: Obj) -> list[Obj]:
        meta = deployment["metadata"]
        every = self.store.list(REPLICA_SETS, meta["namespace"])
        own = [r for r in every if controller_of(r).get("uid") == meta["uid"]]
        return sorted(own, key=lambda r: str(r["metadata"]["creationTimestamp"]))

    # --- rolling

    def _recreate(self, deployment: Obj, new: Obj, old: list[Obj]) -> None:
        for replica_set in old:
            self._scale(replica_set, 0)
        names = {r["metadata"]["uid"] for r in old}
        pods = self.store.list(PODS, deployment["metadata"]["namespace"])
        if not any(controller_of(pod).get("uid") in names for pod in pods):
            self._scale(new, replicas_of(deployment))

    def _roll(self, deployment: Obj, new: Obj, old: list[Obj]) -> None:
        wanted = replicas_of(deployment)
        surge, unavailable = _bounds(deployment, wanted)
        total = replicas_of(new) + sum(map(replicas_of, old))
        grown = min(wanted, replicas_of(new) + max(0, wanted + surge - total))
        if grown != replicas_of(new) and replicas_of(new) < wanted:
            self._scale(new, grown)
            return
        self._scale(new, min(replicas_of(new), wanted))
        self._shrink(old, [new, *old], wanted - unavailable)

    def _shrink(self, old: list[Obj], every: list[Obj], least: int) -> None:
        """Pods that are not available go first, then as many as can be spared."""
        spare = sum(_available(r) for r in every) - least
        for replica_set in old:
            count = replicas_of(replica_set)
            idle = max(0, count - _available(replica_set))
            gone = min(count, idle + max(0, spare))
            spare -= max(0, gone - idle)
            self._scale(replica_set, count - gone)

    def _scale(self, replica_set: Obj, count: int) -> None:
        if replicas_of(replica_set) != count:
            meta = replica_set["metadata"]
            self.hand.merge(REPLICA_SETS, meta["name"], {"spec": {"replicas": count}}, meta["namespace"])

    def _forget(self, deployment: Obj, old: list[Obj]) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit")
        empty = [r for r in old if not replicas_of(r) and not (r.get("status") or {}).get("replicas")]
        for replica_set in empty[: max(0, len(empty) - (OLD_KEPT if limit is None else int(limit)))]:
            meta = replica_set["metadata"]
            self.hand.discard(REPLICA_SETS, meta["name"], meta["namespace"], uid=meta["uid"])

    # --- writing

    def _report(self, deployment: Obj, new: str) -> None:
        status = dict.fromkeys((*COUNTS, "updatedReplicas"), 0)
        for replica_set in self._own(deployment):
            seen = replica_set.get("status") or {}
            for word in COUNTS:
                status[word] += seen.get(word, 0)
            if replica_set["metadata"]["name"] == new:
                status["updatedReplicas"] = seen.get("replicas", 0)
        status["observedGeneration"] = deployment["metadata"].get("generation", 0)
        if status != deployment.get("status"):
            meta = deployment["metadata"]
            self.hand.merge(DEPLOYMENTS, meta["name"], {"status": status}, meta["namespace"], "status")

    def _create(self, deployment: Obj, count: int) -> Obj:
        meta, spec = deployment["metadata"], deployment["spec"]
        mark = {HASH: self.stage.randomness.hex(10)}
        template = dict(spec["template"])
        labels = {**labels_of({"metadata": template.get("metadata") or {}}), **mark}
        template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
        selector = {**spec["selector"], "matchLabels": {**(spec["selector"].get("matchLabels") or {}), **mark}}
        made = {
            "metadata": {
                "name": f"{meta['name']}-{mark[HASH]}",
                "labels": labels,
                "ownerReferences": [reference_to(deployment)],
            },
            "spec": {"replicas": count, "selector": selector, "template": template},
        }
        return self.hand.create(REPLICA_SETS, made, meta["namespace"])


def _made_from(replica_set: Obj, deployment: Obj) -> bool:
    """Whether it has the Deployment's present template, its own mark aside."""
    has, wants = replica_set["spec"]["template"], deployment["spec"]["template"]
    labels = {k: v for k, v in ((has.get("metadata") or {}).get("labels") or {}).items() if k != HASH}
    meta = {**(has.get("metadata") or {}), "labels": labels}
    wanted = {**(wants.get("metadata") or {}), "labels": (wants.get("metadata") or {}).get("labels") or {}}
    return bool(meta == wanted and has.get("spec") == wants.get("spec"))


def _bounds(deployment: Obj, wanted: int) -> tuple[int, int]:
    """maxSurge, rounded up, and maxUnavailable, rounded down; 25 % each, and not both none."""
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = _amount(rolling.get("maxSurge", "25%"), wanted, math.ceil)
    unavailable = _amount(rolling.get("maxUnavailable", "25%"), wanted, math.floor)
    return surge, unavailable if surge or unavailable else 1


def _amount(value: int | str, of: int, rounded: Callable[[float], int]) -> int:
    if isinstance(value, str) and value.endswith("%"):
        share = of * int(value[:-1]) / 100
        return rounded(share)
    return int(value)


def _available(replica_set: Obj) -> int:
    return int((replica_set.get("status") or {}).get("availableReplicas", 0))
