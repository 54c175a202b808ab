"""What docs/commands.md shows of each command is what a run of it printed, in good order and free of this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import click
import pytest

from sickbay.cli.docgen import commands, outputs
from sickbay.cli.docgen.situation import Shown, situation
from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "commands.md").read_text()
LEAVES = [name for name, command in commands.commands() if not isinstance(command, click.Group)]
_BLOCK = re.compile(r"^```text\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)


def shown() -> Iterator[tuple[str, str, int]]:
    """Each line typed in the page, what was printed, and the exit code."""
    for block in _BLOCK.findall(PAGE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, text = part.partition("\n")
            code = re.search(r"^\(exit code (\d+)\)\n?", text, re.MULTILINE)
            yield line, text[: code.start()] if code else text, int(code[1]) if code else 0


RUNS = list(shown())


@pytest.mark.parametrize("name", LEAVES)
def test_the_page_shows_what_each_command_prints(name: str) -> None:
    section = PAGE.split(f"\n## sickbay {name}\n")[1].split("\n## ")[0]
    typed = name.replace(" show", "")
    assert re.search(rf"^\$ sickbay {typed}\b.*\n.", section, re.MULTILINE)


@pytest.mark.parametrize(("line", "text", "code"), RUNS, ids=[line for line, *_ in RUNS])
def test_nothing_shown_is_a_traceback_or_of_this_machine(line: str, text: str, code: int) -> None:
    assert text.strip()
    assert "Traceback" not in text
    assert re.search(r"/(root|home|tmp|Users)\b", text) is None
    if code:
        assert len(re.findall("^Error: ", text, re.MULTILINE)) == 1 or line.startswith("sickbay check ")


@pytest.mark.parametrize(
    ("start", "code"),
    [("sickbay explain train-99", 1), ("sickbay hold everything", 2), ("sickbay approve train-1 Repair", 1)],
)
def test_a_refusal_is_shown_with_its_exit_code(start: str, code: int) -> None:
    assert [found for line, _, found in RUNS if line.startswith(start)] == [code]


def test_json_shown_is_json() -> None:
    (rows,) = (json.loads(text) for line, text, _ in RUNS if line == "sickbay queue -o json")
    assert {row["node"] or row["job"] for row in rows} >= {"train-1", "job/eval"}
    assert all(row["command"] for row in rows)


def test_a_command_runs_in_the_situation_as_in_a_shell() -> None:
    with situation() as place:
        place.keep("a.log", "nothing\n")
        assert place.run("sickbay decode a.log") == Shown("sickbay decode a.log", 0, "")
        cut = place.run("sickbay catalogue | head -1")
        assert (cut.code, len(cut.text.splitlines())) == (0, 1)
        assert place.run("sickbay nothing").code == 2


def test_a_command_without_a_scene_stops_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "by_command", dict)
    with pytest.raises(commands.UndocumentedError, match="shows nothing that it prints"):
        commands.markdown()
