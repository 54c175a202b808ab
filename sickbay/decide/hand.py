"""Has the node slipped from under the repair: gone, replaced under its name, or taken over by a person?"""

from __future__ import annotations

from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair, RepairNode
from sickbay.api.nodemarks import changed_by, marked_by, taken_back
from sickbay.api.words import Stage, Step, StepState


def identity_of(node: Node) -> RepairNode:
    """What binds a new record to this very node, in this boot, on this machine."""
    meta = node.name, node.uid, node.spec.provider_id
    return RepairNode(name=meta[0], uid=meta[1], provider_id=meta[2], boot_id=node.boot_id, serial=node.serial)


def marked(repair: NodeRepair, node: Node) -> bool:
    """True when the node carries the mark of this repair."""
    return marked_by(node, repair.metadata.uid)


def node_lost(repair: NodeRepair, node: Node | None) -> bool:
    """True when the node of the incident is no more. One of the same name with another UID is another node."""
    return node is None or (bool(repair.spec.node.uid) and node.uid != repair.spec.node.uid)


def holds_node(repair: NodeRepair) -> bool:
    """True from the moment our marks may stand on the node until Unquarantine has taken them away.

    A Quarantine that failed may have written them before it did.
    """
    steps = repair.status.steps
    quarantine, back = steps.get("Quarantine"), steps.get("Unquarantine")
    begun = quarantine is not None and quarantine.state in (StepState.RUNNING, StepState.DONE, StepState.FAILED)
    return begun and not (back is not None and back.state == StepState.DONE)


def untouched(repair: NodeRepair) -> bool:
    """True until the first step of the repair has begun."""
    return not any(step.attempts or step.started for step in repair.status.steps.values())


def _marks_stand(repair: NodeRepair) -> bool:
    """Quarantine is over, but for its hooks, and of Unquarantine at most the hooks before it have begun."""
    steps, current = repair.status.steps, repair.status.current
    quarantine, back = steps.get("Quarantine"), steps.get("Unquarantine")
    if quarantine is None:
        return False
    if current.step == Step.QUARANTINE and current.stage == Stage.AFTER:
        return quarantine.state == StepState.RUNNING
    if quarantine.state != StepState.DONE:
        return False
    if current.step == Step.UNQUARANTINE and back is not None and back.attempts:
        return False  # a return that did not end in time may have taken them away all the same
    only_hooks = current.step == Step.UNQUARANTINE and current.stage == Stage.BEFORE
    return back is None or only_hooks or back.state not in (StepState.RUNNING, StepState.DONE)


def by_whom(node: Node) -> str:
    """ " by" whoever changed our marks last, where a stamp tells; "" otherwise."""
    user = changed_by(node).user
    return f" by {user[:256]}" if user else ""


def persons_hand(repair: NodeRepair, node: Node) -> str:
    """What a person has done to a node we hold, in words; "" when our marks stand as we left them.

    Judged only between the end of Quarantine and the start of Unquarantine, where the marks are known to be ours to
    hold. Without the stamping admission policy every other hand counts as a person's.
    """
    if not _marks_stand(repair):
        return ""
    planned = repair.spec.plan.step(Step.QUARANTINE)
    return taken_back(node, repair.metadata.uid, planned is not None and bool(planned.taint))
