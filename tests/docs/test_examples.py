"""The example rules: in good order, the same as in the scenarios that show them, and doing what these say."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from sickbay.api.validate import validate
from sickbay.decide.lint import lint
from sickbay.sim.scenario.spec import Scenario
from tests.docs.scenarios import play, runs

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "deploy" / "examples").glob("*.yaml"))
NAMES = ("automatic", "balanced", "conservative")


def documents(name: str) -> dict[str, Any]:
    text = (ROOT / "deploy" / "examples" / f"{name}.yaml").read_text()
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def scenario_file(name: str) -> Path:
    return ROOT / "scenarios" / f"examples-{name}.yaml"


def shown(name: str) -> list[Scenario]:
    file = scenario_file(name)
    return runs(str(file.relative_to(ROOT)), file.read_text())


SHOWN = [scenario for name in NAMES for scenario in shown(name)]


def test_there_are_three_of_them_each_with_a_scenario() -> None:
    assert [file.stem for file in EXAMPLES] == list(NAMES)
    assert all(scenario_file(name).exists() for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_a_rule_and_a_pool_that_follows_it_in_observe(name: str) -> None:
    found = documents(name)
    assert found.keys() == {"RepairRule", "RepairPool"}
    assert [validate(kind, document) for kind, document in found.items()] == [[], []]
    assert found["RepairRule"]["metadata"]["name"] == name
    assert (found["RepairPool"]["spec"]["rule"], found["RepairPool"]["spec"]["mode"]) == (name, "Observe")


def test_check_finds_no_error_in_them() -> None:
    assert [finding for finding in lint(EXAMPLES) if finding.severity == "error"] == []


@pytest.mark.parametrize(
    ("name", "gated"),
    [
        pytest.param("conservative", {"Quarantine", "Unquarantine"}, id="conservative"),
        pytest.param("balanced", {"Drain"}, id="balanced"),
        pytest.param("automatic", set(), id="automatic"),
    ],
)
def test_which_steps_ask(name: str, gated: set[str]) -> None:
    rules = documents(name)["RepairRule"]["spec"]["rules"]
    assert {step["step"] for rule in rules for step in rule["procedure"] if "approval" in step} == gated


@pytest.mark.parametrize("scenario", SHOWN, ids=lambda s: s.name)
def test_a_scenario_runs_the_example_as_it_ships_but_for_mode_and_back_end(scenario: Scenario) -> None:
    name = scenario.name.split("/")[0].removeprefix("examples-")
    ships, runs_with = documents(name), {o["kind"]: copy.deepcopy(o) for o in scenario.objects}
    assert runs_with["RepairRule"]["spec"] == ships["RepairRule"]["spec"]
    pool = runs_with["RepairPool"]["spec"]
    assert (pool.pop("provider"), pool.pop("mode")) == ({"name": "fake"}, "Act")
    assert pool == {key: value for key, value in ships["RepairPool"]["spec"].items() if key != "mode"}
    assert not scenario.defaults


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SHOWN, ids=lambda s: s.name)
def test_an_example_behaves_as_its_scenario_says(scenario: Scenario) -> None:
    play(scenario)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_has_no_warning_but_that_of_acts_that_people_are_asked_about_anyway(file: Path) -> None:
    assert [f for f in lint([file]) if "people are asked unless localDataDisposable" not in f.message] == []
