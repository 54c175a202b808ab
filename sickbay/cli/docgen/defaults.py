"""docs/defaults.md: every default with its unit and its reason."""

from __future__ import annotations

from collections.abc import Iterator

from sickbay.api import defaults
from sickbay.cli.docgen import constants
from sickbay.cli.docgen.commands import commands, settings

HEAD = """\
# Defaults

Every default, its unit and its reason. Written from the code by `python -m sickbay.cli.generate`; a test keeps it
current. What the fields mean is in `docs/api.md`, what the options do in `docs/commands.md`.

Durations are written like `90s`, `30m`, `7d`. A percentage is a share of the pool's nodes, rounded down.
"""


def markdown() -> str:
    return "\n".join([HEAD.rstrip(), defaults.markdown().rstrip(), *_constants(), *_options(), ""])


def _constants() -> Iterator[str]:
    yield from (
        "",
        "## Fixed times and numbers",
        "",
        "| what | value | unit | reason and meaning | where |",
        "|---|---|---|---|---|",
    )
    for what, value, unit, reason, where in constants.rows():
        yield f"| {what} | `{value}` | {unit} | {reason.replace('|', '/')} | `{where}` |"


def _options() -> Iterator[str]:
    yield from (
        "",
        "## Options of the processes",
        "",
        "| process | option | default | what it sets |",
        "|---|---|---|---|",
    )
    for name, command in commands():
        if name in ("agent", "controller"):
            yield from (f"| {name} | `{o}` | `{default}` | {text} |" for o, default, text in settings(command))
