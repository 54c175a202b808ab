"""`sickbay chaos`: what it says, how it exits, and its two other outputs."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from sickbay.cli.chaos import chaos
from sickbay.sim import limitinvariants

SCENARIO = """
apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {name: one}
spec:
  until: 5m
  components: [decide, execute]
  fleet: [{pool: train, nodes: 2}]
  timeline:
  - {at: 10s, do: condition, node: train-0, type: NvidiaXID79Error, status: "True"}
  expect:
  - {never: true, that: "cordoned('train-%d')"}
"""


def call(*arguments: str):
    return CliRunner().invoke(chaos, [*arguments, "--jobs", "1"])


@pytest.fixture
def broken(monkeypatch):
    """Invariants that find something wherever a node is closed."""

    def quarantined(self, node, repair):
        self._breach(f"node {node['metadata']['name']} was closed")

    monkeypatch.setattr(limitinvariants.LimitInvariants, "quarantined", quarantined)


def test_good_seeds_are_one_line(tmp_path):
    done = call("--seeds", "3")
    assert done.exit_code == 0
    assert done.output.startswith("1 seed, 1 ok, 0 failed; 1 repairs, ")


def test_a_broken_seed_says_what_when_after_what_and_how_to_see_it_again(broken):
    done = call("--seeds", "3")
    assert done.exit_code == 1
    first, *rest = done.output.splitlines()
    assert first.startswith("FAIL seed 3 at ")
    assert first.endswith("was closed")
    assert any("QuarantineDone" in line for line in rest)
    assert "     replay: sickbay chaos --seeds 3 -v" in rest
    assert rest[-1].startswith("1 seed, 0 ok, 1 failed")


def test_verbose_prints_the_seed_as_a_scenario_file():
    done = call("--seeds", "3", "-v")
    assert "kind: Scenario" in done.output
    assert "timeline:" in done.output


def test_json_and_junit(broken, tmp_path):
    file = tmp_path / "out.xml"
    done = call("--seeds", "3-3", "-o", "json", "--junit", str(file))
    (seed,) = json.loads(done.output)
    assert (seed["seed"], seed["ok"], seed["replay"]) == (3, False, "sickbay chaos --seeds 3 -v")
    assert len(seed["trace"]) == 64
    assert seed["findings"][0]["text"].endswith("was closed")
    suite = ElementTree.parse(file).getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")


@pytest.mark.parametrize("text", ["3-1", "x", "", "1-2-3", "-4", "0-9999999"])
def test_a_wrong_range_names_the_option(text):
    done = call("--seeds", text)
    assert done.exit_code == 2
    assert "'--seeds'" in done.output


@pytest.mark.slow
@pytest.mark.parametrize(("node", "code"), [(1, 0), (0, 1)])
def test_a_scenario_of_ones_own_runs_under_weather(tmp_path, node, code):
    file = tmp_path / "own.yaml"
    file.write_text(SCENARIO % node, encoding="utf-8")
    done = call("--seeds", "1", "--scenario", str(file))
    assert done.exit_code == code, done.output
    if code:
        assert f"replay: sickbay chaos --seeds 1 --scenario {file} -v" in done.output


def test_a_file_that_cannot_be_read_is_bad_usage(tmp_path):
    done = call("--scenario", str(tmp_path / "none.yaml"))
    assert done.exit_code == 2
    assert "none.yaml" in done.output


UNAPPROVED = """\
apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {name: unapproved}
spec:
  until: 5m
  components: [decide, execute]
  fleet: [{pool: train, nodes: 2}]
  objects:
  - apiVersion: sickbay.dev/v1alpha1
    kind: RepairRule
    metadata: {name: automatic}
    spec:
      rules:
      - name: all
        procedure:
        - {step: Quarantine, approval: {by: People}}
        - {step: Repair}
        - {step: Unquarantine}
  timeline:
  - {at: 10s, do: condition, node: train-0, type: NvidiaXID79Error, status: "True"}
  expect:
  - {never: true, that: "cordoned('train-0')"}
"""


@pytest.mark.slow
def test_what_people_approve_after_the_end_is_held_against_no_scenario(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text(UNAPPROVED, encoding="utf-8")
    done = call("--seeds", "1", "--scenario", str(file), "-o", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["acts"] > 0, "the approval after the end led to a repair"


@pytest.mark.parametrize("seeds", ["1", "1-2"], ids=["in this process", "in others"])
def test_a_file_whose_objects_the_api_server_refuses_is_told_with_the_place(tmp_path, seeds):
    file = tmp_path / "bad.yaml"
    pool = "{apiVersion: sickbay.dev/v1alpha1, kind: RepairPool, metadata: {name: p}, spec: {mode: Never}}"
    head = "apiVersion: test.sickbay.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec:\n  objects:\n"
    file.write_text(f"{head}  - {pool}\n", encoding="utf-8")
    done = call("--seeds", seeds, "--scenario", str(file), "--jobs", "2")
    assert done.exit_code == 2, done.output
    assert f"{file}:6: spec.objects[0]: RepairPool p: " in done.output
