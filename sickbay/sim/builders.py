"""One function per component: from a process of the simulation to the running component."""

from __future__ import annotations

from sickbay.sim.components import Main

BUILDERS: dict[str, Main] = {}
