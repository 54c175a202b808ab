"""How each component of Sickbay is built from what a process is given. The real ones; nothing here stands in for them.

Imports are late: a world that runs no agent loads no agent. A component that is not part of this version is absent
from `available()`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from sickbay.kube.lease import LeaseTimes
from sickbay.providers.agent.host import Host
from sickbay.sim.beats import Beats
from sickbay.sim.journal import Journal
from sickbay.sim.machine import Machine
from sickbay.sim.process import Running

COMPONENTS = ("agent", "decide", "execute", "recover", "notify", "convert")

NAMESPACE = "sickbay-system"

UNHURRIED_SECONDS = 6 * 3600.0

_MODULES = {
    "agent": "sickbay.detect.agent",
    "decide": "sickbay.decide.controller",
    "execute": "sickbay.execute.controller",
    "recover": "sickbay.recover.controller",
    "notify": "sickbay.notify.controller",
    "convert": "sickbay.convert.controller",
}


@dataclass(slots=True)
class Settings:
    """What a run configures beyond the defaults of the product."""

    governor: bool = True
    """False lifts the ceiling on destructive acts, for runs whose limits are not what is tested."""
    pace: float = 1.0
    """How much rarer than usual heartbeats and renewals of Leases are; see `pace_for`."""
    watch_pace: float = 1.0
    """How much longer than usual watches stay open, and how much rarer their bookmarks and caches' comparisons are."""
    shortcuts: bool = False
    """Beats of idle parts are carried out without their price; see `beats`."""
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Options by component, over the defaults of its options class."""

    def options_of(self, component: str) -> dict[str, Any]:
        return self.options.get(component, {})

    @property
    def lease(self) -> LeaseTimes:
        """The leaders' Leases at this pace."""
        usual = LeaseTimes()
        return LeaseTimes(int(usual.duration * self.pace), usual.deadline * self.pace, usual.period * self.pace)


def pace_for(seconds: float) -> float:
    """1 for a run of up to six hours; beyond that heartbeats get rarer, so that their number stays that of six hours.

    A run of 14 days has a pace of 56: a dead leader is followed after 14 minutes instead of 15 seconds.
    """
    return max(1.0, seconds / UNHURRIED_SECONDS)


@dataclass(slots=True)
class Outside:
    """What components reach beside the API server."""

    machines: dict[str, Machine]
    providers: Callable[[Running], dict[str, Any]]
    host: Callable[[Running], Host]
    """The machine of an agent, as what it may act on."""
    settings: Settings
    journal: Journal
    beats: Beats
    events: Callable[[Running], list[Any]] = lambda _: []
    """Where providers' events are read."""


Main = Callable[[Running, Outside], Coroutine[Any, Any, None]]


def available() -> tuple[str, ...]:
    """The components that this version has."""
    from sickbay.sim.builders import BUILDERS

    return tuple(name for name in COMPONENTS if name in BUILDERS and _exists(_MODULES[name]))


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
