"""Asking a job for a checkpoint, and knowing when it has one.

By annotation: `sickbay.dev/checkpoint-request` on its pods is ours, `sickbay.dev/checkpoint-done` with the same value
the job's answer. A checkpoint is complete when the coordinator (the first rank) says so, or every rank does: one rank's
word is not enough, since a checkpoint of which parts are missing is none.
"""

from __future__ import annotations

from sickbay.api import names
from sickbay.api.objectnames import act_key
from sickbay.recover.view import RankPod, Work, current, newest


def request_value(repair: str, step: str, attempt: int) -> str:
    return act_key(repair, step, attempt)


def ranks_on(work: Work, node: str) -> list[RankPod]:
    """The job's live pods on a node."""
    return [pod for pod in gang(work) if pod.pod.node_name == node]


def gang(work: Work) -> list[RankPod]:
    return [pod for pod in newest(current(work.view)).values() if pod.active]


def ask(work: Work, value: str) -> None:
    """Have the request put on every pod that does not carry it."""
    for pod in gang(work):
        if pod.pod.annotations.get(names.CHECKPOINT_REQUEST) != value:
            work.annotate[pod.pod.name] = value


def has_checkpoint(work: Work, value: str) -> bool:
    job = work.view.job
    done = {pod.rank for pod in gang(work) if pod.pod.annotations.get(names.CHECKPOINT_DONE) == value}
    if job is None or not job.ranks:
        return False
    return job.ranks[0] in done or done >= set(job.ranks)
