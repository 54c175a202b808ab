"""No room: what is done with a gang that has not found a place for all its ranks. None of it costs a retry.

A gang that waits for room holds what a part of it has found. Where its ranks do not bear that (a rendezvous that times
out), or its policy says so, it is set down as a whole and tried again after a growing pause.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import timedelta

from sickbay.api.core import PodCondition
from sickbay.api.duration import format_duration, parse_duration
from sickbay.api.words import JobAction, JobVerdict, RecoveryPhase
from sickbay.clock import rfc3339
from sickbay.recover.choose import PAUSE_FIRST, PAUSE_MOST
from sickbay.recover.signs import moment
from sickbay.recover.stops import RELEASE, hold
from sickbay.recover.view import NO_FIT, RankPod, Work


def refused(pods: Iterable[RankPod]) -> list[PodCondition]:
    """What the scheduler says of those for which it has found no node."""
    found = [c for p in pods if (c := p.pod.condition("PodScheduled")) is not None]
    return [c for c in found if c.status == "False" and c.reason == "Unschedulable"]


def set_down(work: Work, why: str) -> None:
    """This attempt never ran: it costs nothing."""
    attempt = work.attempt
    attempt.verdict, attempt.action = JobVerdict.POLICY.value, JobAction.REQUEUE.value
    attempt.evidence, attempt.fingerprint = [why[:512]], NO_FIT
    attempt.ended = rfc3339(work.now)


def requeue(work: Work, message: str) -> None:
    """Give the nodes back that a part of the gang holds, and try again later; people when that has no end."""
    set_down(work, message)
    limit = parse_duration(work.policy.no_fit_deadline)
    tries = list(itertools.takewhile(lambda a: a.fingerprint == NO_FIT, reversed(work.status.attempts)))
    first = moment(tries[-1].ended) or work.now
    if work.now - first >= limit:
        hold(work, f"{message}, for {format_duration(limit)}")
        return
    pause: timedelta = min(PAUSE_FIRST * (1 << min(len(tries) - 1, 10)), PAUSE_MOST)
    work.enter(RecoveryPhase.HELD, message, pause, RELEASE)
    work.note("JobWaitsForCapacity", message, warning=True)
