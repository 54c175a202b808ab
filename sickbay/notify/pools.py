"""What a pool has to tell people: its breaker is open, or a storm keeps its repairs back.

Both stop new repairs for a whole pool, and both may stand until a person acts: one message when it begins, and
reminders while it lasts (api.md: "until then the pool needs people, with reminders").
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from sickbay.api import names
from sickbay.api.repair_pool import RepairPool, StormStatus
from sickbay.api.words import BreakerState, MessageCategory
from sickbay.clock import parse_time, rfc3339
from sickbay.notify.messages import Due, Message, calls, latest


def of_pool(pool: RepairPool, now: datetime) -> Due:
    """Everything a pool has to tell so far."""
    due = Due()
    _breaker(pool, now, due)
    for storm in pool.status.storms:
        _storm(pool, storm, now, due)
    return due


def _breaker(pool: RepairPool, now: datetime, due: Due) -> None:
    breaker = pool.status.breaker
    if breaker.state != BreakerState.OPEN or not breaker.opened_at:
        return
    text = f"{breaker.reason or 'too many nodes are faulty'}. No new repair starts; those under way go on."
    command = _annotate(pool, names.RESET_BREAKER, breaker.opened_at)
    _call(pool, f"breaker/{breaker.opened_at}", "its breaker is open", text, command, breaker.opened_at, now, due)


def _storm(pool: RepairPool, storm: StormStatus, now: datetime, due: Due) -> None:
    if not storm.since:
        return
    # Two storms may begin in one second: the cause tells them apart, in as many characters as a key has room for.
    cause = hashlib.sha256(storm.cause.encode()).hexdigest()[:8]
    text = (
        f"A storm, {storm.nodes} nodes: {storm.cause}. Look for the one shared cause; none of them is repaired "
        "until this is over."
    )
    command = _annotate(pool, names.END_STORM, storm.since)
    _call(pool, f"storm/{storm.since}/{cause}", "many nodes fail at once", text, command, storm.since, now, due)


def _call(pool: RepairPool, key: str, title: str, text: str, command: str, since: str, now: datetime, due: Due) -> None:
    name = pool.metadata.name
    began = parse_time(since)
    for number, moment in latest(began, calls(now - began), now, due):
        due.messages.append(
            Message(
                key=f"{key}/{number}",
                about=pool.metadata.uid,
                category=MessageCategory.REPAIR_PROGRESS,
                node="",
                title=f"pool {name}: {title}" + (f" (reminder {number})" if number else ""),
                text=text,
                warning=True,
                command=command,
                at=rfc3339(moment),
            )
        )


def _annotate(pool: RepairPool, key: str, value: str) -> str:
    return f"kubectl annotate repairpool {pool.metadata.name} {key}={value} --overwrite"
