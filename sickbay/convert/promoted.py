"""Conditions from Events of other detectors: when one begins, and what ends it.

An Event has no opposite, so a condition made from some ends by what its fault type names (`clearsBy`):

    condition           the window has passed without another Event
    silence             the soak has passed without another Event
    reboot, replacement the node was booted after the last Event
    reset, probe        that, or an act of ours on the node is done, without another Event since

Evidence that was judged stays judged: after the end only later Events count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sickbay.api import names
from sickbay.api.core import Event, Node, NodeCondition
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import ClearsBy
from sickbay.clock import parse_time
from sickbay.convert import trace
from sickbay.convert.asked import Asked
from sickbay.convert.counting import by_device, evidence, reached
from sickbay.convert.trace import Trace
from sickbay.convert.wanted import Wanted

ACT_QUIET = 60.0
"""Seconds after an act of ours without new evidence before it counts as having helped."""
RETOLD = timedelta(seconds=60)
"""How much later new evidence has to be before the message names it: repetition writes little."""


@dataclass(slots=True)
class _Ear:
    """What this process has heard of one condition of one node: the moments are its own."""

    last: datetime | None
    heard: float
    boot: str
    booted: float


class Memory:
    """What `judge` knows of the past beyond the objects. After a restart all waits begin anew, which only delays."""

    def __init__(self) -> None:
        self._ears: dict[tuple[str, str], _Ear] = {}

    def listen(self, node: Node, type_: str, last: datetime | None, at: float) -> _Ear:
        ear = self._ears.get((node.uid, type_))
        if ear is None:
            ear = self._ears[node.uid, type_] = _Ear(last, at, node.boot_id, at)
        if last is not None and (ear.last is None or last > ear.last):
            ear.last, ear.heard = last, at
        if node.boot_id and node.boot_id != ear.boot:
            ear.boot, ear.booted = node.boot_id, at
        return ear

    def forget(self, uid: str) -> None:
        for key in [key for key in self._ears if key[0] == uid]:
            del self._ears[key]


@dataclass(frozen=True, slots=True)
class Judged:
    """The condition as Events say it should be, None where they say nothing of it; and the seconds after which time
    alone may change that, None = never."""

    wanted: Wanted | None = None
    again: float | None = None


def last_evidence(one: Asked, node: Node, events: Sequence[Event]) -> datetime | None:
    """The latest of what Events ever said, that which the condition names included."""
    times = [t for test in one.events for t in evidence(events, test, node, None, None)]
    before = trace.read(node.condition(one.condition)).last
    return max([*times, *([before] if before is not None else [])], default=None)


def judge(
    one: Asked, node: Node, events: Sequence[Event], repairs: Iterable[NodeRepair], memory: Memory, at: float
) -> Judged:
    """One condition of one node. `at` is our monotonic time."""
    old = node.condition(one.condition)
    if old is not None and old.status != "False" and trace.is_from_events(old):
        return _standing(one, node, old, events, repairs, memory, at)
    after = trace.read(old).last
    ended = parse_time(old.last_transition_time) if old is not None and old.last_transition_time else None
    groups = by_device(events)
    for test in one.events:
        told = (evidence(group, test, node, one.created, after, ended) for group in groups)
        found = [times for times in told if reached(times, test)]
        if found:
            times = max(found, key=lambda times: times[-1])
            memory.listen(node, one.condition, times[-1], at)
            mark = Trace(times[-1], node.boot_id)
            many = f"{test.count} times {test.reason} within {test.window:g} s" if test.count > 1 else test.reason
            text = f"{many[:400]}, as {(test.source or 'Events')[:200]} said; fault {one.name} {mark}"
            return Judged(Wanted(one.condition, "True", test.word or _word(one.condition, test.reason), text), 0.0)
    return Judged()


def _standing(
    one: Asked, node: Node, old: NodeCondition, events: Sequence[Event], repairs: Iterable[NodeRepair],
    memory: Memory, at: float,
) -> Judged:  # fmt: skip
    before = trace.read(old)
    last = last_evidence(one, node, events)
    ear = memory.listen(node, one.condition, last, at)
    why, again = _over(one, node, old, before, last, ear, repairs, at)
    if why:
        return Judged(
            Wanted(one.condition, "False", why, f"over: {_OVER[why]}; fault {one.name} {Trace(last, node.boot_id)}")
        )
    boot = node.boot_id if ear.heard > ear.booted and node.boot_id else before.boot
    newer = last is not None and (before.last is None or last - before.last >= RETOLD)
    if newer or boot != before.boot:
        text = re.sub(r"\(last \S+, boot \S*\)$", "", old.message).rstrip()
        return Judged(Wanted(one.condition, "True", old.reason, f"{text} {Trace(last, boot)}"), again)
    return Judged(Wanted(one.condition, "True", old.reason, old.message), again)


_OVER = {
    names.HEARD_OUT: "no further Event came",
    "Rebooted": "the node was booted after the last Event",
    "ActedOn": "the node was acted on, and no further Event came",
}


def _over(
    one: Asked, node: Node, old: NodeCondition, before: Trace, last: datetime | None, ear: _Ear,
    repairs: Iterable[NodeRepair], at: float,
) -> tuple[str, float | None]:  # fmt: skip
    """Why it is over, "" while it is not; and when to look again."""
    quiet = at - ear.heard
    if one.clears_by in (ClearsBy.CONDITION, ClearsBy.SILENCE):
        need = one.soak if one.clears_by == ClearsBy.SILENCE else max((t.window for t in one.events), default=0.0)
        return (names.HEARD_OUT, None) if quiet >= need else ("", need - quiet)
    booted = bool(before.boot) and bool(node.boot_id) and node.boot_id != before.boot and node.ready
    if booted and (last == before.last or ear.booted > ear.heard):
        return "Rebooted", None
    if one.clears_by in (ClearsBy.RESET, ClearsBy.PROBE) and _acted(node, old, repairs):
        return ("ActedOn", None) if quiet >= ACT_QUIET else ("", ACT_QUIET - quiet)
    return "", None


def _acted(node: Node, old: NodeCondition, repairs: Iterable[NodeRepair]) -> bool:
    """Whether an act of ours on this node has ended well since the condition stands."""
    since = parse_time(old.last_transition_time) if old.last_transition_time else None
    for repair in repairs:
        if repair.spec.node.uid != node.uid:
            continue
        for attempt in repair.status.step("Repair").attempts:
            if attempt.state == "Done" and attempt.ended and (since is None or parse_time(attempt.ended) > since):
                return True
    return False


def _word(type_: str, reason: str) -> str:
    """A reason as Kubernetes has them, and none in the form of our agent's: it would take the condition for its own,
    and end it by its own rules."""
    word = re.sub(r"[^A-Za-z0-9_]", "", reason)[:128] or "Event"
    return f"{word}Event" if names.agents_own(type_, word) else word
