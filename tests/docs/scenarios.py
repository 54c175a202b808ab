"""Running scenario texts in a test: each must be as it says, in this version's components."""

from __future__ import annotations

import re

from sickbay.sim.components import available
from sickbay.sim.scenario import report
from sickbay.sim.scenario.runner import run
from sickbay.sim.scenario.spec import Scenario, read

NEEDS_AGENT = re.compile(r"\bdo: (kmsg|nvml|diagnostics|service)\b")
"""Injections that only an agent sees."""


def runs(file: str, text: str) -> list[Scenario]:
    return read(file, text)


def play(scenario: Scenario) -> None:
    """Fails with the lines that `sickbay test` would print."""
    result = run(scenario)
    failed = [line for line in report.lines(result) if not line.startswith("ok ")]
    assert result.ok, "\n".join(failed)
    assert result.outcomes, "it expects something"


def lacks_agent(text: str) -> bool:
    """True when the text needs an agent and this version has none."""
    return NEEDS_AGENT.search(text) is not None and "agent" not in available()
