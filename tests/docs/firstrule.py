"""The README's way from an empty cluster to a first answered gate: the files and commands, in the order they stand."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from tests.docs.blocks import ROOT

SECTIONS = ("## Install", "## Your first rule in ten minutes")
_NAMED = re.compile(r"[Aa]s `([\w-]+\.yaml)`:$")
_COMMAND = re.compile(r"^ +((?:sickbay|kubectl) .*)$")


@dataclass(frozen=True)
class File:
    """What a reader saves."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """What a reader types. `section` is the heading it stands under."""

    text: str
    section: str


def steps() -> Iterator[File | Command]:
    for heading in SECTIONS:
        text = (ROOT / "README.md").read_text().partition(f"{heading}\n")[2].partition("\n## ")[0]
        yield from _of_section(heading.removeprefix("## "), text.splitlines())


def _of_section(heading: str, lines: list[str]) -> Iterator[File | Command]:
    name, body, fenced = "", [], False
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("```"):
            if fenced:
                assert name, f"under {heading} a block has no file name before it"
                yield File(name, textwrap.dedent("\n".join(body)) + "\n")
                name, body = "", []
            fenced = not fenced
        elif fenced:
            body.append(line)
        elif found := _NAMED.search(line):
            name = found[1]
        elif found := _COMMAND.match(line):
            yield Command(re.sub(r"\s+# .*$", "", found[1]), heading)
