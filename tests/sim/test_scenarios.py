"""The scenario files of the repository, each run a test of its own. A run whose name begins with a case id carries it.

All but the main loop are slow: a run takes seconds. `sickbay test scenarios` does the same with more to read.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sickbay.sim.scenario import report
from sickbay.sim.scenario.runner import run
from sickbay.sim.scenario.spec import Scenario, read

FOLDER = Path(__file__).parents[2] / "scenarios"
QUICK = ("loop/by-the-cloud", "loop/by-the-agent")
_CASE = re.compile(r"(?:^|/)([NRPK]\d{2,3})\b")


def runs() -> list[object]:
    params: list[object] = []
    for file in sorted(FOLDER.glob("*.yaml")):
        for scenario in read(f"scenarios/{file.name}", file.read_text(encoding="utf-8")):
            marks = [pytest.mark.case(case) for case in _CASE.findall(scenario.name)]
            if scenario.name not in QUICK:
                marks.append(pytest.mark.slow)
            params.append(pytest.param(scenario, id=scenario.name, marks=marks))
    return params


@pytest.mark.parametrize("scenario", runs())
def test_a_scenario_comes_out_as_it_says(scenario: Scenario) -> None:
    result = run(scenario)
    assert result.outcomes
    assert result.ok, "\n".join(report.lines(result))


def test_names_are_unique_over_all_files() -> None:
    names = [param.id for param in runs()]  # type: ignore[attr-defined]
    assert len(names) == len(set(names))
