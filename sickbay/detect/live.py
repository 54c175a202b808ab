"""Grouping as lines arrive: what is reported at once, and what waits for its neighbours.

Decoding a log may look ten seconds ahead; an agent may not sit on a fatal line. So a fault that stands on its own is
reported at once. Three kinds of line wait up to ten seconds for what explains them:

  a duplicate     says again what a neighbour says better, and counts only where no neighbour comes
  an unnamed one  names no GPU, and takes the one GPU that is in trouble just then
  a plain text    "fallen off the bus" without a code is the same event as XID 79 where that follows
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sickbay.detect.finding import DUPLICATE, RANK, RESTART_APP, Finding
from sickbay.detect.group import WINDOW, AppErrors, bus_of
from sickbay.detect.moment import Moment

_UNNAMED = "gpu-unnamed"
_TEXT, _CODED = "gpu.fallen-off-bus", "gpu.xid.79"
_MAX = 256
"""Recent faults and waiting lines kept, each of another entry or device, of which a node has a few dozen. Beyond it
waiting lines are reported as they are: each line is compared with all of them."""


def acting(finding: Finding) -> bool:
    """True for what asks for more than an Event: a condition is written."""
    return RANK[finding.verdict] > RANK[RESTART_APP]


@dataclass(frozen=True, slots=True)
class _Waiting:
    finding: Finding
    at: Moment
    until: float


class LiveGroups:
    """See the module. `now` is a monotonic clock's, for the waiting only; who is whose neighbour the lines say."""

    def __init__(self) -> None:
        self._app_errors = AppErrors()
        self._recent: dict[tuple[str, str], tuple[Finding, Moment]] = {}
        self._waiting: list[_Waiting] = []

    @property
    def next_due(self) -> float | None:
        """When the next waiting line has waited enough."""
        return min((waiting.until for waiting in self._waiting), default=None)

    def feed(self, finding: Finding, at: Moment, now: float) -> list[Finding]:
        """Take one finding; returns what is to be reported now."""
        if finding.fault is None:
            return []
        if self._app_errors.explain(finding, at):
            return [replace(finding, verdict=RESTART_APP)]
        if finding.verdict == DUPLICATE or _waits_for_code(finding) or _unnamed(finding):
            return self._hold(finding, at, now)
        if not acting(finding):
            return [finding]
        self._note(finding, at)
        return [finding, *self._explained(finding, at)]

    def due(self, now: float) -> list[Finding]:
        """Waiting lines whose time is over: nothing explained them."""
        over = [waiting for waiting in self._waiting if waiting.until <= now]
        self._waiting = [waiting for waiting in self._waiting if waiting.until > now]
        out = [_alone(waiting.finding) for waiting in over]
        for waiting, finding in zip(over, out, strict=True):
            if acting(finding):
                self._note(finding, waiting.at)
        return out

    def _hold(self, finding: Finding, at: Moment, now: float) -> list[Finding]:
        if _unnamed(finding):
            named = self._troubled(at)
            if len(named) == 1:
                return self._named(finding, named[0], at)
        elif any(_neighbours(known, when, finding, at) for known, when in self._recent.values()):
            return []
        if any(_same(waiting.finding, finding) for waiting in self._waiting):
            return []
        self._waiting.append(_Waiting(finding, at, now + WINDOW))
        return self.due(math.inf) if len(self._waiting) > _MAX else []

    def _explained(self, cause: Finding, at: Moment) -> list[Finding]:
        """Waiting lines that this fault explains are dropped; unnamed ones take its GPU."""
        out: list[Finding] = []
        kept: list[_Waiting] = []
        for waiting in self._waiting:
            if _unnamed(waiting.finding) and cause.family == "gpu" and cause.device:
                if abs(waiting.at.until(at)) <= WINDOW:
                    out += self._named(waiting.finding, cause.device, at)
                    continue
            elif _neighbours(cause, at, waiting.finding, waiting.at):
                continue
            kept.append(waiting)
        self._waiting = kept
        return out

    def _named(self, finding: Finding, device: str, at: Moment) -> list[Finding]:
        """An unnamed line on the GPU that was found for it; a duplicate is then the neighbour's own story."""
        if finding.verdict == DUPLICATE:
            return []
        return [replace(finding, device=device)]

    def _troubled(self, at: Moment) -> list[str]:
        found = {
            bus_of(known.device): known.device
            for known, when in self._recent.values()
            if known.family == "gpu" and known.device and when.until(at) <= WINDOW
        }
        return [device for device in found.values() if device]

    def _note(self, finding: Finding, at: Moment) -> None:
        key = (finding.entry, finding.device or "")
        self._recent.pop(key, None)
        self._recent[key] = (finding, at)
        if len(self._recent) > _MAX:
            del self._recent[next(iter(self._recent))]


def _alone(finding: Finding) -> Finding:
    return replace(finding, verdict=finding.alone) if finding.verdict == DUPLICATE and finding.alone else finding


def _unnamed(finding: Finding) -> bool:
    return finding.family == _UNNAMED and finding.device is None and acting(_alone(finding))


def _waits_for_code(finding: Finding) -> bool:
    return finding.fault == _TEXT and finding.verdict != DUPLICATE


def _same(one: Finding, other: Finding) -> bool:
    return one.entry == other.entry and one.device == other.device


def _neighbours(cause: Finding, at: Moment, finding: Finding, when: Moment) -> bool:
    """True when `cause` tells the story of a waiting line: same card (or the same name), within the window."""
    near = min(at.until(when), when.until(at)) <= WINDOW
    if not near:
        return False
    if _waits_for_code(finding):
        return cause.fault == _CODED and bus_of(cause.device) == bus_of(finding.device)
    if bus_of(cause.device) or bus_of(finding.device):
        return bus_of(cause.device) == bus_of(finding.device)
    family = finding.family or finding.entry
    return (cause.family or cause.entry) == family and cause.device == finding.device
