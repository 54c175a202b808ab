"""docs/commands.md: every command with its options, an example and its exit codes, from what click knows.

Below that stands what the command prints, from a run of it (`outputs`).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from sickbay.cli.docgen import outputs
from sickbay.cli.main import COMMANDS

HEAD = """\
# Commands

Written from the commands themselves by `python -m sickbay.cli.generate`; a test keeps it current. `sickbay COMMAND -h`
shows the same. As `kubectl sickbay COMMAND` each works too, when `kubectl-sickbay` is on the path.

What the commands print is from real runs: of one morning in a small simulated cluster with the pools `train` (Act, a
gate before Drain), `nvl` (Act, a rack that is repaired as a group) and `lab` (Observe). An exit code is shown where it
is not 0.

Commands that talk to a cluster act as the person whose kubeconfig they use (`--kubeconfig`, `--context`) and need no
other rights than the same act with kubectl would. `-o json` prints what the text was made from.

Exit codes, unless a command says otherwise: 0 done, 1 failed or refused (one line on standard error says why), 2 wrong
usage, 130 interrupted.
"""
EXITS = {
    "check": "0 nothing is wrong (warnings may be shown), 1 an error was found, 2 wrong usage",
    "test": "0 all is as expected, 1 something is not, 2 a file is wrong",
    "agent": "0 asked to end, 1 cannot go on",
    "controller": "0 asked to end, 1 cannot go on",
}
"""Exit codes of commands that have their own."""
_SILENT = ("--kubeconfig", "--context", "--help")
"""Options that the head of the page explains."""


class UndocumentedError(Exception):
    """A command lacks what the page needs."""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that this version has, with its full name, groups before what is in them."""
    for name, (module, attribute) in sorted(COMMANDS.items()):
        try:
            found = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            continue
        yield from _with_inner(name, found)


def _with_inner(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for inner, each in sorted(command.commands.items()):
            yield from _with_inner(f"{name} {inner}", each)


def markdown() -> str:
    """The page. Raises UndocumentedError."""
    shown = outputs.by_command()
    return "\n".join(
        [HEAD, *(line for name, command in commands() for line in _section(name, command, shown.get(name, [])))]
    )


def _section(name: str, command: click.Command, scenes: list[outputs.Scene]) -> Iterator[str]:
    text, example = explained(name, command)
    context = click.Context(command, info_name=f"sickbay {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f"## sickbay {name}", "", f"    sickbay {name} {usage}".rstrip(), "", text, "")
    if example:
        yield from (f"Example: `{example}`", "")
    if name in EXITS:
        yield from (f"Exit codes: {EXITS[name]}.", "")
    options = list(_options(command, context))
    if options:
        yield from ("| option | default | meaning |", "|---|---|---|", *options, "")
    if not scenes and not isinstance(command, click.Group):
        raise UndocumentedError(f"sickbay {name}: docgen/outputs.py shows nothing that it prints")
    for scene in scenes:
        yield from outputs.lines(scene)


def explained(name: str, command: click.Command) -> tuple[str, str]:
    """The paragraphs of a command's help, and its example. Only groups may lack the latter."""
    paragraphs = [" ".join(p.split()) for p in inspect.cleandoc(command.help or "").split("\n\n")]
    kept, example = [], ""
    for paragraph in paragraphs:
        before, mark, after = paragraph.partition("Example: ")
        example = after if mark else example
        if before.strip():
            kept.append(before.strip())
    if not kept or not (example or isinstance(command, click.Group)):
        raise UndocumentedError(f"sickbay {name}: its help says nothing, or shows no `Example: sickbay {name} ...`")
    return _escaped("\n\n".join(kept)), example


def settings(command: click.Command) -> Iterator[tuple[str, str, str]]:
    """Option, default and meaning of each option that has a default worth telling."""
    for option in _shown(command):
        default = _default(option)
        if default:
            yield option.opts[-1], default, _escaped(option.help or "")


def _shown(command: click.Command) -> Iterator[click.Option]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden and parameter.opts[-1] not in _SILENT:
            yield parameter


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in _shown(command):
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
        word = "" if parameter.is_flag else f" {_word(parameter, context)}"
        default = _default(parameter)
        shown = f"`{default}`" if default else "*required*" if parameter.required else ""
        meaning = " ".join(part for part in (_escaped(parameter.help or ""), _choices(parameter)) if part)
        yield f"| `{names}{word}` | {shown} | {meaning} |".replace("|  |", "| |")


def _word(option: click.Option, context: click.Context) -> str:
    return "WORD" if isinstance(option.type, click.Choice) else option.make_metavar(context)


def _choices(option: click.Option) -> str:
    if not isinstance(option.type, click.Choice):
        return ""
    return f"One of {', '.join(map(str, option.type.choices))}."


def _default(option: click.Option) -> str:
    """The default as one would type it; nothing for flags and for what is empty."""
    given = option.to_info_dict().get("default")
    if option.secondary_opts:
        return (option.opts if given else option.secondary_opts)[-1]
    if option.is_flag or option.multiple or given in (None, "", ()) or not isinstance(given, str | int | float | Path):
        return ""
    return f"{given:g}" if isinstance(given, float) else str(given)


def _escaped(text: str) -> str:
    """Safe in Markdown, where `<` would begin a tag."""
    return text.replace("<", "&lt;").replace("|", "\\|")
