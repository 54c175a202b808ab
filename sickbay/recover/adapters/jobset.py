"""jobset.x-k8s.io/v1alpha2 JobSet: every child Job is part of one gang.

rank = `<replicatedJob>-<job index>-<completion index>`, as in the pods' names. Its controller restarts the whole gang
by itself while its failure policy allows it; those restarts count as attempts like ours. While a JobSet is suspended
its webhook lets labels, annotations, nodeSelector, tolerations and scheduling gates of the templates be changed, but no
affinity: for an exclusion it is made again under its name. It is deleted in the foreground, because its controller
knows children by the name of their owner, and would take those of the old one for failed ones of the new one.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from sickbay.api import kinds
from sickbay.api.core import Pod
from sickbay.api.joblabels import COMPLETION_INDEX, JOB_SET_UID
from sickbay.api.kinds import Kind
from sickbay.recover.adapters.base import condition
from sickbay.recover.job import Obj, number

PREFIX = "jobset.sigs.k8s.io"
CONTROLLER = f"{PREFIX}/jobset-controller"


class JobSet:
    kind: Kind[dict[str, Any]] = kinds.JOB_SET
    excludes_in_place = False
    can_shrink = False
    propagation = "Foreground"

    def rank(self, pod: Pod) -> str:
        labels = pod.labels
        index = labels.get(COMPLETION_INDEX) or pod.annotations.get(COMPLETION_INDEX, "0")
        return f"{labels.get(f'{PREFIX}/replicatedjob-name', '')}-{labels.get(f'{PREFIX}/job-index', '0')}-{index}"

    def owner(self, pod: Pod) -> str:
        return pod.labels.get(JOB_SET_UID, "")

    def restart(self, pod: Pod) -> int:
        return number(pod.labels.get(f"{PREFIX}/restart-attempt"), 0)

    def ranks(self, obj: Obj) -> tuple[str, ...]:
        found: list[str] = []
        for replicated in (obj.get("spec") or {}).get("replicatedJobs") or ():
            spec = (replicated.get("template") or {}).get("spec") or {}
            pods = int(spec.get("completions") or spec.get("parallelism") or 1)
            if pods != int(spec.get("parallelism") or 1):
                return ()
            found += [
                f"{replicated['name']}-{job}-{index}"
                for job in range(int(replicated.get("replicas", 1)))
                for index in range(pods)
            ]
        return tuple(found)

    def restarts(self, obj: Obj) -> int:
        return int((obj.get("status") or {}).get("restarts") or 0)

    def finished(self, obj: Obj) -> tuple[str, str]:
        if condition(obj, "Completed"):
            return "Complete", ""
        failed = condition(obj, "Failed")
        return ("Failed", str(failed.get("reason", ""))) if failed else ("", "")

    def manager(self, obj: Obj) -> str:
        named = (obj.get("spec") or {}).get("managedBy") or ""
        return "" if named == CONTROLLER else str(named)

    def templates(self, obj: Obj) -> list[Obj]:
        children = (obj.get("spec") or {}).get("replicatedJobs") or ()
        return [child["template"].setdefault("spec", {}).setdefault("template", {}) for child in children]

    def resize(self, obj: Obj, ranks: int) -> None:
        """Never called: its replicatedJobs are immutable but for scheduling directives."""

    def stripped(self, obj: Obj) -> Obj:
        return deepcopy(obj.get("spec") or {})

    def settled(self, obj: Obj) -> bool:
        return bool(condition(obj, "Suspended"))

    def resumes_late(self, obj: Obj) -> bool:
        return False

    def blocked_by_lost_pods(self, obj: Obj) -> bool:
        return False
