"""One look at one job, made from few words: a gang on nodes n0, n1, ... as the loop sees it at a moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from sickbay.api.core import Node, Pod
from sickbay.api.recovery_policy import RecoveryPolicySpec
from sickbay.clock import rfc3339
from sickbay.recover.adapters import ADAPTERS
from sickbay.recover.adapters.base import facts
from sickbay.recover.job import Job, JobId
from sickbay.recover.sources import rank_pod
from sickbay.recover.view import RankPod, View
from tests.recover.fleet import indexed_job

START = datetime(2027, 3, 1, 8, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def node(name: str, ready: str = "True", since: float = 0.0, *, cordoned: bool = False) -> Node:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": rfc3339(at(since))}
    body = {
        "metadata": {"name": name, "uid": f"u-{name}"},
        "spec": {"unschedulable": cordoned},
        "status": {"conditions": [condition]},
    }
    return msgspec.convert(body, Node)


def pod(rank: int, *, made: float = 0.0, on: str | None = None, phase: str = "Running", **more: Any) -> RankPod:
    """A rank's pod. `deleted`: when its grace is over; `containers`: its statuses; `annotations`; `conditions`."""
    meta: dict[str, Any] = {
        "name": f"llm-{rank}-{made:.0f}",
        "namespace": "default",
        "uid": f"p-{rank}-{made:.0f}",
        "creationTimestamp": rfc3339(at(made)),
        "labels": {"batch.kubernetes.io/job-name": "llm", "batch.kubernetes.io/job-completion-index": str(rank)},
        "annotations": more.get("annotations", {}),
    }
    if "deleted" in more:
        meta["deletionTimestamp"] = rfc3339(at(more["deleted"]))
    status = {
        "phase": phase,
        "containerStatuses": more.get("containers", []),
        "conditions": more.get("conditions", []),
    }
    spec = {"nodeName": f"n{rank}" if on is None else on}
    return rank_pod(ADAPTERS["Job"], msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Pod))


def unplaced(rank: int, since: float = 0.0) -> RankPod:
    """A rank for which the scheduler has found no node."""
    refused = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": rfc3339(at(since)),
        "message": "0/4 nodes are available",
    }
    return pod(rank, on="", phase="Pending", conditions=[refused])


def job(ranks: int = 4) -> Job:
    manifest = indexed_job("llm", ranks)
    manifest["metadata"] |= {"uid": "u-1", "resourceVersion": "1"}
    return facts(ADAPTERS["Job"], manifest)


def look(*pods: RankPod, now: float = 60.0, nodes: tuple[Node, ...] = (), ranks: int = 4, **more: Any) -> View:
    """`policy`: parts of a RecoveryPolicy's spec; the rest as in View."""
    spec = {"jobSelector": {}, "mode": "Act", **more.pop("policy", {})}
    known = {f"n{rank}": node(f"n{rank}") for rank in range(ranks)} | {n.name: n for n in nodes}
    return View(
        now=at(now),
        id=JobId("Job", "default", "llm"),
        job=more.pop("job", job(ranks)),
        policy=msgspec.convert(spec, RecoveryPolicySpec),
        policy_name="training",
        pods=pods,
        nodes=known,
        **more,
    )
