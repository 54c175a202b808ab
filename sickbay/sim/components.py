"""How each component of Sickbay is built from what a process is given. The real ones; nothing here stands in for them.

Imports are late: a world that runs no agent loads no agent. A component that is not part of this version is absent
from `available()`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from sickbay.sim.journal import Journal
from sickbay.sim.machine import Machine
from sickbay.sim.process import Running

COMPONENTS = ("agent", "decide", "execute", "recover", "notify", "convert")

NAMESPACE = "sickbay-system"

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
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Options by component, over the defaults of its options class."""

    def options_of(self, component: str) -> dict[str, Any]:
        return self.options.get(component, {})


@dataclass(slots=True)
class Outside:
    """What components reach beside the API server."""

    machines: dict[str, Machine]
    providers: Callable[[Running], dict[str, Any]]
    settings: Settings
    journal: Journal


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
