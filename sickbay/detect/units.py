"""System services that a GPU node needs, as systemd shows them.

A service is bad when two looks in a row find it so, or when it was restarted again and again; one look may meet a
restart. What cannot be seen is neither bad nor good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

POLL = 30.0
LOOP = 3
"""Restarts within LOOP_SECONDS that count as a crash loop, though the service may be up at each look."""
LOOP_SECONDS = 300.0

ITEMS = {
    "kubelet": "service.kubelet",
    "containerd": "service.containerd",
    "nvidia-fabricmanager": "service.fabricmanager-down",
    "nvidia-persistenced": "service.persistenced-down",
}
"""Fault items by systemd unit."""
FABRIC_ONLY = frozenset({"nvidia-fabricmanager"})
"""Services that matter only where there is an NVSwitch: without one a failed start is harmless."""


class Service(msgspec.Struct, kw_only=True):
    """A unit at one moment. `works` None = cannot be seen, or is not installed here."""

    works: bool | None = None
    state: str = ""
    restarts: int | None = None
    """How often systemd has restarted it since it was last started by hand."""


class ServiceProbe(Protocol):
    async def poll(self) -> Mapping[str, Service]:
        """Look once at every service, by unit name. Raises OSError or TimeoutError when nothing can be seen."""
        ...


@dataclass(frozen=True, slots=True)
class Judged:
    unit: str
    item: str
    bad: bool
    detail: str


@dataclass(slots=True)
class ServiceJudge:
    """See the module."""

    has_nvswitch: bool
    _bad: Collection[str] = frozenset()
    _restarts: dict[str, deque[tuple[float, int]]] = field(default_factory=dict)

    def judge(self, services: Mapping[str, Service], now: float) -> list[Judged]:
        out: list[Judged] = []
        bad_now = set()
        for unit, service in services.items():
            item = ITEMS.get(unit)
            if item is None or service.works is None or (unit in FABRIC_ONLY and not self.has_nvswitch):
                continue
            looping = self._loops(unit, service, now)
            if not service.works:
                bad_now.add(unit)
            if looping or (not service.works and unit in self._bad):
                out.append(Judged(unit, item, True, "restarts again and again" if looping else service.state))
            elif service.works:
                out.append(Judged(unit, item, False, ""))
        self._bad = bad_now
        return out

    @property
    def at_rest(self) -> bool:
        """The last look found all that can be seen well, and nothing is counted: time alone brings nothing new."""
        return not self._bad and not self._restarts

    def _loops(self, unit: str, service: Service, now: float) -> bool:
        if service.restarts is None:
            return False
        seen = self._restarts.setdefault(unit, deque(maxlen=64))
        if seen and service.restarts < seen[-1][1]:
            seen.clear()  # started by hand: systemd counts from 0 again
        seen.append((now, service.restarts))
        while now - seen[0][0] > LOOP_SECONDS:
            seen.popleft()
        return service.restarts - seen[0][1] >= LOOP
