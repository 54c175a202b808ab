"""What is on record of a node before this incident, in words: shown to whoever gives a node back without a validation.

A flaky node that is resumed by hand breaks jobs again; at that moment people should see how often it was repaired.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import Phase
from sickbay.clock import parse_time

MOST = 3
"""Incidents that are named one by one; of the others the number."""


def incidents(repairs: Iterable[NodeRepair], node_uid: str, besides: str = "") -> list[NodeRepair]:
    """Ended incidents of this very node in which something was wrong with it, the latest first.

    besides   UID of a repair that is left out
    """
    ended = [r for r in repairs if r.ended and r.spec.node.uid == node_uid and r.metadata.uid != besides]
    known = [r for r in ended if r.spec.faults and r.status.ended_at and r.status.phase != Phase.WOULD_ACT]
    return sorted(known, key=lambda r: r.status.ended_at or "", reverse=True)


def told(found: list[NodeRepair], now: datetime) -> str:
    """One line about them; "" when there are none."""
    if not found:
        return ""
    named = ", ".join(line(repair, now) for repair in found[:MOST])
    more = f" and {len(found) - MOST} more" if len(found) > MOST else ""
    return f"{len(found)} earlier incident{'s' if len(found) > 1 else ''}: {named}{more}"


def line(repair: NodeRepair, now: datetime) -> str:
    """The leading fault, how it ended, and when."""
    ended = parse_time(repair.status.ended_at) if repair.status.ended_at else now
    return f"{repair.spec.faults[0].type} {repair.status.outcome} {_ago(now - ended)}"


def _ago(time: timedelta) -> str:
    hours = int(time.total_seconds() // 3600)
    if hours < 1:
        return f"{max(0, int(time.total_seconds() // 60))}m ago"
    return f"{hours}h ago" if hours < 48 else f"{hours // 24}d ago"
