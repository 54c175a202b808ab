"""What a timeline injects although nothing in the run looks at it.

The kernel log, the driver and the services of a machine are seen by the agent alone. A run without one goes on as if
nothing had happened, and its expectations fail, or hold, for a reason that nobody finds. That is told on standard error
and is no mistake of the file: it may be what the file shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sickbay.sim.scenario.spec import Scenario
from sickbay.sim.scenario.timeline import Entry

AGENT = "agent"
_SOURCES = {"kmsg": "kernel log", "nvml": "GPU driver", "service": "services"}
_KUBERNETES = ("kubelet", "containerd")
"""Services whose failure the node's own conditions show, without an agent."""


def unseen(scenarios: Iterable[Scenario]) -> list[str]:
    """One line for each such entry, with its place; those that several runs share once."""
    return list(dict.fromkeys(line for scenario in scenarios for line in _of(scenario)))


def _of(scenario: Scenario) -> Iterator[str]:
    if AGENT in scenario.components:
        return
    for entry in scenario.timeline:
        if entry.do in _SOURCES and not _shown_by_the_node(entry):
            yield (
                f"{scenario.file}:{entry.line}: {entry.arguments.path}: {entry.do}: nothing in this run sees it, only "
                f"the agent reads the {_SOURCES[entry.do]} of a node; add agent to spec.components"
            )


def _shown_by_the_node(entry: Entry) -> bool:
    return entry.do == "service" and entry.arguments.text("name") in _KUBERNETES
