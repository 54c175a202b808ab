"""`sickbay import`: other systems' settings as rules and pools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import yaml

from sickbay.api.actions import ACTIONS
from sickbay.api.words import Step
from sickbay.cli.ops.cluster import counted
from sickbay.cli.ops.manifests import documents
from sickbay.decide import catalogue
from sickbay.decide.imports.ack import Imported, RefusedError, Words, import_ack


@click.group(name="import")
def import_group() -> None:
    """Turn another system's settings into rules and pools.

    Example: sickbay import ack policy.json nodepool.json > ack.yaml
    """


def _incidents(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found = {}
    for value in values:
        name, _equals, faults = value.partition("=")
        named = tuple(fault.strip() for fault in faults.split(",") if fault.strip())
        if not name or not named:
            raise click.BadParameter(f"{value!r}: write NAME=FAULT, such as Node.FaultNeedReboot.HOST=pcie.aer.fatal")
        found[name] = named
    return found


def _steps(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    found = {}
    for value in values:
        name, _equals, meaning = value.partition("=")
        step, _colon, action = meaning.partition(":")
        if not name or step not in set(Step):
            raise click.BadParameter(f"{value!r}: write NAME=STEP with a step of {', '.join(Step)}")
        if action and (step != Step.REPAIR or action not in ACTIONS):
            raise click.BadParameter(f"{value!r}: only Repair has an action, one of {', '.join(sorted(ACTIONS))}")
        found[name] = (step, action)
    return found


@import_group.command(name="ack")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--incident", "incidents", multiple=True, callback=_incidents, metavar="NAME=FAULT[,FAULT]",
              help="Fault types that an incident of ACK stands for.")  # fmt: skip
@click.option("--step", "steps", multiple=True, callback=_steps, metavar="NAME=STEP[:ACTION]",
              help="The step that a step of ACK stands for; for Repair with its action.")  # fmt: skip
def ack(files: tuple[Path, ...], incidents: dict[str, tuple[str, ...]], steps: dict[str, tuple[str, str]]) -> None:
    """Turn ACK's AutoRepairPolicy and node pools (answers of its API, JSON or YAML) into a RepairRule and RepairPools.

    Manifests go to standard output, what has no counterpart to standard error. Pools start in Observe. Exit code 1 when
    settings contradict each other or cannot be read.

    Example: sickbay import ack policy.json nodepool.json > ack.yaml
    """
    given = [(str(file), document) for file in files for document in _documents(file)]
    try:
        made = import_ack(given, Words(incidents, steps), catalogue.build())
    except RefusedError as error:
        raise click.ClickException(str(error)) from None
    _tell(made)


class _Plain(yaml.SafeDumper):
    """Writes what stands twice twice: people edit the result."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _tell(made: Imported) -> None:
    click.echo(yaml.dump_all(made.manifests, Dumper=_Plain, sort_keys=False, explicit_start=True, width=120), nl=False)
    for note in made.notes:
        click.echo(f"note: {note}", err=True)
    kinds = [manifest["kind"] for manifest in made.manifests]
    click.echo(
        f"{counted(kinds.count('RepairRule'), 'rule')}, {counted(kinds.count('RepairPool'), 'pool')} in Observe, "
        f"{counted(len(made.notes), 'note')}; "
        "judge them with: sickbay check FILE",
        err=True,
    )


def _documents(file: Path) -> list[Any]:
    """Every document of a file; JSON is YAML too."""
    found = documents(file)
    if not found:
        raise click.ClickException(f"{file} is empty; give an answer of ACK's API")
    return found
