"""What must hold of jobs at every step of every run.

* no pod of an attempt that the job loop has let go is given a node that its job's record named as a suspect before
* a job that waits for something waits until a moment that it names
"""

from __future__ import annotations

from collections.abc import Callable

from sickbay.api import names
from sickbay.api.words import RecoveryPhase
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.clock import parse_time
from sickbay.sim.hand import NODES, PODS, RECOVERIES, labels_of
from sickbay.sim.history import OURS
from sickbay.sim.world import World

WAITS = (
    RecoveryPhase.ISOLATING,
    RecoveryPhase.TEARING_DOWN,
    RecoveryPhase.RELEASING,
    RecoveryPhase.WAITING_CAPACITY,
    RecoveryPhase.HELD,
)


class JobInvariants:
    """Told of every write; `breach` is told what breaks a rule."""

    def __init__(self, world: World, breach: Callable[[str], None]) -> None:
        self._world = world
        self._breach = breach

    def written(self, write: Write) -> None:
        if write.new is None:
            return
        if write.resource == PODS:
            before = (write.old or {}).get("spec") or {}
            if write.new["spec"].get("nodeName") and not before.get("nodeName"):
                self._bound(write.new)
        elif write.resource == RECOVERIES and write.user in OURS:
            self._record(write.new)

    def _bound(self, pod: Obj) -> None:
        labels, node = labels_of(pod), pod["spec"]["nodeName"]
        if names.ATTEMPT not in labels:
            return  # nobody of ours has let it go
        found = self._world.store.find(NODES, node) or {"metadata": {"uid": ""}}
        for suspect in self._suspects(pod["metadata"]["namespace"], labels):
            made, since = pod["metadata"].get("creationTimestamp"), suspect.get("since")
            same = suspect["node"] == node and suspect.get("uid", "") in ("", found["metadata"]["uid"])
            # Whole seconds: a pod of the very second in which the node was named may be older than the name.
            if same and made and since and parse_time(made) > parse_time(since):
                self._breach(f"pod {pod['metadata']['name']} landed on {node}, which its job suspects")

    def _suspects(self, namespace: str, labels: dict[str, str]) -> list[Obj]:
        """Nodes that were suspected before the attempt of these labels ran. A pod that its own controller makes anew
        within an attempt has the template of its start, which nobody can change while the job runs."""
        mine = {
            ("JobSet", labels.get("jobset.sigs.k8s.io/jobset-name")),
            ("Job", labels.get("batch.kubernetes.io/job-name")),
        }
        found: list[Obj] = []
        for record in self._world.store.list(RECOVERIES, namespace):
            job = record["spec"]["job"]
            if (job.get("kind"), job.get("name")) in mine:
                status = record.get("status") or {}
                began = _began(status, labels[names.ATTEMPT])
                found += [s for s in status.get("suspects") or [] if not began or (s.get("since") or "") < began]
        return found

    def _record(self, record: Obj) -> None:
        status = record.get("status") or {}
        if status.get("phase") in WAITS and not status.get("deadline"):
            self._breach(f"JobRecovery {record['metadata']['name']} is {status['phase']} without a deadline")


def _began(status: Obj, attempt: str) -> str:
    """When all ranks of the attempt ran, as the record says; "" where they have not."""
    return next((a.get("started") or "" for a in status.get("attempts") or [] if str(a.get("n", 0)) == attempt), "")
