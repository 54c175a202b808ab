"""Does a command line parse? Asked of click itself, without running anything."""

from __future__ import annotations

import re
import shlex
from typing import Any

import click
import pytest

from sickbay.cli.main import cli

PLACEHOLDERS = {
    "NODE": "n1", "STEP": "Drain", "FAULT": "gpu.xid.79", "FILE": "f.yaml", "FILE...": "f.yaml", "NAME": "x",
    "OLD": "built-in", "NEW": "f.yaml", "...": "why",
}  # fmt: skip
"""Words that stand for something, and something they may stand for."""


def arguments(line: str) -> list[str]:
    """The words after `sickbay`, up to a pipe, a redirection or a comment."""
    words = shlex.split(line, comments=True)[1:]
    ends = (i for i, word in enumerate(words) if word in ("|", ">", "&&", ";") or word.startswith("$("))
    return words[: next(ends, len(words))]


def parse(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises click.ClickException for what click refuses. Files need not exist."""

    def as_it_is(self: click.Path, value: Any, param: Any, ctx: Any) -> Any:
        return value

    monkeypatch.setattr(click.Path, "convert", as_it_is)
    context, command, rest = click.Context(cli, info_name="sickbay"), click.Command(""), words
    command = _inner(cli, context, rest)
    rest = rest[1:]
    if not rest or rest == ["..."]:
        return  # only named
    given = [PLACEHOLDERS.get(word, word) for word in rest]
    while True:
        context = command.make_context(command.name, list(given), parent=context)
        if not isinstance(command, click.Group):
            return
        given = [*context._protected_args, *context.args]
        command = _inner(command, context, given)
        given = given[1:]


def _inner(group: click.Group, context: click.Context, words: list[str]) -> click.Command:
    found = group.get_command(context, words[0]) if words else None
    if found is None:
        raise click.UsageError(f"no command {words[:1]}")
    return found


def is_abstract(line: str) -> bool:
    """A line about any command (`sickbay COMMAND -h`), or the program's name alone."""
    return line == "sickbay" or re.search(r"\bCOMMAND\b|\[OPTIONS\]", line) is not None
