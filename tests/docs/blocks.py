"""What stands in a Markdown page: fenced blocks, command lines, and the files it names."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"`((?:docs|deploy|scenarios|sickbay|tests)/[A-Za-z0-9_./*-]*|[A-Z]+\.md)`")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    page: str
    line: int
    kind: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    def documents(self) -> list[Any]:
        return [document for document in yaml.safe_load_all(self.text) if document is not None]


@dataclass(frozen=True, slots=True)
class Line:
    """A command line as it stands in a page."""

    page: str
    line: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    text, name = page.read_text(), str(page.relative_to(ROOT))
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(name, line, found["kind"], textwrap.dedent(found["body"]))


def command_lines(page: Path) -> Iterator[Line]:
    """Every `sickbay ...` in code: indented, fenced as text for a shell, or in line."""
    name = str(page.relative_to(ROOT))
    fenced = ""
    for number, text in enumerate(page.read_text().splitlines(), start=1):
        if text.strip().startswith("```"):
            fenced = "" if fenced else text.strip().removeprefix("```") or "text"
            continue
        if fenced:
            continue
        code = [text] if text.startswith("    ") else _INLINE.findall(text)
        for each in code:
            found = re.search(r"(?:^|[|;]|\$)\s*(?:kubectl )?(sickbay(?: .*)?)$", each.strip())
            if found:
                yield Line(name, number, found[1].strip())


def files_named(page: Path) -> Iterator[str]:
    yield from _FILE.findall(page.read_text())
