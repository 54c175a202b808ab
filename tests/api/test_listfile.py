"""Files of settings that hold one list: what is wrong with one is told with file, line, field and remedy."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from sickbay.api.listfile import BadFileError, entries


class Door(msgspec.Struct, rename="camel"):
    name: str
    opens_at: list[str] = []
    is_locked: bool = False


def read(tmp_path: Path, text: str, words: bool = False) -> list[Door]:
    (tmp_path / "f.yaml").write_text(text)
    return entries(str(tmp_path / "f.yaml"), "doors", Door, words=words)


def test_entries_are_read_in_their_order(tmp_path: Path) -> None:
    text = "doors:\n- {name: a, opensAt: ['8', noon]}\n- {name: b, isLocked: true}\n"
    assert read(tmp_path, text) == [Door("a", ["8", "noon"]), Door("b", is_locked=True)]


@pytest.mark.parametrize("text", ["", "# nothing\n", "doors: []\n"], ids=["empty", "a comment", "an empty list"])
def test_nothing_is_nothing(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == []


def test_words_are_words_where_that_is_asked_for(tmp_path: Path) -> None:
    text = "doors: [{name: 5, opensAt: [yes, no], isLocked: true}]"
    assert read(tmp_path, text, words=True) == [Door("5", ["yes", "no"], True)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("doors:\n- {nam: a}", "f.yaml:2: doors[0].nam: unknown field; did you mean name?", id="a slip"),
        pytest.param("doors:\n- {name: a}\n- {zzz: 1, name: b}", "f.yaml:3: doors[1].zzz: unknown field; remove it, or "
                     "use one of name, opensAt, isLocked", id="an unknown field"),
        pytest.param("doors:\n- isLocked: true", "f.yaml:2: doors[0].name: required; add it", id="a missing field"),
        pytest.param("doors:\n- {name: 5}", "doors[0].name: wrong type; write a text, in quotes", id="a number"),
        pytest.param("doors:\n- {name: a, isLocked: 1}", "isLocked: wrong type; write true or false", id="no boolean"),
        pytest.param("doors:\n- {name: a, opensAt: x}", "opensAt: wrong type; write a list of texts", id="no list"),
        pytest.param("doors:\n- a", "f.yaml:2: doors[0]: no mapping; write fields of name", id="no mapping"),
        pytest.param("door: []", "f.yaml:1: no list of doors; write doors: once", id="another key"),
        pytest.param("doors: {}", "f.yaml:1: no list of doors", id="a mapping"),
        pytest.param("- a", "f.yaml:1: no list of doors", id="a bare list"),
        pytest.param("doors: []\n---\ndoors: []", "f.yaml:3: a second document", id="two documents"),
        pytest.param("doors: [\n", "f.yaml:2: ", id="no YAML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line_and_remedy(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadFileError) as raised:
        read(tmp_path, text)
    assert says in str(raised.value)


def test_a_file_that_is_not_there_is_named_with_what_it_should_be() -> None:
    with pytest.raises(BadFileError) as raised:
        entries("/no/such", "doors", Door)
    assert str(raised.value) == "/no/such cannot be read: No such file or directory; name a file that holds doors:"


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadFileError, match="UTF-8"):
        entries(str(tmp_path / "f"), "doors", Door)
