"""batch/v1 Job in Indexed mode whose pods all run at once: one gang, rank = completion index.

Its controller replaces single pods, which is of no use to a gang; so a failed attempt is suspended, which deletes all
of them, and resumed. A suspended Job lets its scheduling directives be edited (KEP-5440; before that only where
startTime was reset). Once it has the condition Failed it cannot be revived and is made again under its name.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from sickbay.api import kinds
from sickbay.api.core import Pod
from sickbay.api.joblabels import COMPLETION_INDEX, JOB_NAME, JOB_SET_NAME, JOB_UID
from sickbay.api.kinds import Kind
from sickbay.recover.adapters.base import condition
from sickbay.recover.job import Obj

CONTROLLER = "kubernetes.io/job-controller"
"""spec.managedBy of the usual controller."""
BEARABLE_FAILURES = 1
"""Failed pods with which a resumed Job still starts soon: after one it waits 10 s from the failure, then 20 s, ..."""
GENERATED = ("controller-uid", "job-name", JOB_UID, JOB_NAME)
"""Labels that the API server puts into the template of a Job without a selector of its own."""


class IndexedJob:
    kind: Kind[dict[str, Any]] = kinds.JOB
    excludes_in_place = True
    can_shrink = True
    propagation = "Background"

    def rank(self, pod: Pod) -> str:
        return pod.labels.get(COMPLETION_INDEX) or pod.annotations.get(COMPLETION_INDEX, "")

    def owner(self, pod: Pod) -> str:
        """By the label where there is one: it stays on a pod whose Job was deleted without it."""
        owner = pod.metadata.controller
        return pod.labels.get(JOB_UID, owner.uid if owner is not None else "")

    def restart(self, pod: Pod) -> int:
        return 0

    def ranks(self, obj: Obj) -> tuple[str, ...]:
        if JOB_SET_NAME in (obj["metadata"].get("labels") or {}):
            return ()  # a child of a JobSet is a part of that gang, and no job of its own
        spec = obj.get("spec") or {}
        wanted = spec.get("completions")
        if spec.get("completionMode") != "Indexed" or wanted is None or wanted != spec.get("parallelism", 1):
            return ()
        return tuple(str(index) for index in range(int(wanted)))

    def restarts(self, obj: Obj) -> int:
        return 0

    def finished(self, obj: Obj) -> tuple[str, str]:
        for type_, state in (("Complete", "Complete"), ("SuccessCriteriaMet", "Complete")):
            if condition(obj, type_):
                return state, ""
        failed = condition(obj, "Failed") or condition(obj, "FailureTarget")
        return ("Failed", str(failed.get("reason", ""))) if failed else ("", "")

    def manager(self, obj: Obj) -> str:
        named = (obj.get("spec") or {}).get("managedBy") or ""
        return "" if named == CONTROLLER else str(named)

    def templates(self, obj: Obj) -> list[Obj]:
        return [obj["spec"].setdefault("template", {})]

    def resize(self, obj: Obj, ranks: int) -> None:
        """An elastic Indexed Job: both are changed together, as the API server wants it (KEP-3715)."""
        obj["spec"]["completions"] = obj["spec"]["parallelism"] = ranks

    def stripped(self, obj: Obj) -> Obj:
        spec: Obj = deepcopy(obj.get("spec") or {})
        if spec.get("manualSelector"):
            return spec
        for field in ("selector", "manualSelector"):
            spec.pop(field, None)
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        for key in GENERATED:
            labels.pop(key, None)
        return spec

    def settled(self, obj: Obj) -> bool:
        return bool(condition(obj, "Suspended")) and not (obj.get("status") or {}).get("active")

    def resumes_late(self, obj: Obj) -> bool:
        """Its back-off doubles with every failed pod, up to ten minutes; a gang that dies as one has many at once."""
        return int((obj.get("status") or {}).get("failed") or 0) > BEARABLE_FAILURES

    def blocked_by_lost_pods(self, obj: Obj) -> bool:
        """With podReplacementPolicy Failed a pod that nobody can confirm dead is never replaced (k/k#134038)."""
        return (obj.get("spec") or {}).get("podReplacementPolicy") == "Failed"
