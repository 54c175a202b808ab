"""Answers to approvals: for one node, for several, for a group, for all that wait.

Each answer is the label that a person would write, in a write that holds only while the node is as it was read, with
the very question that was shown. One that cannot be given is said in a line of its own, and the others are given all
the same.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click

from sickbay.api import kinds
from sickbay.api.words import Step
from sickbay.cli.ops import effects, questions, session
from sickbay.cli.ops.cluster import counted, print_table
from sickbay.cli.ops.questions import Question, Wanted
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.events import NORMAL, EventRecorder, reference
from sickbay.kube.nodes import label_ops, patch_node

TRIES = 5
"""Writes of one answer: a node's heartbeat may come between its reading and the write."""
COLUMNS = ["NODE", "INCIDENT", "STEP", "ATTEMPT", "GROUP"]


@dataclass(frozen=True)
class Answer:
    value: str
    """approved | denied"""
    wanted: Wanted
    reason: str = ""
    dry_run: bool = False
    sure: bool = False
    """Selected nodes are answered for without asking back."""


async def answer(client: Client, given: Answer) -> None:
    """Say what is answered, answer it, and say what came of it.

    Raises ClickException where an answer could not be given, UsageError where nowhere is meant.
    """
    wanted = given.wanted
    selects = bool(wanted.labels or wanted.everywhere)
    if not (wanted.nodes or wanted.groups or selects):
        raise click.UsageError("name nodes, or --group, -l or --all-waiting; what waits: sickbay queue")
    found = await questions.find(client, wanted)
    _show(found.questions, given, selects)
    if given.value == "approved" and found.questions:
        for line in await _effect(client, found.questions):
            click.echo(line)
    if selects and not found.questions:
        found.problems.append(f"{wanted.step} waits for approval on none of the nodes meant; see: sickbay queue")
    if given.dry_run or not found.questions:
        _end(0, len(found.questions) if not given.dry_run else 0, found.problems)
        return
    if selects and not given.sure:
        _ask_back(len(found.questions), given.value)
    done = 0
    for question in found.questions:
        try:
            click.echo(await _give(client, question, given))
            done += 1
        except errors.ApiError as error:
            found.problems.append(f"{question.node.name}: {questions.said(error)}")
        except click.ClickException as error:
            found.problems.append(error.message)
    _end(done, len(found.questions), found.problems)


def _show(asked: list[Question], given: Answer, selects: bool) -> None:
    """What will be answered, before it is; one that was named needs no list."""
    if asked and (selects or given.dry_run or len(asked) > 1 or asked[0].repair.spec.group.id):
        click.echo(f"To be {given.value}:")
        print_table(COLUMNS, [question.row() for question in asked], "")


async def _effect(client: Client, asked: list[Question]) -> list[str]:
    """What the step does to jobs and GPUs, a group's members included; nothing for the way back into service."""
    step, action = asked[0].inquiry.step, asked[0].repair.status.current.action
    what = (action or step) if step == Step.REPAIR else step
    if step == Step.UNQUARANTINE or (step == Step.REPAIR and not effects.disrupts(action)):
        return []
    nodes = {question.node.name: question.node for question in asked}
    others = {name for question in asked for name in question.repair.spec.group.members} - nodes.keys()
    try:
        for name in sorted(others):
            nodes[name] = await client.get(kinds.NODE, name)
        pools = (await client.list(kinds.REPAIR_POOL)).items
    except errors.ApiError as error:
        return [f"{what}: what it does cannot be seen: {questions.said(error)}"]
    return effects.lines(what, await effects.read(client, list(nodes.values())), pools)


def _ask_back(number: int, value: str) -> None:
    """Raises Abort for a no, UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked whether this is meant: give --yes, or only look with --dry-run")
    click.confirm(f"Shall {'this one' if number == 1 else f'these {number}'} be {value}?", abort=True)


async def _give(client: Client, question: Question, given: Answer) -> str:
    """Raises ClickException when it is another question by now, or when its form has no such word."""
    for _ in range(TRIES):
        current = await questions.again(client, question)
        form = current.form
        word = (form.approved if given.value == "approved" else form.denied)[:1]
        if not word:
            text = f"cannot be {given.value}: its form of approval has no word for it"
            raise click.ClickException(f"{current.node.name}: {current.inquiry.step} {text}")
        key = form.key_of(current.inquiry.step)
        try:
            await patch_node(client, current.node, label_ops(current.node, {key: word[0]}))
        except errors.Conflict:
            continue
        await _record(client, current, given)
        return _said(current, given.value, f"{key}={word[0]}")
    raise click.ClickException(f"{question.node.name}: it changes all the time; not answered, try again")


def _said(question: Question, value: str, label: str) -> str:
    group, inquiry = question.repair.spec.group, question.inquiry
    of = f"{question.repair.metadata.name}, attempt {inquiry.attempt}"
    for_all = f" for all {len(group.members)} nodes of group {group.id}" if group.id else ""
    return f"{question.node.name}: {inquiry.step} {value} ({of}; {label}){for_all}"


async def _record(client: Client, question: Question, given: Answer) -> None:
    """An Event on the node says who has answered by which command, and why."""
    reached = session.current()
    recorder = EventRecorder(client, reached.clock, reached.randomness, component=session.USER_AGENT)
    why = f": {given.reason}" if given.reason else ""
    reason = f"{question.inquiry.step}{given.value.capitalize()}"
    recorder.event(reference(kinds.NODE, question.node), NORMAL, reason, f"by command{why}")
    await recorder.flush()


def _end(done: int, meant: int, problems: list[str]) -> None:
    """Raises ClickException with every line that says what could not be done."""
    if not problems:
        return
    if done or meant:
        problems = [*problems, f"{done} answered, {counted(len(problems), 'problem')}"]
    raise click.ClickException("\n".join(problems))
