"""Commands that answer questions: approve and deny. Each writes what a person would write with kubectl."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from sickbay.cli.ops.answering import Answer, answer
from sickbay.cli.ops.cluster import connection
from sickbay.cli.ops.questions import Wanted

_STEPS = ("Quarantine", "Drain", "Repair", "Unquarantine")
_STEP = click.Choice(_STEPS, case_sensitive=False)


def _answers(function: Callable[..., Any]) -> Callable[..., Any]:
    """What approve and deny take, handed on as `wanted` and `how`."""

    @click.argument("words", metavar="[NODE...] STEP", nargs=-1)
    @click.option("--step", type=_STEP, default=None, help="The step, where it is not the last word.")
    @click.option("--group", "groups", multiple=True, help="A group of nodes that is repaired as one, by its name.")
    @click.option("-l", "--selector", default="", help="Nodes with these labels, as in kubectl, where STEP waits.")
    @click.option("--all-waiting", is_flag=True, help="Every node where STEP waits.")
    @click.option("--reason", default="", help="Why; stands in an Event on the node.")
    @click.option("--dry-run", is_flag=True, help="Only list what would be answered.")
    @click.option("-y", "--yes", is_flag=True, help="Do not ask back when nodes are selected by -l or --all-waiting.")
    @connection
    @functools.wraps(function)
    def wrapped(
        words: tuple[str, ...], step: str | None, groups: tuple[str, ...], selector: str, all_waiting: bool,
        reason: str, dry_run: bool, yes: bool, call: Callable[..., Any],
    ) -> None:  # fmt: skip
        nodes, meant = (words, step) if step else (words[:-1], _step(words))
        wanted = Wanted(meant, nodes, groups, selector, all_waiting)
        function(call, wanted, {"reason": reason, "dry_run": dry_run, "sure": yes})

    return wrapped


def _step(words: tuple[str, ...]) -> str:
    """The last word. Raises UsageError where it is no step."""
    if not words:
        raise click.UsageError(f"name the step, one of {', '.join(_STEPS)}; what waits: sickbay queue")
    for step in _STEPS:
        if step.lower() == words[-1].lower():
            return step
    raise click.UsageError(f"{words[-1]!r} is not one of {', '.join(_STEPS)}; the step comes last, or with --step")


@click.command()
@_answers
def approve(call: Callable[..., Any], wanted: Wanted, how: dict[str, Any]) -> None:
    """Approve the STEP that waits on nodes: named ones, those of a group, those with labels, or all of them.

    Each answer is for one incident, attempt and machine, the one that is shown, and is given only while that is still
    what is asked. A group of nodes asks once, on one of them: naming any of them answers for all. With -l or
    --all-waiting the list is shown and asked back about. What cannot be answered is listed, and the exit code is 1.

    Example: sickbay approve gpu-node-17 gpu-node-18 Drain --reason "job has its checkpoint"
    """
    call(lambda client: answer(client, Answer("approved", wanted, **how)))


@click.command()
@_answers
def deny(call: Callable[..., Any], wanted: Wanted, how: dict[str, Any]) -> None:
    """Deny the STEP that waits on nodes: named ones, those of a group, those with labels, or all of them.

    Example: sickbay deny gpu-node-17 Repair --reason "vendor wants to look first"
    """
    call(lambda client: answer(client, Answer("denied", wanted, **how)))
