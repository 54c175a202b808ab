"""What the loop asks of a kind of job. One file per kind; everything that all kinds share is done outside.

An adapter reads objects and edits copies of them. It never talks to anybody.
"""

from __future__ import annotations

import hashlib
from copy import deepcopy
from typing import Any, Protocol

import msgspec

from sickbay.api import names
from sickbay.api.core import Pod
from sickbay.api.kinds import Kind
from sickbay.recover import affinity
from sickbay.recover.job import Job, JobId, Obj, foreign_owner, number


class Adapter(Protocol):
    """One kind of job."""

    kind: Kind[dict[str, Any]]
    excludes_in_place: bool
    """Whether the kind lets the affinity of a suspended job be changed; if not, the job is made again for it."""
    can_shrink: bool
    """Whether a job of the kind can be given fewer ranks."""
    propagation: str
    """How an old job is deleted before it is made again under its name."""

    def rank(self, pod: Pod) -> str: ...

    def owner(self, pod: Pod) -> str:
        """UID of the job object that the pod was made for; "" where it does not tell."""
        ...

    def restart(self, pod: Pod) -> int:
        """Which of its own controller's restarts the pod belongs to."""
        ...

    def ranks(self, obj: Obj) -> tuple[str, ...]:
        """All ranks in order; empty for a job that is no gang, which the loop leaves alone."""
        ...

    def restarts(self, obj: Obj) -> int: ...

    def finished(self, obj: Obj) -> tuple[str, str]:
        """("Complete" | "Failed" | "", reason)."""
        ...

    def manager(self, obj: Obj) -> str:
        """The controller named in place of the usual one, "" for none."""
        ...

    def templates(self, obj: Obj) -> list[Obj]:
        """The pod templates within the object, to be edited in place."""
        ...

    def resize(self, obj: Obj, ranks: int) -> None:
        """Give the object so many ranks, in place. Called where `can_shrink`."""
        ...

    def stripped(self, obj: Obj) -> Obj:
        """The spec without what the API server or a controller puts into it."""
        ...

    def settled(self, obj: Obj) -> bool:
        """True when its controller has taken note that the job is suspended: its pods are gone from its counts."""
        ...

    def resumes_late(self, obj: Obj) -> bool:
        """True when its controller would hold back the pods of a resumed job, for its own back-off."""
        ...

    def blocked_by_lost_pods(self, obj: Obj) -> bool:
        """True when its controller waits for ever for a pod that cannot be confirmed gone."""
        ...


def facts(adapter: Adapter, obj: Obj) -> Job:
    meta = obj["metadata"]
    state, reason = adapter.finished(obj)
    return Job(
        id=JobId(adapter.kind.kind, meta.get("namespace", ""), meta["name"]),
        api_version=adapter.kind.api_version,
        raw=obj,
        ranks=adapter.ranks(obj),
        restarts=adapter.restarts(obj),
        finished=state,
        reason=reason,
        foreign=foreign_owner(obj, adapter.manager(obj)),
        template=_template_hash(adapter, obj),
    )


def _template_hash(adapter: Adapter, obj: Obj) -> str:
    """What the owner wrote, without what changes from attempt to attempt."""
    clean = {"spec": adapter.stripped(obj), "metadata": obj["metadata"]}
    _unmark(adapter, clean, obj)
    clean["spec"].pop("suspend", None)
    full = _full_ranks(obj["metadata"])
    if full and adapter.can_shrink:
        adapter.resize(clean, full)
    text = msgspec.json.encode(clean["spec"], order="deterministic")
    return hashlib.sha256(text).hexdigest()[:16]


def _unmark(adapter: Adapter, clean: Obj, obj: Obj) -> None:
    before = (obj["metadata"].get("annotations") or {}).get(names.EXCLUDED_NODES, "")
    for template in adapter.templates(clean):
        affinity.exclude(template.setdefault("spec", {}), [n for n in before.split(",") if n], [])
        (template.get("metadata") or {}).get("labels", {}).pop(names.ATTEMPT, None)
        if not (template.get("metadata") or {}).get("labels", True):
            template["metadata"].pop("labels")
        if not template.get("metadata", True):
            template.pop("metadata")


def held(job: Job, after: int) -> Obj:
    """The job suspended by us, after attempt `after`. Its controller deletes the gang."""
    new = deepcopy(job.raw)
    new["spec"]["suspend"] = True
    new["metadata"].setdefault("annotations", {})[names.HELD_FOR] = str(after)
    return new


def released(adapter: Adapter, job: Job, attempt: int, excluded: list[str], ranks: int = 0) -> Obj:
    """The job let go again as this attempt, keeping away from the host names in `excluded`.

    `ranks`: so many, where it has to be smaller; 0 = as many as its owner gave it.
    """
    new = deepcopy(job.raw)
    _mark(adapter, new, job.excluded, attempt, excluded)
    _resize(adapter, new, ranks)
    new["spec"]["suspend"] = False
    return new


def again(adapter: Adapter, job: Job, attempt: int, excluded: list[str], ranks: int = 0) -> Obj:
    """The manifest that makes a finished job anew under its name."""
    meta = job.meta
    kept: Obj = {key: deepcopy(meta[key]) for key in ("name", "namespace", "labels", "annotations") if meta.get(key)}
    owners = [owner for owner in meta.get("ownerReferences") or () if not owner.get("controller")]
    if owners:
        kept["ownerReferences"] = owners
    new: Obj = {
        "apiVersion": job.api_version,
        "kind": job.id.kind,
        "metadata": kept,
        "spec": adapter.stripped(job.raw),
    }
    _mark(adapter, new, job.excluded, attempt, excluded)
    _resize(adapter, new, ranks)
    new["spec"]["suspend"] = False
    return new


def full_size(job: Job) -> int:
    """How many ranks its owner gave it, whatever we have made of it."""
    return _full_ranks(job.meta) or len(job.ranks)


def _full_ranks(meta: Obj) -> int:
    return number((meta.get("annotations") or {}).get(names.FULL_RANKS), 0)


def _resize(adapter: Adapter, new: Obj, ranks: int) -> None:
    if not adapter.can_shrink:
        return
    annotations = new["metadata"].setdefault("annotations", {})
    full = _full_ranks(new["metadata"]) or len(adapter.ranks(new))
    annotations.pop(names.FULL_RANKS, None)
    adapter.resize(new, ranks or full)
    if ranks and ranks < full:
        annotations[names.FULL_RANKS] = str(full)


def _mark(adapter: Adapter, new: Obj, before: list[str], attempt: int, excluded: list[str]) -> None:
    meta = new["metadata"]
    meta.setdefault("labels", {})[names.ATTEMPT] = str(attempt)
    annotations = meta.setdefault("annotations", {})
    annotations.pop(names.HELD_FOR, None)
    annotations.pop(names.EXCLUDED_NODES, None)
    if excluded:
        annotations[names.EXCLUDED_NODES] = ",".join(excluded)
    for template in adapter.templates(new):
        template.setdefault("metadata", {}).setdefault("labels", {})[names.ATTEMPT] = str(attempt)
        affinity.exclude(template.setdefault("spec", {}), before, excluded)


def condition(obj: Obj, type_: str) -> Obj:
    """The condition of that type when it is True, else an empty dict."""
    found = ((obj.get("status") or {}).get("conditions")) or ()
    return next((c for c in found if c.get("type") == type_ and c.get("status") == "True"), {})
