"""The breaker of a pool: too many sick nodes at once mean something that repairs would make worse.

    Closed    -> Open       more nodes than the limit are faulty
    Open      -> HalfOpen   at or below the limit for one cooldown without a break (reset: Auto)
    Open      -> Closed     a person resets it by naming the moment it opened
    HalfOpen  -> Closed     the one trial repair succeeded, or no node was faulty for one cooldown
    HalfOpen  -> Open       the trial failed, went to people or was parked; or above the limit again

While it is open no start is granted (Unavailable and Repair slots); what holds its slot goes on, and the way back into
service is never touched. A reset names `openedAt`, so re-applying an old one (GitOps) does nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from sickbay.api import names, quantity
from sickbay.api.duration import parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import BreakerStatus, RepairPool
from sickbay.api.words import BreakerReset, BreakerState, Outcome, Phase
from sickbay.clock import parse_time, rfc3339

LEAST = 2
"""A percentage never opens the breaker for fewer faulty nodes than more than this many (api.md)."""


def limit(pool: RepairPool, size: int) -> int:
    """How many faulty nodes the breaker bears: the tighter of threshold and maxNodes.

    20 % of 30 nodes are 6; of 5 nodes 1, and so 2.
    """
    spec = pool.spec.breaker
    threshold = quantity.resolve(spec.threshold, size, at_least=LEAST)
    return min(threshold, quantity.resolve(spec.max_nodes, size, at_least=LEAST))


def judge(pool: RepairPool, size: int, faulty: int, trial: NodeRepair | None, now: datetime) -> BreakerStatus:
    """The breaker as it has to be now. `trial` is the record of the repair let through half open."""
    status, most = pool.status.breaker, limit(pool, size)
    if faulty > most:
        return _above(status, faulty, most, now)
    if status.state == BreakerState.CLOSED:
        return status
    if status.state == BreakerState.OPEN and _reset_by_hand(pool):
        return BreakerStatus()
    below = status.below_since or rfc3339(now)
    status = msgspec.structs.replace(status, below_since=below)
    rested = now - parse_time(below) >= parse_duration(pool.spec.breaker.cooldown)
    if status.state == BreakerState.OPEN:
        return _open(pool, status, faulty, rested)
    return _half_open(status, faulty, rested, trial, now)


def _above(status: BreakerStatus, faulty: int, most: int, now: datetime) -> BreakerStatus:
    reason = f"{faulty} nodes are faulty, more than {most}"
    if status.state == BreakerState.OPEN:
        return msgspec.structs.replace(status, below_since=None, reason=reason)
    return BreakerStatus(state=BreakerState.OPEN, opened_at=rfc3339(now), reason=reason)


def _open(pool: RepairPool, status: BreakerStatus, faulty: int, rested: bool) -> BreakerStatus:
    if not rested or pool.spec.breaker.reset == BreakerReset.MANUAL:
        return status
    if faulty == 0:
        return BreakerStatus()
    reason = "one repair is let through as a trial"
    return msgspec.structs.replace(
        status, state=BreakerState.HALF_OPEN.value, below_since=None, trial="", reason=reason
    )


def _half_open(
    status: BreakerStatus, faulty: int, rested: bool, trial: NodeRepair | None, now: datetime
) -> BreakerStatus:
    if faulty > 0:
        status = msgspec.structs.replace(status, below_since=None)  # here it measures the time without any fault
    elif rested:
        return BreakerStatus()
    if not status.trial:
        return status
    if trial is None or trial.status.phase in (Phase.CANCELLED, Phase.CANCELLING):
        return msgspec.structs.replace(status, trial="")
    if trial.status.phase == Phase.SUCCEEDED or trial.status.outcome == Outcome.REPAIRED:
        return BreakerStatus()
    if trial.status.phase in (Phase.FAILED, Phase.NEEDS_HUMAN, Phase.PARKED):
        return BreakerStatus(
            state=BreakerState.OPEN,
            opened_at=rfc3339(now),
            below_since=rfc3339(now),
            reason=f"the trial {status.trial} did not succeed ({trial.status.phase})",
        )
    return status


def _reset_by_hand(pool: RepairPool) -> bool:
    wanted = pool.metadata.annotations.get(names.RESET_BREAKER)
    return wanted is not None and wanted == pool.status.breaker.opened_at


def refusal(status: BreakerStatus, repair: str) -> str:
    """Why the breaker grants this repair no start; "" when it does."""
    if status.state == BreakerState.CLOSED or (status.state == BreakerState.HALF_OPEN and status.trial in ("", repair)):
        return ""
    if status.state == BreakerState.HALF_OPEN:
        return f"the breaker is half open, and {status.trial} is the trial"
    return f"the breaker is open: {status.reason}"


def with_trial(status: BreakerStatus, repair: str) -> BreakerStatus:
    """The breaker after it has let this repair start."""
    if status.state != BreakerState.HALF_OPEN or status.trial:
        return status
    return msgspec.structs.replace(status, trial=repair)


def cooled(status: BreakerStatus, pool: RepairPool, now: datetime) -> timedelta | None:
    """How long until the next change by time alone; None when none is due."""
    if status.state == BreakerState.CLOSED or status.below_since is None:
        return None
    return max(timedelta(0), parse_time(status.below_since) + parse_duration(pool.spec.breaker.cooldown) - now)
