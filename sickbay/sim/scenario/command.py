"""`sickbay test`: run scenario files and say how they came out.

Exit status: 0 all is as expected, 1 something is not, 2 a file is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from sickbay.sim.scenario import report
from sickbay.sim.scenario.document import BadFileError
from sickbay.sim.scenario.runner import Result, run
from sickbay.sim.scenario.spec import Scenario, read
from sickbay.sim.scenario.typos import unknown
from sickbay.sim.scenario.unseen import unseen

FAILED, BAD_FILE = 1, 2


JUNIT = click.option(
    "--junit",
    type=click.Path(dir_okay=False, readable=False, path_type=Path),
    help="Also write the results as JUnit XML.",
)


def writable(junit: Path | None) -> None:
    """The file to write at the end. Raises BadParameter before the first run, for runs take long."""
    if junit is None:
        return
    if not junit.parent.is_dir():
        told = f"{junit}: there is no directory {junit.parent}; make it first, or name another file"
        raise click.BadParameter(told, param_hint="--junit")
    if not os.access(junit if junit.exists() else junit.parent, os.W_OK):
        raise click.BadParameter(f"{junit}: cannot be written: allow it, or name another file", param_hint="--junit")


@click.command("test")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@JUNIT
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--run", "only", default="", metavar="TEXT", help="Only runs whose name contains TEXT.")
@click.option("--check", is_flag=True, help="Read the files and run nothing.")
@click.option("-v", "--verbose", is_flag=True, help="Show what the components log, on standard error.")
@click.pass_context
def test_command(
    context: click.Context,
    files: tuple[Path, ...],
    junit: Path | None,
    output: str,
    only: str,
    check: bool,
    verbose: bool,
) -> None:
    """Run scenario FILES (or all *.yaml below a directory) on the simulator, on virtual time.

    Example: sickbay test rules/tests --junit results.xml
    """
    writable(junit)
    try:
        scenarios = [scenario for file in _expand(files) for scenario in read_file(file) if only in scenario.name]
        if not scenarios:
            raise BadFileError(", ".join(map(str, files)), 0, "", f"holds no run named like {only!r}")
        for line in (*unknown(scenarios), *unseen(scenarios)):
            click.echo(line, err=True)
        if check:
            click.echo(f"{len(scenarios)} run{'s' * (len(scenarios) != 1)} in good order")
            return
        results = _run_all(scenarios, output, verbose)
    except BadFileError as error:
        click.echo(str(error), err=True)
        context.exit(BAD_FILE)
    summary = report.as_json(results) if output == "json" else report.summary(results)
    conclude(context, summary, all(result.ok for result in results), junit, lambda: report.as_junit(results))


def _run_all(scenarios: list[Scenario], output: str, verbose: bool) -> list[Result]:
    results = []
    for scenario in scenarios:
        result = run(scenario, verbose)
        results.append(result)
        if output == "text":
            for line in report.lines(result):
                click.echo(line)
    return results


def _expand(paths: tuple[Path, ...]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml") and p.is_file())
            if not found:
                raise BadFileError(str(path), 0, "", "the directory holds no .yaml file")
            files += found
        else:
            files.append(path)
    return files


def conclude(context: click.Context, summary: str, ok: bool, junit: Path | None, as_junit: Callable[[], str]) -> None:
    """The end of a command that has run something: its JUnit file, its last words, its exit status."""
    if junit is not None:
        _write(junit, as_junit())
    click.echo(summary)
    if not ok:
        context.exit(FAILED)


def read_file(file: Path) -> list[Scenario]:
    """All runs of a scenario file. Raises BadFileError."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BadFileError(str(file), 0, "", f"cannot be read: {reason}") from None
    return read(str(file), text)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(file), hint=error.strerror or "cannot be written") from None
