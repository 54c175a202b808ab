"""What the pages show works: objects are accepted, scenarios run, command lines parse, files named are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from sickbay.api.kinds import OWN
from sickbay.api.names import API_VERSION, METRICS
from sickbay.api.validate import validate
from sickbay.api.words import Needs, WaitsFor
from sickbay.cli.docgen.waits import SAMPLES, explained
from sickbay.decide.lint import lint
from sickbay.sim.scenario.spec import API_VERSION as TESTS
from tests.docs.blocks import PAGES, ROOT, Block, Line, blocks, command_lines, files_named
from tests.docs.commandline import arguments, is_abstract, parse
from tests.docs.scenarios import lacks_agent, play, runs

KINDS = {kind.kind for kind in OWN}
YAML = [block for page in PAGES for block in blocks(page) if block.kind == "yaml"]
OBJECTS = [b for b in YAML if any(isinstance(d, dict) and d.get("kind") in KINDS for d in b.documents())]
SCENARIOS = [b for b in YAML if any(isinstance(d, dict) and d.get("kind") == "Scenario" for d in b.documents())]
LINES = [line for page in PAGES for line in command_lines(page) if not is_abstract(line.text)]
WRITTEN = ("rules", "pools", "approvals", "limits", "holds", "custom-faults", "commands", "testing-rules", "operations",
           "apiserver", "cards", "groups")  # fmt: skip


@pytest.mark.parametrize("page", WRITTEN)
def test_the_page_is_there_and_the_readme_links_it(page: str) -> None:
    assert (ROOT / "docs" / f"{page}.md").exists()
    assert f"docs/{page}.md" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", sorted(page.name for page in (ROOT / "docs").glob("*.md")))
def test_the_readme_or_a_page_that_it_links_names_every_page(page: str) -> None:
    linked = [ROOT / name for name in files_named(ROOT / "README.md") if name.endswith(".md") and "*" not in name]
    named = {name for each in linked if each.exists() for name in files_named(each)}
    assert f"docs/{page}" in {*files_named(ROOT / "README.md"), *named}


@pytest.mark.parametrize("page", [p for p in WRITTEN if p not in ("commands", "operations", "apiserver")])
def test_a_page_about_objects_shows_some(page: str) -> None:
    shown = [block for block in [*OBJECTS, *SCENARIOS] if block.page == f"docs/{page}.md"]
    assert shown


def test_every_yaml_block_is_an_object_or_a_scenario() -> None:
    odd = [block.name for block in YAML if block not in OBJECTS and block not in SCENARIOS]
    assert odd == []


@pytest.mark.parametrize("block", OBJECTS, ids=lambda b: b.name)
def test_an_object_shown_is_accepted(block: Block, tmp_path: Path) -> None:
    for document in block.documents():
        assert document["apiVersion"] == API_VERSION
        assert validate(document["kind"], document) == []
    file = tmp_path / "block.yaml"
    file.write_text(block.text)
    assert [finding for finding in lint([file]) if finding.severity == "error"] == []


@pytest.mark.parametrize("block", SCENARIOS, ids=lambda b: b.name)
def test_a_scenario_shown_is_in_good_order(block: Block) -> None:
    assert block.documents()[0]["apiVersion"] == TESTS
    assert runs(block.name, block.text)


@pytest.mark.slow
@pytest.mark.parametrize("block", SCENARIOS, ids=lambda b: b.name)
def test_a_scenario_shown_is_as_it_says(block: Block) -> None:
    if lacks_agent(block.text):
        pytest.skip("it needs an agent, and the simulator of this version runs none")
    for scenario in runs(block.name, block.text):
        play(scenario)


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.name} {line.text}"[:80])
def test_a_command_line_parses(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    parse(arguments(line.text), monkeypatch)


def test_command_lines_are_found_in_every_form() -> None:
    found = {line.text for line in LINES}
    assert "sickbay catalogue diff built-in my-faults.yaml" in found  # indented
    assert "sickbay queue" in found  # in line
    assert any(text.startswith("sickbay decode") for text in found)  # behind a pipe


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    missing = [name for name in files_named(page) if not list(ROOT.glob(name.rstrip("/")))]
    assert missing == []


@pytest.mark.parametrize("wait", list(WaitsFor))
def test_each_kind_of_wait_is_shown_with_what_explain_prints(wait: WaitsFor) -> None:
    (sample,) = (s for s in SAMPLES if s.waits_for == wait)
    lines = list(explained(sample))
    assert f"Waits for: {wait}   since 2027-03-01T08:00:00Z   until {sample.until}" in lines
    assert any(line.startswith("Then: ") for line in lines)
    assert "\n".join(lines) in (ROOT / "docs" / "waits.md").read_text()


def test_the_runbook_knows_every_reason_for_which_people_are_needed() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    assert [need for need in Needs if f"| `{need}` |" not in page] == []


@pytest.mark.parametrize("metric", METRICS)
def test_the_page_for_operators_says_when_a_metric_is_alarming(metric: str) -> None:
    page = (ROOT / "docs" / "operations.md").read_text().partition("## Watch")[2]
    assert f"| `{metric}" in page
