"""What our annotations on a Node say: who holds it since when and from what state, and what is being asked.

Written by one layer and read by others, which know each other only through these values. A value that cannot be read,
or that names no repair, is none: anybody can write an annotation.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair, Prior
from sickbay.api.repair_plan import ApprovalForm

OUR_TAINT = (names.QUARANTINE, "NoSchedule")
"""Key and effect. Never NoExecute: that would start the forced detach of volumes after 6 minutes."""
UNSCHEDULABLE, TAINT = "unschedulable", "taint"
"""Words of the stamp for what is no label or annotation."""

CORDON, FOREIGN = "cordon", "Foreign"
"""In `status.current.args` of a release: the cordon that may stand on the node by then is not the one we have set."""


class QuarantineMark(msgspec.Struct, kw_only=True, rename={"node_uid": "nodeUID"}):
    """The value of `sickbay.dev/quarantine`, written in the same patch as the cordon."""

    repair: str = ""
    uid: str = ""
    """Of the NodeRepair."""
    node_uid: str = ""
    at: str = ""
    prior: Prior = msgspec.field(default_factory=Prior)
    """What was there before, to be put back."""


class Inquiry(msgspec.Struct, kw_only=True, rename={"node_uid": "nodeUID"}):
    """The value of `sickbay.dev/inquiry`, written in the same patch as the label `inquiring`."""

    repair: str = ""
    uid: str = ""
    step: str = ""
    attempt: int = 0
    node_uid: str = ""
    groups: list[str] = []
    by: str = "People"


class FenceMark(msgspec.Struct, kw_only=True):
    """The value of `sickbay.dev/out-of-service`, written in the same patch as the taint."""

    repair: str = ""
    uid: str = ""
    until: str = ""
    """When the taint goes at the latest."""


class Stamp(msgspec.Struct, kw_only=True):
    """The value of `sickbay.dev/changed-by`, written by the admission policy: who changed last what we keep here."""

    user: str = ""
    what: str = ""
    """Keys, and `unschedulable` and `taint`, separated by commas."""


def changed_by(node: Node) -> Stamp:
    """Who changed last what we keep on the node; nobody where no policy tells."""
    try:
        return msgspec.json.decode(node.annotations.get(names.CHANGED_BY) or "{}", type=Stamp)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return Stamp()


T = TypeVar("T", QuarantineMark, Inquiry, FenceMark)


def read_mark(node: Node) -> QuarantineMark | None:
    return _read(node, names.QUARANTINE, QuarantineMark)


def marked_by(node: Node, uid: str) -> bool:
    """True when the node carries the mark of the NodeRepair with this UID."""
    mark = read_mark(node)
    return mark is not None and mark.uid == uid


def taken_back(node: Node, uid: str, tainted: bool) -> str:
    """What somebody has done to a node that the NodeRepair with this UID holds, in words; "" while its marks stand.

    tainted   the repair's Quarantine sets our taint, too
    """
    if not node.unschedulable:
        return "the node was uncordoned"
    mark = read_mark(node)
    if mark is None:
        return f"the annotation {names.QUARANTINE} was removed or made unreadable"
    if mark.uid != uid:
        return f"the annotation {names.QUARANTINE} was changed"
    had = any((taint.key, taint.effect) == OUR_TAINT for taint in mark.prior.taints)
    if tainted and not had and not any((taint.key, taint.effect) == OUR_TAINT for taint in node.taints):
        return f"the taint {names.QUARANTINE} was removed or changed"
    if cordoned_anew(node):
        return f"the node was uncordoned, and cordoned again by {changed_by(node).user or 'somebody'}"
    return ""


def cordoned_anew(node: Node) -> bool:
    """The cordon that stands was set by somebody else while we held the node: ours had been lifted before.

    Known by the stamp only, which Quarantine takes off when it cordons.
    """
    return node.unschedulable and UNSCHEDULABLE in changed_by(node).what.split(",")


def denied(node: Node, repair: NodeRepair) -> bool:
    """The question about this very attempt of the current step stands on the node and is answered with no.

    An approval may be taken back like this for as long as nothing has begun.
    """
    asked, current, form = read_inquiry(node), repair.status.current, repair.spec.plan.form
    if asked is None or (asked.uid, asked.step, asked.attempt) != (repair.metadata.uid, current.step, current.attempt):
        return False
    value = node.labels.get(form.key_of(current.step), "").lower()
    return bool(value) and value in [word.lower() for word in form.denied]


def read_inquiry(node: Node) -> Inquiry | None:
    return _read(node, names.INQUIRY, Inquiry)


def read_fence(node: Node) -> FenceMark | None:
    return _read(node, names.OUT_OF_SERVICE_MARK, FenceMark)


Changes = dict[str, str | None]
"""Values to give to labels or annotations; None removes."""


def question_taken_off(node: Node, uid: str, form: ApprovalForm) -> tuple[Changes, Changes]:
    """Labels and annotations that take the question of the NodeRepair with this UID off the node; empty where none of
    its questions stands. The stamp of who answered goes with it.

    Whoever takes off more in the same patch adds to these: a patch that removes a key twice is refused as a whole.
    """
    asked = read_inquiry(node)
    if asked is None or asked.uid != uid:
        return {}, {}
    return {form.key_of(asked.step): None}, {names.INQUIRY: None, names.CHANGED_BY: None}


def _read(node: Node, key: str, kind: type[T]) -> T | None:
    text = node.annotations.get(key)
    if not text:
        return None
    try:
        value = msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    return value if value.uid else None
