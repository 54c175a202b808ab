"""docs/defaults.md and docs/commands.md are written from the code, complete, and current."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from sickbay.api import defaults, reasons, reference
from sickbay.cli import generate
from sickbay.cli.docgen import commands, constants
from sickbay.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
REMEDY = "run `python -m sickbay.cli.generate` and commit what it wrote"
PAGES = generate.pages()


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_a_generated_page_is_current(path: Path) -> None:
    assert (ROOT / path).read_text() == PAGES[path], REMEDY


def test_generating_writes_the_pages_and_what_the_api_generates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "api-contract.txt").write_text((ROOT / "docs" / "api-contract.txt").read_text())
    monkeypatch.setattr("sys.argv", ["generate", str(tmp_path)])
    generate.main()
    for path in [*PAGES, Path("docs/api.md"), Path("deploy/crds/sickbay.dev_holds.yaml")]:
        assert (tmp_path / path).read_text() == (ROOT / path).read_text()


def test_every_default_of_the_kinds_that_people_write_stands_there_with_its_reason() -> None:
    page = PAGES[generate.DEFAULTS]
    for kind in defaults.KINDS:
        section = page.split(f"## {kind}\n")[1].split("\n## ")[0] if f"## {kind}\n" in page else ""
        for field in reference.fields(kind):
            if field.path.startswith("spec.") and field.default and not field.required:
                assert f"| `{field.path}` | `{field.default}` |" in section
    assert all(len(reason) > 10 for reason in reasons.REASONS.values())


def test_a_default_without_a_reason_stops_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(reasons.REASONS, "RepairPool spec.cancelHold")
    with pytest.raises(defaults.ReasonError, match=r"RepairPool spec\.cancelHold has the default 24h and no reason"):
        list(defaults.rows())


def test_a_reason_without_a_default_stops_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(reasons.REASONS, "Hold spec.mood", "because")
    with pytest.raises(defaults.ReasonError, match=r"Hold spec\.mood has a reason and no default"):
        list(defaults.rows())


@pytest.mark.parametrize(
    ("constant", "says"),
    [
        pytest.param(constants.Constant("decide.breaker", "MOST", "", ""), "has no MOST", id="gone"),
        pytest.param(constants.Constant("decide.plan", "ORDER", "", ""), "does not say why", id="without a docstring"),
    ],
)
def test_a_constant_that_is_gone_or_silent_stops_the_generator(
    constant: constants.Constant, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "ALL", (constant,))
    with pytest.raises(constants.StaleError, match=says):
        list(constants.rows())


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param('A = 1\n"""why\n  so"""', "why so", id="over two lines"),
        pytest.param('A, B = 1, 2\n"""both"""', "both", id="of several"),
        pytest.param('A: int = 1\n"""typed"""', "typed", id="annotated"),
        pytest.param("A = 1\nB = 2", "", id="none"),
        pytest.param("A = 1", "", id="the end of the file"),
    ],
)
def test_the_docstring_of_a_constant_is_the_text_below_it(source: str, text: str) -> None:
    assert constants.docstring(source, "A") == text


def test_every_command_has_a_section_with_an_example_that_is_its_own() -> None:
    page = PAGES[generate.COMMANDS]
    shown = dict(commands.commands())
    assert {name.split()[0] for name in shown} == set(COMMANDS)
    for name, command in shown.items():
        _, example = commands.explained(name, command)
        assert f"\n## sickbay {name}\n" in page
        assert not example or f"sickbay {name.removesuffix(' show')}" in example


def test_every_option_is_shown() -> None:
    page = PAGES[generate.COMMANDS]
    for name, command in commands.commands():
        section = page.split(f"\n## sickbay {name}\n")[1].split("\n## ")[0]
        options = {p.opts[-1] for p in command.params if isinstance(p, click.Option)}
        assert all(option in section for option in options - {"--help", "--kubeconfig", "--context"}), name


@pytest.mark.parametrize("text", ["", "Does something.", "Example: sickbay x"])
def test_a_command_without_text_or_example_stops_the_generator(text: str) -> None:
    with pytest.raises(commands.UndocumentedError, match="sickbay x"):
        commands.explained("x", click.Command("x", help=text))
