"""Storm sense: many first faults of one kind at once are one shared cause, not many broken nodes.

Within the pool's window the first faults of the nodes are grouped by fault type, by failure domain and by the version
of the detector. A group of at least `storm.nodes` nodes is a storm: one alert, no repairs, until fewer than that many
of its nodes have been faulty for one window, or a person ends it. A group repair (one rack) counts as one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from sickbay.api import names
from sickbay.api.duration import parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool, StormStatus
from sickbay.api.words import Origin
from sickbay.clock import parse_time, rfc3339
from sickbay.decide import breaker

ZONES = ("topology.kubernetes.io/zone", "sickbay.dev/rack")
"""Failure domains that are looked at in every pool, beside the keys that its `domains` name."""


SETTLES = timedelta(seconds=2)
"""How long a new repair waits to see whether it is alone."""


class Onset(msgspec.Struct, frozen=True):
    """The first fault of one sick node."""

    node: str
    fault: str
    at: datetime
    """When we first saw it."""
    labels: Mapping[str, str]
    detector: str = ""
    """Name and version of the detector that reported it; "" where that is not known."""
    group: str = ""
    """The group (rack, super node) that is repaired as one."""


def causes(onset: Onset, domains: Iterable[str]) -> list[str]:
    """What a storm of which this onset is a part could be named after."""
    found = [f"fault {onset.fault}"]
    found += [f"domain {key}={onset.labels[key]}" for key in sorted({*domains, *ZONES}) if key in onset.labels]
    return found + ([f"detector {onset.detector}"] if onset.detector else [])


def judge(pool: RepairPool, onsets: Iterable[Onset], now: datetime) -> list[StormStatus]:
    """The storms of the pool as they have to be now. `onsets` are those of all nodes that are sick now."""
    spec = pool.spec.storm
    if spec.nodes <= 0:
        return []
    window, domains = parse_duration(spec.window), [d.key for d in pool.spec.domains]
    sick: dict[str, dict[str, datetime]] = {}
    for onset in onsets:
        for cause in causes(onset, domains):
            one = onset.group or onset.node
            known = sick.setdefault(cause, {})
            known[one] = min(known.get(one, onset.at), onset.at)
    kept = [s for storm in pool.status.storms if (s := _kept(storm, sick, spec.nodes, window, pool, now)) is not None]
    standing = {storm.cause for storm in kept}
    for cause in sorted(sick):
        if cause not in standing and _dense(list(sick[cause].values()), spec.nodes, window, now):
            kept.append(StormStatus(cause=cause, since=rfc3339(now), nodes=len(sick[cause])))
    return kept[:32]


def _dense(moments: list[datetime], nodes: int, window: timedelta, now: datetime) -> bool:
    """True when so many onsets lie within one window that has not been over for longer than another one."""
    moments = sorted(moments)
    for first, last in zip(moments, moments[nodes - 1 :], strict=False):
        if last - first <= window and now - last <= window:
            return True
    return False


def _kept(
    storm: StormStatus, sick: Mapping[str, Mapping[str, datetime]], nodes: int, window: timedelta,
    pool: RepairPool, now: datetime,
) -> StormStatus | None:  # fmt: skip
    """The storm as it stands; None when it has ended."""
    ended_by = pool.metadata.annotations.get(names.END_STORM)
    if storm.since is not None and ended_by == storm.since:
        return None
    count = len(sick.get(storm.cause, {}))
    if count >= nodes:
        return StormStatus(cause=storm.cause, since=storm.since, nodes=count, below_since=None)
    below = storm.below_since or rfc3339(now)
    if now - parse_time(below) >= window:
        return None
    return StormStatus(cause=storm.cause, since=storm.since, nodes=count, below_since=below)


def settled(pool: RepairPool, size: int, repair: NodeRepair, now: datetime) -> datetime | None:
    """When it will be known whether a repair that has just opened is alone; None when there is nothing to wait for.

    Detectors of many nodes do not speak in the same instant: without this the first of them would be repaired before
    the storm is seen, or the breaker opens.
    """
    made = repair.metadata.creation_timestamp
    may_be_stopped = pool.spec.storm.nodes > 0 or breaker.limit(pool, size) < size
    if not may_be_stopped or repair.spec.origin != Origin.FAULT or not made:
        return None
    opened = parse_time(made)
    return opened + SETTLES if timedelta() <= now - opened < SETTLES else None


def refusal(storms: Iterable[StormStatus]) -> str:
    """Why a storm grants no start; "" when there is none."""
    first = next(iter(storms), None)
    return (
        f"a storm: {first.nodes} nodes with {first.cause}; one shared cause is looked for" if first is not None else ""
    )
