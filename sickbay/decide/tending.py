"""When a pool is looked at again although nothing has changed: at the next moment at which time alone changes anything.

What waits for a slot is woken by every change of its pool, of the nodes in it and of their repairs (`wakeups`), and
would find the same at each look in between. What time brings is known beforehand: a window opens or closes, a breaker
has cooled down, a storm is over, a blind node begins to count, `minInterval` is over, a count that was held back is
due. Slots are looked at now and then beside, since they stand for what other processes do.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sickbay.api.duration import parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool, Slot
from sickbay.api.words import BreakerReset, BreakerState
from sickbay.clock import parse_time
from sickbay.decide import breaker, limits, slots, windows
from sickbay.decide.tally import Counts

SLOTS_AGAIN = timedelta(seconds=60)
FRESH_AGAIN = timedelta(seconds=10)
"""Between two looks at slots: the longer once they are no more too new to be judged (`slots.SETTLE`)."""


def next_look(
    pool: RepairPool, counts: Counts, repairs: Iterable[NodeRepair], waiting: bool, now: datetime
) -> datetime | None:
    """The next moment at which the pool may read otherwise by time alone; None when there is none.

    repairs  open and recent repairs of the pool
    waiting  some repair waits for a slot in it
    """
    moments = [*_slots(pool.status.slots, now), *_storms(pool), *_breaker(pool, now), counts.next_blind(now)]
    if waiting:
        moments += [windows.next_change(pool.spec.windows, now), _interval(pool, repairs)]
    return min((moment for moment in moments if moment is not None and moment > now), default=None)


def _slots(held: Iterable[Slot], now: datetime) -> list[datetime]:
    fresh = [slots.fresh(slot, now) for slot in held]
    return [now + (FRESH_AGAIN if any(fresh) else SLOTS_AGAIN)] if fresh else []


def _storms(pool: RepairPool) -> list[datetime]:
    window = parse_duration(pool.spec.storm.window)
    return [parse_time(storm.below_since) + window for storm in pool.status.storms if storm.below_since]


def _breaker(pool: RepairPool, now: datetime) -> list[datetime]:
    status = pool.status.breaker
    by_hand = status.state == BreakerState.OPEN and pool.spec.breaker.reset == BreakerReset.MANUAL
    left = None if by_hand else breaker.cooled(status, pool, now)
    return [] if left is None else [now + left]


def _interval(pool: RepairPool, repairs: Iterable[NodeRepair]) -> datetime | None:
    """When `minInterval` is over after the last start."""
    starts = [start for repair in repairs if (start := limits.first_start(repair)) is not None]
    gap = parse_duration(pool.spec.min_interval)
    return parse_time(max(starts)) + gap if starts and gap else None
