"""From findings to diagnoses: lines of one device that come together tell of one fault.

A double-bit error prints XID 48, 63, 94, 154 and 171 within a second, and a lost GPU repeats itself for minutes. Lines
of one device within 10 seconds of its first form a group. The group's cause is its strongest fault that is not known to
follow others; the driver's recovery action (XID 154) then has the last word on the remedy. What comes after, with less
than 10 seconds between two lines, is the rest of the same burst and is heard again only when it is worse.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from sickbay.detect.finding import BDF, NO_FAULT_OF_ITS_OWN, RANK, RESTART_APP, Finding
from sickbay.detect.moment import Moment

WINDOW = 10.0
"""Seconds (detection reference 1.1)."""
APP_LOOKBACK = 60.0
"""Seconds: an XID 109 so soon after an application's own error of the same process is that error's consequence."""
FLOOR = frozenset(f"gpu.xid.{code}" for code in (48, 64, 79, 95, 140))
"""Codes for which a milder recovery action of the driver does not count."""
_APP_ERRORS = frozenset({"gpu.xid.13", "gpu.xid.31"})
_MAX_GROUPS = 4096
_SWEEP = 64
"""Lines between two looks at all groups; a group that is fed is looked at in any case."""

_BUS = re.compile(rf"(?P<bus>{BDF})")


class Diagnosis(msgspec.Struct, kw_only=True, frozen=True):
    """One fault of one device. `count`: lines that told of it; `also`: other faults that came with it."""

    fault: str | None
    device: str | None
    verdict: str
    line: int
    count: int = 1
    also: tuple[str, ...] = ()
    note: str = ""


@lru_cache(maxsize=1024)
def bus_of(device: str | None) -> str:
    """A PCI address in one form for comparison: `0000:3b:00`, without function and MIG instance; "" for none."""
    match = _BUS.match(device or "")
    if match is None:
        return ""
    parts = match["bus"].lower().split(".")[0].split(":")
    domain = parts[0].lstrip("0") if len(parts) == 3 else ""
    return f"{domain.rjust(4, '0')}:{parts[-2]}:{parts[-1]}"


@dataclass(slots=True)
class _Seen:
    finding: Finding
    line: int
    count: int = 1


@dataclass(slots=True)
class _Group:
    first: Moment
    last: Moment
    seen: dict[tuple[str, str], _Seen] = field(default_factory=dict)
    told: int = -1
    """Rank of the diagnosis given out, -1 before that."""
    softened: bool = False
    """True when an application's error explains XID 109 here."""

    def add(self, finding: Finding, at: Moment, weight: int) -> None:
        self.last = at
        entry = self.seen.get((finding.entry, finding.verdict))
        if entry is None:
            self.seen[finding.entry, finding.verdict] = _Seen(finding, at.line, weight)
        else:
            entry.count += weight


class AppErrors:
    """Which process made which GPU report an application's error, to tell XID 109 that only follows from it."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, int], Moment] = OrderedDict()

    def explain(self, finding: Finding, at: Moment) -> bool:
        """Note an application's error; True for an XID 109 that such an error of its process explains."""
        bus, pid = bus_of(finding.device), finding.pid
        if pid is None:
            return False
        if finding.fault in _APP_ERRORS:
            self._seen[bus, pid] = at
            if len(self._seen) > _MAX_GROUPS:
                self._seen.popitem(last=False)
            return False
        before = self._seen.get((bus, pid))
        return finding.fault == "gpu.xid.109" and before is not None and before.until(at) < APP_LOOKBACK


class Grouper:
    """Groups findings in the order of their lines. Keeps at most 4096 groups."""

    def __init__(self) -> None:
        self._groups: OrderedDict[tuple[str, str], _Group] = OrderedDict()
        self._app_errors = AppErrors()
        self._fed = 0

    def feed(self, finding: Finding, at: Moment, repeats: int = 0) -> list[Diagnosis]:
        """Take one finding; give out the groups that are complete by now. `repeats`: N of a folded line."""
        self._fed += 1
        out = self._sweep(at) if self._fed % _SWEEP == 0 else []
        if finding.fault is None:
            return out
        key = self._key(finding, at)
        group = self._groups.get(key)
        if group is not None:
            self._tell(group, at, out)
            if group.last.until(at) > WINDOW:
                group = None
            elif group.told >= 0 and _worth(finding) <= group.told:
                group.last = at
                return out
            elif group.told >= 0:
                group = None
        if group is None:
            group = _Group(at, at)
            self._groups[key] = group
            self._groups.move_to_end(key)
        group.softened = group.softened or self._app_errors.explain(finding, at)
        group.add(finding, at, max(1, repeats))
        if len(self._groups) > _MAX_GROUPS:
            self._tell(self._groups.popitem(last=False)[1], None, out)
        return out

    def rest(self) -> list[Diagnosis]:
        """What is left when the input ends."""
        out: list[Diagnosis] = []
        for group in self._groups.values():
            self._tell(group, None, out)
        self._groups.clear()
        return out

    def _tell(self, group: _Group, at: Moment | None, out: list[Diagnosis]) -> None:
        """Give the group's diagnosis out, once, when its window is over (or the input is)."""
        if group.told < 0 and (at is None or group.first.until(at) > WINDOW):
            diagnosis = _resolve(group)
            group.told = RANK[diagnosis.verdict]
            out.append(diagnosis)

    def _sweep(self, at: Moment) -> list[Diagnosis]:
        out: list[Diagnosis] = []
        for key, group in list(self._groups.items()):
            self._tell(group, at, out)
            if group.last.until(at) > WINDOW:
                del self._groups[key]
        return out

    def _key(self, finding: Finding, at: Moment) -> tuple[str, str]:
        """Families that share a card are told apart by its bus only."""
        bus = bus_of(finding.device)
        if finding.family == "gpu-unnamed":
            named = [key for key, group in self._groups.items() if _open_gpu(key, group, at)]
            return named[0] if len(named) == 1 else ("gpu", "")
        if bus and finding.family in ("gpu", "pcie", "nic"):
            if finding.family == "gpu":
                self._adopt(bus, at)
            return "card", bus
        return finding.family or finding.entry, finding.device or ""

    def _adopt(self, bus: str, at: Moment) -> None:
        """A group of lines that named no GPU goes over to the first GPU named within its window."""
        unnamed = self._groups.get(("gpu", ""))
        if unnamed is None or unnamed.told >= 0 or unnamed.last.until(at) > WINDOW or ("card", bus) in self._groups:
            return
        self._groups["card", bus] = self._groups.pop(("gpu", ""))


def _open_gpu(key: tuple[str, str], group: _Group, at: Moment) -> bool:
    if key[0] != "card" or group.last.until(at) > WINDOW:
        return False
    return any(seen.finding.family == "gpu" for seen in group.seen.values())


def _worth(finding: Finding) -> int:
    return RANK[finding.alone or finding.verdict]


def _resolve(group: _Group) -> Diagnosis:
    entries = list(group.seen.values())
    primary = _primary(entries)
    verdict = _verdict(primary, entries, group.softened)
    named = next((e.finding.device for e in entries if e.finding.device), None)
    others = {e.finding.fault for e in entries if e.finding.fault} - {primary.fault}
    return Diagnosis(
        fault=primary.fault,
        device=primary.device or named,
        verdict=verdict,
        line=min(e.line for e in entries),
        count=sum(e.count for e in entries),
        also=tuple(sorted(fault for fault in others if fault)),
        note=primary.note,
    )


def _primary(entries: list[_Seen]) -> Finding:
    """The cause: the strongest fault that does not follow others, else the strongest of what is there."""
    findings = [entry.finding for entry in entries]
    own = [f for f in findings if f.verdict not in NO_FAULT_OF_ITS_OWN]
    causes = [f for f in own if not f.sympathetic]
    if causes:
        return max(causes, key=lambda f: f.rank)
    if own:
        return max(own, key=lambda f: f.rank)
    return max(findings, key=_worth)


def _verdict(primary: Finding, entries: list[_Seen], softened: bool) -> str:
    verdict = primary.alone or primary.verdict
    if softened and primary.fault == "gpu.xid.109":
        verdict = RESTART_APP
    arbiters = [e.finding for e in entries if e.finding.arbiter]
    if not arbiters or primary.arbiter:
        return verdict
    last_word = max(arbiters, key=lambda f: f.rank).verdict
    if RANK[last_word] >= RANK[verdict] or primary.fault not in FLOOR:
        return last_word
    return verdict
