"""A job as the loop sees it, whatever its kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from sickbay.api import names

Obj = dict[str, Any]

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""On a job whose spec.suspend belongs to Kueue."""


class JobId(NamedTuple):
    """Names a job; what it is bound to is its UID, which stands in the JobRecovery."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class Job:
    """The facts of one job object."""

    id: JobId
    api_version: str
    raw: Obj
    ranks: tuple[str, ...]
    """Every rank of the gang, in order."""
    restarts: int
    """Restarts that its own controller has made."""
    finished: str
    """"Complete", "Failed" or ""; also when it only waits for its last pods to end."""
    reason: str
    """Why it failed, in the words of its controller."""
    foreign: str
    """Why the job is not ours to restart, in words; "" when it is."""
    template: str
    """Hash of what the owner wrote: another one is another program."""

    @property
    def meta(self) -> Obj:
        found: Obj = self.raw["metadata"]
        return found

    @property
    def uid(self) -> str:
        return str(self.meta.get("uid", ""))

    @property
    def labels(self) -> dict[str, str]:
        return self.meta.get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.meta.get("annotations") or {}

    @property
    def deleting(self) -> bool:
        return bool(self.meta.get("deletionTimestamp"))

    @property
    def suspended(self) -> bool:
        return bool((self.raw.get("spec") or {}).get("suspend"))

    @property
    def marked(self) -> bool:
        """Carries our mark of a hold. With `suspended` it is held by us; without, somebody has resumed it."""
        return names.HELD_FOR in self.annotations

    @property
    def held(self) -> bool:
        """Suspended by us."""
        return self.suspended and self.marked

    @property
    def attempt(self) -> int:
        return number(self.labels.get(names.ATTEMPT), 1)

    @property
    def excluded(self) -> list[str]:
        """Host names that our term in its affinity keeps away from."""
        text = self.annotations.get(names.EXCLUDED_NODES, "")
        return [name for name in text.split(",") if name]


def number(text: str | None, default: int) -> int:
    """A count written as text; the default for anything else."""
    return int(text) if text is not None and text.isdecimal() else default


def foreign_owner(obj: Obj, manager: str) -> str:
    """Why somebody else's controller would undo what we do to the job; "" when nobody's would.

    manager  the controller that the kind's own field names, "" for the usual one
    """
    meta = obj.get("metadata") or {}
    owner = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), None)
    if owner is not None:
        return f"it belongs to {owner.get('kind')} {owner.get('name')}"
    if QUEUE_LABEL in (meta.get("labels") or {}):
        return f"Kueue manages it (label {QUEUE_LABEL})"
    return f"{manager} manages it (spec.managedBy)" if manager else ""
