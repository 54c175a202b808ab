"""The approval handshake: a conversation by labels between us and whoever may say yes.

We write `<prefix>/<step>-node=inquiring` together with the annotation `sickbay.dev/inquiry`, which binds the question
to one incident, step, attempt and node UID. They change the value to `approved` or `denied`. An answer counts only
while the annotation still names exactly our question, so neither an old approval, nor one for a node that has been
re-created under the name, nor one that somebody had put there before we asked, opens a gate.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.nodemarks import Inquiry, question_taken_off, read_inquiry
from sickbay.api.repair_plan import ApprovalForm
from sickbay.kube.nodes import annotation_ops, label_ops


class Answer(StrEnum):
    NOT_ASKED = "NotAsked"
    """Our question does not stand on the node (not yet, or somebody took it away): ask (again)."""
    WAITING = "Waiting"
    APPROVED = "Approved"
    DENIED = "Denied"


Form = ApprovalForm | str
"""A form, or the prefix of the usual one."""


def _form(given: Form) -> ApprovalForm:
    return ApprovalForm.of_prefix(given) if isinstance(given, str) else given


def answer(node: Node, inquiry: Inquiry, form: Form) -> Answer:
    """What stands on the node about this question. Values count in any case (`Approved` is ACK's spelling).

    That the label is gone is an answer only in a form that says so, and never where only some may give one: who has
    deleted it is judged by nobody.
    """
    standing, form = read_inquiry(node), _form(form)
    if standing is None or _identity(standing) != _identity(inquiry):
        return Answer.NOT_ASKED
    value = node.labels.get(form.key_of(inquiry.step))
    if value is None:
        deleted = form.deletion_approves and not inquiry.groups and not standing.groups
        return Answer.APPROVED if deleted else Answer.NOT_ASKED
    word = value.lower()
    if word in [each.lower() for each in form.approved]:
        return Answer.APPROVED
    if word in [each.lower() for each in form.denied]:
        return Answer.DENIED
    return Answer.WAITING if word == form.inquiring.lower() else Answer.NOT_ASKED


def _identity(inquiry: Inquiry) -> tuple[str, str, int, str]:
    return inquiry.uid, inquiry.step, inquiry.attempt, inquiry.node_uid


def ask_ops(node: Node, inquiry: Inquiry, form: Form) -> list[dict[str, Any]]:
    """Label and binding in one patch. Whatever stood under the label is overwritten: it was no answer to this.

    The label of a question of ours that this one takes the place of goes with it: nothing would bind it any more.
    """
    form = _form(form)
    key = form.key_of(inquiry.step)
    labels: dict[str, str | None] = {key: form.inquiring}
    standing = read_inquiry(node)
    if standing is not None and standing.uid == inquiry.uid and standing.step != inquiry.step:
        old = form.key_of(standing.step)
        labels |= {old: None} if old in node.labels and old != key else {}
    ops = label_ops(node, labels)
    return ops + annotation_ops(node, {names.INQUIRY: msgspec.json.encode(inquiry).decode()})


def withdraw_ops(node: Node, repair_uid: str, form: Form) -> list[dict[str, Any]]:
    """Take back our question, if it is ours and stands: its label, its annotation, and the stamp of who answered it."""
    labels, annotations = question_taken_off(node, repair_uid, _form(form))
    return label_ops(node, labels) + annotation_ops(node, annotations)
