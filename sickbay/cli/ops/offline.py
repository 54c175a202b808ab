"""Commands that need no cluster: catalogue and check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sickbay.cli.ops import session
from sickbay.cli.ops.cluster import counted, output, print_json, print_table
from sickbay.cli.ops.manifests import documents
from sickbay.decide import catalogue as catalogues


@click.command(name="catalogue")
@click.argument("fault", required=False)
@click.option("-f", "--file", "files", multiple=True, type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="FaultType objects to merge over the built-in entries.")  # fmt: skip
@output
def catalogue_command(fault: str | None, files: tuple[Path, ...], output: str) -> None:
    """Show the fault types, or one of them, with what helps and what proves that it is gone.

    Example: sickbay catalogue gpu.xid.79
    """
    overrides = [d for file in files for d in documents(file) if isinstance(d, dict) and d.get("kind") == "FaultType"]
    found = catalogues.build(overrides)
    chosen = {n: t for n, t in found.types.items() if fault is None or n == fault}
    if fault is not None and not chosen:
        why = found.problems.get(fault, "no such fault type; list them with: sickbay catalogue")
        raise click.ClickException(f"{fault}: {why}")
    if output == "json" or fault is not None:
        print_json(list(chosen.values()))
        return
    rows = [
        [n, t.spec.class_ or "", t.spec.severity or "", _ladder(t), t.spec.clears_by or ""] for n, t in chosen.items()
    ]
    print_table(["FAULT", "CLASS", "SEVERITY", "REMEDY", "CLEARS BY"], rows, "the catalogue is empty")


def _ladder(fault: Any) -> str:
    return " > ".join(r.action for r in fault.spec.remedy or []) or "-"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@output
def check(files: tuple[Path, ...], output: str) -> None:
    """Judge rules, pools and fault types in FILES without a cluster: schema, references, and what cannot work.

    Exit code 1 when something is wrong. Example: sickbay check pools.yaml rules.yaml
    """
    from sickbay.decide.lint import lint

    problems = lint(files, session.current().clock.now())
    if output == "json":
        print_json(problems)
    else:
        for p in problems:
            click.echo(f"{p.file}:{p.line}: {p.severity}: {p.object}: {p.message}")
        wrong = sum(p.severity == "error" for p in problems)
        counts = ((len(files), "file"), (wrong, "error"), (len(problems) - wrong, "warning"))
        click.echo(", ".join(counted(n, word) for n, word in counts))
    if any(p.severity == "error" for p in problems):
        raise click.exceptions.Exit(1)
