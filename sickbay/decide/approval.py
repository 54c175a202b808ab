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
from sickbay.api.nodemarks import Inquiry, read_inquiry
from sickbay.kube.nodes import annotation_ops, label_ops


class Answer(StrEnum):
    NOT_ASKED = "NotAsked"
    """Our question does not stand on the node (not yet, or somebody took it away): ask (again)."""
    WAITING = "Waiting"
    APPROVED = "Approved"
    DENIED = "Denied"


def answer(node: Node, inquiry: Inquiry, prefix: str) -> Answer:
    """What stands on the node about this question. Values count in any case (`Approved` is ACK's spelling)."""
    standing = read_inquiry(node)
    if standing is None or _identity(standing) != _identity(inquiry):
        return Answer.NOT_ASKED
    value = node.labels.get(names.approval_label(prefix, inquiry.step), "").lower()
    if value == "approved":
        return Answer.APPROVED
    if value == "denied":
        return Answer.DENIED
    return Answer.WAITING if value == "inquiring" else Answer.NOT_ASKED


def _identity(inquiry: Inquiry) -> tuple[str, str, int, str]:
    return inquiry.uid, inquiry.step, inquiry.attempt, inquiry.node_uid


def ask_ops(node: Node, inquiry: Inquiry, prefix: str) -> list[dict[str, Any]]:
    """Label and binding in one patch. Whatever stood under the label is overwritten: it was no answer to this.

    The label of a question of ours that this one takes the place of goes with it: nothing would bind it any more.
    """
    labels: dict[str, str | None] = {names.approval_label(prefix, inquiry.step): "inquiring"}
    standing = read_inquiry(node)
    if standing is not None and standing.uid == inquiry.uid and standing.step != inquiry.step:
        old = names.approval_label(prefix, standing.step)
        labels |= {old: None} if old in node.labels else {}
    ops = label_ops(node, labels)
    return ops + annotation_ops(node, {names.INQUIRY: msgspec.json.encode(inquiry).decode()})


def withdraw_ops(node: Node, repair_uid: str, prefix: str) -> list[dict[str, Any]]:
    """Take back our question, if it is ours and stands: its label, its annotation, and the stamp of who answered it."""
    standing = read_inquiry(node)
    if standing is None or standing.uid != repair_uid:
        return []
    label = names.approval_label(prefix, standing.step)
    ops = label_ops(node, {label: None}) if label in node.labels else []
    return ops + annotation_ops(node, {names.INQUIRY: None, names.CHANGED_BY: None})
