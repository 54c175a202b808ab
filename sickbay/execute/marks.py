"""Our marks on a node: set together with the record of what was there before, taken back by that record.

The record stands in the annotation itself, in the same write as the cordon, so that there is no moment at which the
node is changed and nobody knows from what.
"""

from __future__ import annotations

import msgspec

from sickbay.api import markers, names
from sickbay.api.core import Node, Taint
from sickbay.api.node_repair import NodeRepair, Prior, PriorCondition, RepairTaint
from sickbay.api.nodemarks import OUR_TAINT, QuarantineMark, question_taken_off, read_fence, read_mark
from sickbay.api.words import Step
from sickbay.kube.nodes import Op, annotation_ops, label_ops, taint_ops, unschedulable_ops

KEEP_AWAY = (names.SCALE_DOWN_DISABLED, names.DO_NOT_DISRUPT)
"""While we hold a node, the autoscaler and Karpenter must not take it away as unneeded."""
LIFECYCLE_REASON = markers.OURS
"""Reason of the lifecycle conditions we set: by it they are told apart from those of others."""
FENCE_TAINT = (names.OUT_OF_SERVICE, "NoExecute")
"""Set by a drain on a node whose machine is proven to be off (`fence`)."""


def set_ops(node: Node, repair: NodeRepair, taint: str, at: str) -> tuple[list[Op], Prior]:
    """Operations that put the node into quarantine, and the record of what was there before."""
    before = read_mark(node)
    # A mark of an incident that is over was left behind: what was there before *it* is what has to come back.
    prior = before.prior if before is not None else _prior(node)
    mark = QuarantineMark(repair=repair.metadata.name, uid=repair.metadata.uid, node_uid=node.uid, at=at, prior=prior)
    annotations: dict[str, str | None] = dict.fromkeys(KEEP_AWAY, "true")
    annotations[names.QUARANTINE] = msgspec.json.encode(mark).decode()
    # One of that name which stands there already does the same; it is somebody's own and keeps its value.
    stands = any((t.key, t.effect) == OUR_TAINT for t in node.taints)
    ours = [Taint(key=OUR_TAINT[0], value=taint, effect=OUR_TAINT[1])] if taint and not stands else []
    # From here on the stamp tells of hands on what is ours; one that stands there tells of something before that.
    annotations[names.CHANGED_BY] = None
    ops = annotation_ops(node, annotations) + unschedulable_ops(node, True) + taint_ops(node, add=ours)
    return ops, prior


def restore_ops(node: Node, repair: NodeRepair, at: str) -> list[Op]:
    """Operations that put our mark back as it was; what stood there before us is known from the record."""
    planned = repair.spec.plan.step(Step.QUARANTINE)
    ops, prior = set_ops(node, repair, planned.taint if planned is not None else "", at)
    before = still_prior(node, repair) or prior
    mark = QuarantineMark(
        repair=repair.metadata.name,
        uid=repair.metadata.uid,
        node_uid=node.uid,
        at=at,
        prior=before,
    )
    again = {names.QUARANTINE: msgspec.json.encode(mark).decode(), names.CHANGED_BY: None}
    others = [op for op in ops if not op["path"].startswith("/metadata/annotations")]
    return annotation_ops(node, {**again, **dict.fromkeys(KEEP_AWAY, "true")}) + others


def still_prior(node: Node, repair: NodeRepair) -> Prior | None:
    """Of what stood on the node before us, what has to come back.

    Whoever has uncordoned the node has lifted what cordon stood there before us, too: that is over.
    """
    prior = repair.status.prior
    if prior is None or node.unschedulable or not prior.unschedulable:
        return prior
    return msgspec.structs.replace(prior, unschedulable=False)


def _prior(node: Node) -> Prior:
    return Prior(
        unschedulable=node.unschedulable,
        taints=[RepairTaint(key=t.key, value=t.value, effect=t.effect) for t in node.taints][:64],
        annotations={key: node.annotations[key] for key in KEEP_AWAY if key in node.annotations},
        conditions=[
            PriorCondition(
                type=c.type,
                status=c.status,
                reason=c.reason,
                message=c.message,
                last_heartbeat_time=c.last_heartbeat_time,
                last_transition_time=c.last_transition_time,
            )
            for c in node.conditions
            if c.type in names.LIFECYCLE_CONDITIONS and c.reason != LIFECYCLE_REASON
        ],
    )


def clear_ops(node: Node, prior: Prior | None, repair: NodeRepair, lift: bool = True, astray: bool = False) -> list[Op]:
    """Operations that take this repair's marks back. What others have changed since is left as they want it.

    prior    its record of before; None: it never marked the node
    lift     the cordon that stands is the one that this repair has set
    astray   a mark of another repair is nobody's: somebody has tampered with ours
    """
    mark = read_mark(node)
    if mark is not None and mark.uid != repair.metadata.uid and not astray:
        return []  # another incident holds the node by now
    labels, annotations = question_taken_off(node, repair.metadata.uid, repair.spec.plan.form)
    fence = read_fence(node)
    fenced = fence is not None and fence.uid == repair.metadata.uid
    leaving = [FENCE_TAINT] if fenced else []
    if fenced:
        annotations |= {names.OUT_OF_SERVICE_MARK: None}
    if prior is None:
        return label_ops(node, labels) + annotation_ops(node, annotations) + taint_ops(node, remove=leaving)
    annotations |= dict.fromkeys((names.QUARANTINE, names.CHANGED_BY, names.ISOLATE))
    for key in KEEP_AWAY:
        if node.annotations.get(key) == "true":
            annotations[key] = prior.annotations.get(key)
    if not any((t.key, t.effect) == OUR_TAINT for t in prior.taints):
        leaving.append(OUR_TAINT)
    ops = annotation_ops(node, annotations) + taint_ops(node, remove=leaving)
    if lift and node.unschedulable and not prior.unschedulable:
        ops += unschedulable_ops(node, False)
    return ops + label_ops(node, labels)
