"""Which questions stand on nodes: by node, by group, by labels of nodes, or all that wait for one step.

A question is bound to node UID, incident, step and attempt. Whoever answers it shows it first, and answers only while
it is still the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import click

from sickbay.api import kinds
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import Inquiry, read_inquiry
from sickbay.api.repair_plan import ApprovalForm
from sickbay.decide.approval import Answer, answer
from sickbay.kube import errors
from sickbay.kube.client import Client


@dataclass(frozen=True)
class Question:
    """One that waits for its answer."""

    node: Node
    inquiry: Inquiry
    repair: NodeRepair

    @property
    def form(self) -> ApprovalForm:
        return self.repair.spec.plan.form

    @property
    def identity(self) -> tuple[str, str, int, str]:
        return self.inquiry.uid, self.inquiry.step, self.inquiry.attempt, self.node.uid

    def row(self) -> list[str]:
        """Node, incident, step, attempt, and whom the answer is for."""
        group = self.repair.spec.group
        scope = f"{len(group.members)} nodes of {group.id}" if group.id else "-"
        return [self.node.name, self.repair.metadata.name, self.inquiry.step, str(self.inquiry.attempt), scope]


@dataclass(frozen=True)
class Wanted:
    """What a command line asks for."""

    step: str
    nodes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    labels: str = ""
    """A label selector over nodes; those that it selects and that ask nothing are left out."""
    everywhere: bool = False
    """All that wait for this step."""


@dataclass
class Found:
    questions: list[Question]
    problems: list[str]
    """Why one that was named by its node or group cannot be answered."""


async def find(client: Client, wanted: Wanted) -> Found:
    """The questions that are meant, each once, and what is in the way of others."""
    repairs = [r for r in (await client.list(kinds.NODE_REPAIR)).items if not r.ended]
    found = Found([], [])
    for candidates, about in _named(wanted, repairs):
        try:
            found.questions.append(await _asked(client, about, candidates, wanted.step, repairs))
        except errors.ApiError as error:
            found.problems.append(f"{about}: {said(error)}")
        except click.ClickException as error:
            found.problems.append(error.message)
    found.questions += await _selected(client, wanted, repairs)
    found.questions = list({question.node.name: question for question in found.questions}.values())
    return found


async def again(client: Client, question: Question) -> Question:
    """The question as it stands now. Raises ClickException when it is no longer the one that was shown."""
    node = await client.get(kinds.NODE, question.node.name)
    current, why_not = _standing(node, question.inquiry.step, [question.repair])
    if current is None or current.identity != question.identity:
        raise click.ClickException(
            f"{node.name}: {why_not or 'another question stands there now'}; not answered. "
            f"See: sickbay explain {node.name}"
        )
    return current


def _named(wanted: Wanted, repairs: list[NodeRepair]) -> Iterable[tuple[list[str], str]]:
    """Nodes on which a question may stand that a word of the command line means, and the word."""
    for name in wanted.nodes:
        yield [name, *_mates(name, repairs)], name
    for group in wanted.groups:
        yield [r.spec.node.name for r in repairs if r.spec.group.id == group], f"group {group}"


def _mates(node: str, repairs: list[NodeRepair]) -> list[str]:
    """The other nodes of the group in which a node is repaired."""
    groups = {r.spec.group.id for r in repairs if r.spec.node.name == node and r.spec.group.id}
    return [r.spec.node.name for r in repairs if r.spec.group.id in groups and r.spec.node.name != node]


async def _asked(client: Client, about: str, candidates: list[str], step: str, repairs: list[NodeRepair]) -> Question:
    """Raises ClickException where it is not asked for, NotFound for a node that is not there."""
    if not candidates:
        known = ", ".join(sorted({r.spec.group.id for r in repairs if r.spec.group.id})) or "none"
        raise click.ClickException(f"there is no open {about}; open: {known}")
    reasons = []
    for name in candidates:
        question, why_not = _standing(await client.get(kinds.NODE, name), step, repairs)
        if question is not None:
            return question
        reasons.append(why_not)
    why = next((r for r in reasons if r != NOTHING), NOTHING)
    see = about if about in candidates else candidates[0]
    raise click.ClickException(f"{about}: {step} waits for no approval; {why}. See: sickbay explain {see}")


async def _selected(client: Client, wanted: Wanted, repairs: list[NodeRepair]) -> list[Question]:
    """What stands on the nodes of a selector, or on any."""
    if wanted.labels:
        nodes = (await client.list(kinds.NODE, labels=wanted.labels)).items
    elif wanted.everywhere:
        names = dict.fromkeys(r.spec.node.name for r in repairs if r.status.current.step.lower() == wanted.step.lower())
        nodes = [n for n in await asyncio.gather(*(_node(client, name) for name in names)) if n is not None]
    else:
        return []
    found = (_standing(node, wanted.step, repairs)[0] for node in sorted(nodes, key=lambda node: node.name))
    return [question for question in found if question is not None]


async def _node(client: Client, name: str) -> Node | None:
    try:
        return await client.get(kinds.NODE, name)
    except errors.NotFound:
        return None


NOTHING = "nothing is asked for"


def _standing(node: Node, step: str, repairs: Iterable[NodeRepair]) -> tuple[Question | None, str]:
    """The question about a step that stands on a node and waits for its answer; or why there is none."""
    inquiry = read_inquiry(node)
    if inquiry is None:
        return None, NOTHING
    if inquiry.step.lower() != step.lower():
        return None, f"only {inquiry.step} is asked for"
    if inquiry.node_uid != node.uid:
        return None, "the question there was put to an earlier machine of this name"
    repair = next((r for r in repairs if r.metadata.uid == inquiry.uid), None)
    if repair is None:
        return None, "the repair that asked is over"
    match answer(node, inquiry, repair.spec.plan.form):
        case Answer.WAITING:
            return Question(node, inquiry, repair), ""
        case Answer.NOT_ASKED:
            return None, "its label was taken away; it is asked again shortly"
        case given:
            return None, f"{inquiry.step} is {given.lower()} already"


def said(error: errors.ApiError) -> str:
    return f"not permitted: {error.message}" if isinstance(error, errors.Forbidden) else error.message
