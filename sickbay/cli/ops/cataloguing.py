"""`sickbay catalogue`: the fault types, and what changes between two catalogues."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from sickbay.api.fault_type import FaultType
from sickbay.cli.ops.cluster import output, print_json, print_table
from sickbay.cli.ops.manifests import documents
from sickbay.cli.ops.offline import catalogue_command
from sickbay.decide import catalogue as catalogues
from sickbay.decide import cataloguediff, lint

BUILT_IN = "built-in"


class _WithDefault(click.Group):
    """A group of which the first word may be left out: `sickbay catalogue gpu.xid.79` shows that fault."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        helps = self.get_help_option_names(ctx)
        if not args or (args[0] not in self.commands and args[0] not in helps):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(name="catalogue", cls=_WithDefault)
def catalogue_group() -> None:
    """Show the fault types (`show` may be left out), or what changes between two catalogues.

    Example: sickbay catalogue gpu.xid.79
    """


catalogue_group.add_command(catalogue_command, "show")


@catalogue_group.command(name="diff")
@click.argument("old")
@click.argument("new")
@click.option("--overrides", is_flag=True, help="Print the overrides under which a pool only observes what acts more.")
@output
def diff(old: str, new: str, overrides: bool, output: str) -> None:
    """Show what changes when the catalogue NEW takes the place of OLD, and what is repaired then that was not before.

    Each is a version (this program has its own, also called built-in), a file or directory of FaultTypes (merged over
    the built-in ones, as in a cluster), or a whole catalogue as `sickbay catalogue -o json` prints it. Exit code 0
    whether they differ or not.

    Example: sickbay catalogue diff built-in my-faults.yaml
    """
    changes = cataloguediff.diff(_read(old), _read(new))
    if overrides:
        found = cataloguediff.overrides(changes)
        click.echo(yaml.safe_dump({"overrides": found}, sort_keys=False, width=120), nl=False)
    elif output == "json":
        print_json([{**msgspec.to_builtins(change), "actsMore": change.acts_more} for change in changes])
    else:
        _print(changes)


def _print(changes: list[cataloguediff.Change]) -> None:
    rows = [[c.kind, c.fault, "; ".join(c.effects) or "-"] for c in changes]
    print_table(["CHANGE", "FAULT", "EFFECT"], rows, "no difference")
    for change in (c for c in changes if c.fields):
        click.echo(f"\n{change.fault}:")
        for each in change.fields:
            click.echo(f"  {each.path}: {each.old or '(none)'} -> {each.new or '(none)'}")


def _read(word: str) -> Mapping[str, FaultType]:
    version = catalogues.build().version
    if word in (BUILT_IN, version):
        return catalogues.build().types
    path = Path(word)
    if not path.exists():
        raise click.ClickException(
            f"{word} is no file, and no version that this program has ({version}). Save the other version's catalogue "
            "with its own program: sickbay catalogue -o json > FILE"
        )
    files = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml", ".json")) if path.is_dir() else [path]
    if not files:
        raise click.ClickException(f"{word}: the directory holds no .yaml or .json file")
    found = [document for file in files for document in documents(file)]
    try:
        return _types(found, word)
    except (ValueError, AttributeError) as error:
        raise click.ClickException(_in_words(files) or f"{word}: {error}") from None


def _in_words(files: list[Path]) -> str:
    """What `sickbay check` says of the form of the FaultTypes, with file and line; "" when it has nothing to say."""
    read = (each for file in files for each in lint.read(str(file), file.read_text(encoding="utf-8")))
    judged = [each for each in read if isinstance(each, lint.Document) and each.body.get("kind") == "FaultType"]
    found = [finding for document in judged for finding in lint.problems(document)]
    return "\n".join(f"{f.file}:{f.line}: {f.object}: {f.message}" for f in found)


def _types(found: list[Any], word: str) -> Mapping[str, FaultType]:
    """Raises ValueError or AttributeError where one cannot be read."""
    whole = [entry for document in found if isinstance(document, list) for entry in document]
    single = [d for d in found if isinstance(d, dict) and d.get("kind") == "FaultType"]
    if not whole and not single:
        raise click.ClickException(f"{word} holds no FaultType")
    if whole:
        return cataloguediff.entries([*whole, *single])
    cataloguediff.entries(single)
    made = catalogues.build(single)
    for name, why in made.problems.items():
        click.echo(f"note: {name} is set aside: {why}", err=True)
    return made.types
