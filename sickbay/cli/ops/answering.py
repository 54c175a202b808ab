"""Answers to approvals: for one node, for several, for a group that asks on one of its nodes.

Each answer is the label that a person would write. One that cannot be given is said in a line of its own, and the
others are given all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import click

from sickbay.api import kinds
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import Inquiry, read_inquiry
from sickbay.cli.ops import session
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.events import NORMAL, EventRecorder, reference
from sickbay.kube.nodes import label_ops, patch_node


@dataclass(frozen=True)
class Answer:
    value: str
    """approved | denied"""
    step: str
    nodes: tuple[str, ...] = ()
    group: str = ""
    reason: str = ""


async def answer(client: Client, wanted: Answer) -> None:
    """Give it and say so. Raises ClickException where it cannot be given, UsageError where nowhere is meant."""
    if not wanted.nodes and not wanted.group:
        raise click.UsageError("name the nodes, or a group with --group; what waits: sickbay queue")
    repairs = [r for r in (await client.list(kinds.NODE_REPAIR)).items if not r.ended]
    done: set[str] = set()
    problems = []
    for about in (*wanted.nodes, *([f"group {wanted.group}"] if wanted.group else ())):
        try:
            node, inquiry = await _asked(client, about, wanted, repairs)
            if node.name not in done:
                click.echo(await _write(client, node, inquiry, wanted))
                done.add(node.name)
        except errors.NotFound as error:
            problems.append(error.message)
        except click.ClickException as error:
            problems.append(error.message)
    if problems:
        raise click.ClickException("\n".join(problems))


async def _asked(client: Client, about: str, wanted: Answer, repairs: list[NodeRepair]) -> tuple[Node, Inquiry]:
    """The node on which the question stands, and the question."""
    of_group = about == f"group {wanted.group}"
    if of_group:
        members = [r for r in repairs if r.spec.group.id == wanted.group]
        if not members:
            known = ", ".join(sorted({r.spec.group.id for r in repairs if r.spec.group.id})) or "none"
            raise click.ClickException(f"there is no open group {wanted.group}; open: {known}")
        candidates = [r.spec.node.name for r in members]
    else:
        candidates = [about, *_mates(about, repairs)]
    others = set()
    for name in candidates:
        node = await client.get(kinds.NODE, name)
        inquiry = read_inquiry(node)
        if inquiry is not None and inquiry.step.lower() == wanted.step.lower():
            return node, inquiry
        others |= {inquiry.step} if inquiry is not None else set()
    asked = f"only {', '.join(sorted(others))} is asked for" if others else "nothing is asked for"
    see = candidates[0] if of_group else about
    raise click.ClickException(f"{about}: {wanted.step} waits for no approval; {asked}. See: sickbay explain {see}")


def _mates(node: str, repairs: list[NodeRepair]) -> list[str]:
    """The other nodes of the group in which a node is repaired."""
    groups = {r.spec.group.id for r in repairs if r.spec.node.name == node and r.spec.group.id}
    return [r.spec.node.name for r in repairs if r.spec.group.id in groups and r.spec.node.name != node]


async def _write(client: Client, node: Node, inquiry: Inquiry, wanted: Answer) -> str:
    repair = await client.get(kinds.NODE_REPAIR, inquiry.repair)
    form = repair.spec.plan.form
    word = (form.approved if wanted.value == "approved" else form.denied)[:1]
    if not word:
        text = f"{inquiry.step} of {node.name} cannot be {wanted.value}: its form of approval has no word for it"
        raise click.ClickException(text)
    await patch_node(client, node, label_ops(node, {form.key_of(inquiry.step): word[0]}))
    reached = session.current()
    recorder = EventRecorder(client, reached.clock, reached.randomness, component=session.USER_AGENT)
    why = f": {wanted.reason}" if wanted.reason else ""
    reason = f"{inquiry.step}{wanted.value.capitalize()}"
    recorder.event(reference(kinds.NODE, node), NORMAL, reason, f"by command{why}")
    await recorder.flush()
    group = repair.spec.group
    all_ = f" for all {len(group.members)} nodes of group {group.id}" if group.id else ""
    return f"{node.name}: {inquiry.step} {wanted.value} ({form.key_of(inquiry.step)}={word[0]}){all_}"
